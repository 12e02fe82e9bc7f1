// What sorting.cpp and selection.cpp need of the rest of the extension, for exported libraries: they run without Python,
// on the thread that calls them.
#include <cstdlib>
#include <new>

#include "sorting/radix_sort.h"
#include "sorting/sort_keys.h"
#include "sorting/sorting.h"
#include "threads/thread_pool.h"

// LLVM's C++ library has these in itself, GNU's in its headers only: what is built with the one may be linked with the other.
#ifdef _LIBCPP_VERSION
std::bad_alloc::bad_alloc() noexcept {}
std::bad_array_new_length::bad_array_new_length() noexcept {}
#endif

namespace pb {

int num_threads() noexcept { return 1; }

void parallel_for(LoopBody body, void* ctx, int64_t n, int64_t) noexcept {
    if (n > 0) body(ctx, 0, n);
}

namespace {

constexpr int64_t kFew = 1 << 9;  // elements for which counting digits does not pay

// By digits, or in place where that is quicker or there is no memory for it. Elements with equal keys may differ in
// their bits (zeros, NaN): the caller puts those right, as it does after NumPy's sorts.
template <class Kind>
int quick_sort_of(Kind kind, void* start, intptr_t n) {
    using Raw = typename Kind::Raw;
    using E = Element<typename Kind::Key, None>;
    Raw* x = static_cast<Raw*>(start);
    E* keys = n > kFew ? static_cast<E*>(std::malloc(2 * size_t(n) * sizeof(E))) : nullptr;
    if (!keys) {
        std::sort(x, x + n, [kind](Raw p, Raw q) { return kind.encode(p) < kind.encode(q); });
        return 0;
    }
    auto encoded = [kind, x](int64_t i) { return E{kind.encode(x[i])}; };
    const E* sorted = radix_sort<E>(encoded, keys, keys + n, n, Chunks{n, 1});
    for (int64_t i = 0; i < n; ++i) x[i] = kind.decode(sorted[i].key);
    std::free(keys);
    return 0;
}

template <int64_t number>
int quick_sort(void* start, intptr_t n, void*) {
    int failed = 0;
    with_kind(number, [&](auto kind) {
        if constexpr (sizeof(typename decltype(kind)::Raw) >= 4) failed = quick_sort_of(kind, start, n);
    });
    return failed;
}

}  // namespace

QuickSort quick_sorts[kF64 + 1] = {
    nullptr,
    nullptr,
    quick_sort<kU32>,
    quick_sort<kU64>,
    nullptr,
    nullptr,
    quick_sort<kI32>,
    quick_sort<kI64>,
    nullptr,
    nullptr,
    quick_sort<kF32>,
    quick_sort<kF64>,
};

}  // namespace pb
