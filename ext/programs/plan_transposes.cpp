// Copies of matrices whose rows become columns. One element at a time would touch a line of memory for each and use a
// sixteenth of it. Here blocks whose sides are a line are read and written whole.
#include <algorithm>
#include <utility>

#include "programs/plan_loops.h"
#include "programs/plan_vectors.h"

namespace pb {
namespace {

constexpr npy_intp kSide = 64, kBytes = 16;  // bytes of a line, and of a vector
// Lines at this distance, or at multiples of it, share a few places in the first cache. The lines of a block, which are
// read in pieces, would drive each other out: 1024 x 1024 floats took 1.0 ms, by copies of lines 0.35.
constexpr npy_intp kAliased = 4096;

// The first or the second halves of two vectors, element by element in turns.
template <typename V, bool second, size_t... k>
PB_INLINE V in_turns(V a, V b, std::index_sequence<k...>) {
    constexpr size_t n = sizeof...(k);
#if __has_builtin(__builtin_shufflevector)
    return __builtin_shufflevector(a, b, int(k / 2 + (second ? n / 2 : 0) + (k % 2) * n)...);
#else  // GCC before 12
    return __builtin_shuffle(a, b, V{(k / 2 + (second ? n / 2 : 0) + (k % 2) * n)...});
#endif
}

// `rows` as a square: after log2(n) rounds that take rows i and i + n / 2 in turns, rows are columns.
template <typename V, size_t n>
PB_INLINE void transpose(V (&rows)[n]) {
    for (size_t round = 1; round < n; round *= 2) {
        V next[n];
#pragma GCC unroll 16
        for (size_t i = 0; i < n / 2; ++i) {
            next[2 * i] = in_turns<V, false>(rows[i], rows[i + n / 2], std::make_index_sequence<n>{});
            next[2 * i + 1] = in_turns<V, true>(rows[i], rows[i + n / 2], std::make_index_sequence<n>{});
        }
#pragma GCC unroll 16
        for (size_t i = 0; i < n; ++i) rows[i] = next[i];
    }
}

// out[i, j] = in[j, i] of a square whose sides are a line. `copies`: of lines, from which pieces are taken.
template <typename T, bool copies>
PB_INLINE void block(const char* in, npy_intp in_step, char* out, npy_intp out_step) {
    constexpr npy_intp side = kSide / sizeof(T), n = kBytes / sizeof(T), pieces = kSide / kBytes;
    using V = Vector<T, n>;
    V lines[copies ? side : 1][pieces];
    if constexpr (copies) {
#pragma GCC unroll 64
        for (npy_intp j = 0; j < side; ++j)
            for (npy_intp q = 0; q < pieces; ++q) lines[j][q] = load<V>(in + j * in_step + q * kBytes);
    }
    const auto square = [&](npy_intp i, npy_intp j) __attribute__((always_inline)) {
        V rows[n];
#pragma GCC unroll 16
        for (npy_intp k = 0; k < n; ++k) {
            if constexpr (copies) rows[k] = lines[j * n + k][i];
            else rows[k] = load<V>(in + (j * n + k) * in_step + i * kBytes);
        }
        transpose(rows);
#pragma GCC unroll 16
        for (npy_intp k = 0; k < n; ++k) store(out + (i * n + k) * out_step + j * kBytes, rows[k]);
    };
    for (npy_intp a = 0; a < pieces; ++a)
        for (npy_intp b = 0; b < pieces; ++b) copies ? square(a, b) : square(b, a);
}

template <typename T, bool copies>
void blocks(char* const* data, const npy_intp* dimensions, const npy_intp* strides) {
    constexpr npy_intp side = kSide / sizeof(T), size = sizeof(T);
    const npy_intp n = dimensions[0], m = dimensions[1], in_step = strides[0], out_step = strides[1];
    for (npy_intp from = 0; from < m; from += side) {
        const npy_intp j = std::min(from, m - side);  // the last blocks overlap those before them
        for (npy_intp first = 0; first < n; first += side) {
            const npy_intp i = std::min(first, n - side);
            block<T, copies>(data[0] + j * in_step + i * size, in_step, data[1] + i * out_step + j * size, out_step);
        }
    }
}

template <typename T>
int transposed(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    const bool copies = strides[0] % kAliased == 0 || strides[1] % kAliased == 0;
    (copies ? blocks<T, true> : blocks<T, false>)(data, dimensions, strides);
    return 0;
}

}  // namespace

StridedLoop* transpose_loop(npy_intp itemsize) {
    switch (itemsize) {
        case 1: return transposed<uint8_t>;
        case 2: return transposed<uint16_t>;
        case 4: return transposed<uint32_t>;
        case 8: return transposed<uint64_t>;
        default: return nullptr;
    }
}

}  // namespace pb
