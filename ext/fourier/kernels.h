// What passes of Fourier transforms work on, and the tables of functions that do them, whatever their vectors' width.
#pragma once
#include <cstdint>

namespace pb::fourier {

// Rows of complex numbers, side by side (im is null, and neighbouring rows are `stride` apart) or in planes.
template <class T>
struct Side {
    T *re, *im;
    int64_t stride;
    bool is_planes() const { return im; }
};

// What a pass does: m values of p, rows of s places of `width` neighbours; for `count` transforms that are `in_step` and
// `out_step` numbers apart.
template <class T>
struct Pass {
    Side<T> in, out;
    int64_t m, s, width, count, in_step, out_step;
    const T *wr, *wi;  // [radix - 1, m]
    int64_t half;      // of the radix, if it is a prime without a codelet; with the angles of element j and result k:
    const T *cr, *ci;  // [half, half], of 1 <= j, k <= half
    T in_sign, re_scale, im_scale;
};

template <class T>
using Kernel = void (*)(const Pass<T>&);

// Primes up to this one are radices: those without a codelet take time that grows with their square, but less than the
// convolution of the whole length that larger ones make necessary. lax/fourier/plans.py has it, too.
constexpr int64_t kLargestRadix = 127;

// Where lanes run: along neighbours, or along p for rows of 1, 4 or 8 places.
enum Way { kNeighbours, kRows1, kRows4, kRows8, kWays };

// All of a radix, by lanes (1, 2, 4, 8, 16: the exponent), way, and what is in planes.
template <class T>
struct Kernels {
    Kernel<T> of[5][kWays][2][2];
};

#if defined(__x86_64__)
namespace lanes32 {
const Kernels<float>* kernels(float);  // by radix
const Kernels<double>* kernels(double);
}  // namespace lanes32
#endif

}  // namespace pb::fourier
