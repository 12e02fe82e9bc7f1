// Products over few elements, in the order of compiled code: term after term, each rounded together with the sum that it
// goes into where there is such an instruction, which the compiler takes for what stands in one expression. BLAS adds the
// terms of a matrix and a vector in an order of its own.
#include "cpu_features.h"
#include "programs/plan_loops.h"
#include "programs/plan_vectors.h"

#if defined(__x86_64__)
#define PB_FUSED __attribute__((target("avx2,fma")))
#else
#define PB_FUSED
#endif

namespace pb {
namespace {

// out[i, j] = the sum over k of x[i, k] y[k, j]. dimensions: of i, j, k; strides: x's along i and k, y's along k and j,
// out's along i and j. Neighbouring j go by vectors of so many bytes, others by fours, which do not wait for each other.
template <typename S, int bytes>
PB_INLINE int product(char* const* data, const npy_intp* dimensions, const npy_intp* strides) {
    constexpr npy_intp kSize = sizeof(S), kFour = 4;
    const npy_intp columns = dimensions[1], terms = dimensions[2];
    const npy_intp x_step = strides[1], y_step = strides[2], column = strides[3], out_step = strides[5];
    const bool neighbours = column == kSize && out_step == kSize;
    for (npy_intp i = 0; i < dimensions[0]; ++i) {
        const char* x = data[0] + i * strides[0];
        char* out = data[2] + i * strides[4];
        npy_intp j = 0;
        const auto vectors = [&](auto zero) __attribute__((always_inline)) {
            using V = decltype(zero);
            for (; j + npy_intp(sizeof(V)) / kSize <= columns; j += sizeof(V) / kSize) {
                const char* y = data[1] + j * kSize;
                V sum = load<S>(x) * load<V>(y);
                for (npy_intp k = 1; k < terms; ++k) sum = load<S>(x + k * x_step) * load<V>(y + k * y_step) + sum;
                store(out + j * kSize, sum);
            }
        };
        if (neighbours) {
            vectors(Vector<S, bytes / kSize>{});
            if constexpr (bytes > 16) vectors(Vector<S, 16 / kSize>{});
        }
        for (; j + kFour <= columns; j += kFour) {
            const char* y = data[1] + j * column;
            S sums[kFour];
            for (int q = 0; q < kFour; ++q) sums[q] = load<S>(x) * load<S>(y + q * column);
            for (npy_intp k = 1; k < terms; ++k) {
                const S factor = load<S>(x + k * x_step);
                for (int q = 0; q < kFour; ++q) sums[q] = factor * load<S>(y + k * y_step + q * column) + sums[q];
            }
            for (int q = 0; q < kFour; ++q) store(out + (j + q) * out_step, sums[q]);
        }
        for (; j < columns; ++j) {
            const char* y = data[1] + j * column;
            S sum = load<S>(x) * load<S>(y);
            for (npy_intp k = 1; k < terms; ++k) sum = load<S>(x + k * x_step) * load<S>(y + k * y_step) + sum;
            store(out + j * out_step, sum);
        }
    }
    return 0;
}

template <typename S>
int rounded(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return product<S, 16>(data, dimensions, strides);
}

template <typename S>
PB_FUSED int fused(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return product<S, 32>(data, dimensions, strides);
}

}  // namespace

StridedLoop* product_loop(int type, int bytes) {
    const bool fuses = bytes >= 32;
    if (fuses && cpu_features.level < 3) return nullptr;
    switch (type) {
        case NPY_FLOAT: return fuses ? fused<float> : rounded<float>;
        case NPY_DOUBLE: return fuses ? fused<double> : rounded<double>;
        default: return nullptr;
    }
}

}  // namespace pb
