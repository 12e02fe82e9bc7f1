#include <chrono>

#include "cpu_features.h"
#include "numpy_api.h"
#include "sorting/compress_sort.h"
#include "sorting/sort_keys.h"
#include "sorting/sorting.h"

namespace pb {

QuickSort quick_sorts[kF64 + 1] = {};

namespace {

QuickSort numpy_sorts[kF64 + 1] = {};

#ifdef PB_COMPRESS_SORT
constexpr int64_t kRun = 2048;  // bytes that NumPy sorts without compressing vectors

template <int64_t kind, class Number>
int sort_compressed(Number* x, int64_t n, Number* scratch) {
    auto finish = [](Number* part, int64_t size) { numpy_sorts[kind](part, size, nullptr); };
    const int depth = 2 * std::bit_width(uint64_t(n));
    compress_sort<Number>(x, n, scratch, kRun / int64_t(sizeof(Number)), finish, depth);
    return 0;
}

// Whether sort_compressed is quicker than NumPy's sort on this machine: measured once, in about 0.1 ms. Which of them
// sorts makes no difference to results, as `restore_specials` puts back what either takes in any order.
bool compresses() {
    static const bool is_quicker = [] {
        constexpr int64_t kSize = 2048;
        std::array<uint32_t, kSize> x, scratch;
        auto shortest = [&](auto sort) {
            auto best = std::chrono::nanoseconds::max();
            for (int k = 0; k < 3; ++k) {
                uint32_t word = 1;
                for (auto& v : x) v = word = word * 1664525u + 1013904223u;
                const auto start = std::chrono::steady_clock::now();
                sort();
                best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - start);
            }
            return best;
        };
        return shortest([&] { sort_compressed<kU32>(x.data(), kSize, scratch.data()); }) <
               shortest([&] { numpy_sorts[kU32](x.data(), kSize, nullptr); });
    }();
    return is_quicker;
}

// Where there is AVX-512; with less, NumPy's sorts do not compress into memory.
template <int64_t kind, class Number>
int quick_sort(void* start, intptr_t n, void* scratch) {
    if (n * int64_t(sizeof(Number)) <= kRun || !compresses()) return numpy_sorts[kind](start, n, nullptr);
    auto* const x = static_cast<Number*>(start);
    if (scratch) return sort_compressed<kind>(x, n, static_cast<Number*>(scratch));
    auto* const own = static_cast<Number*>(std::malloc(size_t(n) * sizeof(Number)));
    if (!own) return numpy_sorts[kind](start, n, nullptr);
    sort_compressed<kind>(x, n, own);
    std::free(own);
    return 0;
}
#endif

}  // namespace

bool find_quick_sorts() {
    auto find = [](int type) {
        PyArray_Descr* descr = PyArray_DescrFromType(type);
        auto* sort = reinterpret_cast<QuickSort>(PyDataType_GetArrFuncs(descr)->sort[NPY_QUICKSORT]);
        Py_DECREF(descr);
        return sort;
    };
    numpy_sorts[kU32] = find(NPY_UINT32);
    numpy_sorts[kU64] = find(NPY_UINT64);
    numpy_sorts[kI32] = find(NPY_INT32);
    numpy_sorts[kI64] = find(NPY_INT64);
    numpy_sorts[kF32] = find(NPY_FLOAT);
    numpy_sorts[kF64] = find(NPY_DOUBLE);
    std::copy(std::begin(numpy_sorts), std::end(numpy_sorts), quick_sorts);
#ifdef PB_COMPRESS_SORT
    if (cpu_features.avx512f && cpu_features.bmi2) {
        quick_sorts[kU32] = quick_sort<kU32, uint32_t>;
        quick_sorts[kU64] = quick_sort<kU64, uint64_t>;
        quick_sorts[kI32] = quick_sort<kI32, int32_t>;
        quick_sorts[kI64] = quick_sort<kI64, int64_t>;
        quick_sorts[kF32] = quick_sort<kF32, float>;
        quick_sorts[kF64] = quick_sort<kF64, double>;
    }
#endif
    return true;
}

}  // namespace pb
