#include "fourier/fourier.h"

#include "cpu_features.h"

namespace {

using namespace pb::fourier;

template <class T>
using Transform = void (*)(const Task<T>&);

// The passes with the widest vectors that this processor has.
template <class T>
Transform<T> widest() {
#if defined(__x86_64__)
    const auto& has = pb::cpu_features;
    if (has.avx512f && has.avx512vl && has.avx512dq && has.fma) return lanes64::transform;
    if (has.avx2 && has.fma) return lanes32::transform;
#endif
    return lanes16::transform;
}

template <class T>
void transform(int64_t kind, int64_t count, int64_t inner, int64_t backward, int64_t divisor, int64_t block,
               const int64_t* plan, const T* table, const void* x, void* out) {
    static Transform<T> found = nullptr;  // no guard of the C++ library, which exported programs do without
    Transform<T> run = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (!run) __atomic_store_n(&found, run = widest<T>(), __ATOMIC_RELAXED);
    run({Kind(kind), count, inner, backward, T(1.0 / double(divisor)), block, plan, table, x, out});
}

}  // namespace

extern "C" {

void pb_fourier_f32(int64_t kind, int64_t count, int64_t inner, int64_t backward, int64_t divisor, int64_t block,
                    const int64_t* plan, const float* table, const void* x, void* out) {
    transform(kind, count, inner, backward, divisor, block, plan, table, x, out);
}

void pb_fourier_f64(int64_t kind, int64_t count, int64_t inner, int64_t backward, int64_t divisor, int64_t block,
                    const int64_t* plan, const double* table, const void* x, void* out) {
    transform(kind, count, inner, backward, divisor, block, plan, table, x, out);
}

}
