// Fourier transforms with vectors of PB_BYTES bytes, in a namespace PB_NAMESPACE of their own: the file is compiled once
// for each width, with the instructions that go with it, and uses no function that others might share.
//
// Lengths with a large prime are convolutions with a chirp (Bluestein; Van Loan, 4.2.3). Transforms back are those of the
// conjugate, conjugated. A real transform of even length is a complex one of half the length with a pass before or after
// it. Rows of short ones have a lane each (batches.h); of others a few go through each pass together, as far as they stay
// in the first cache: what it takes to choose and start a pass is that of a transform of a hundred numbers.
#include <alloca.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fourier/fourier.h"
#include "fourier/kernels.h"

namespace pb::fourier::PB_NAMESPACE {

namespace {

#include "fourier/vectors.h"
#include "fourier/codelets.h"
#include "fourier/passes.h"
#include "fourier/transform.h"
#include "fourier/batches.h"

// Rows get a lane each below so many numbers: from there on the passes of one row fill vectors, too.
template <class T>
constexpr int64_t kLong = 8 * kMost<T>;
// Bytes of planes of the rows that go through a pass together.
constexpr int64_t kTogether = 1 << 14;

// From Z = E + i O, the transforms of even and odd elements: X[k] = E[k] + w^k O[k], for begin <= k < end.
template <class T, bool Planes>
void untangle(const Side<T>& z, int64_t half, const T* wr, const T* wi, T* out, int64_t begin, int64_t end) {
    if (begin == 0) {
        const Z<T> first = read<T, 1, Planes>(z, 0, 1);
        out[0] = first.re + first.im, out[1] = 0;
        out[2 * half] = first.re - first.im, out[2 * half + 1] = 0;
        begin = 1;
    }
    const Side<T> to{out, nullptr, 1};
    in_lanes<T>(end - begin, [&](int64_t i, auto lanes) PB_INLINED {
        constexpr int L = decltype(lanes)::value;
        const int64_t k = begin + i;
        const Z<V<T, L>> a = read<T, L, Planes>(z, k, 1), c = read<T, L, Planes>(z, half - k - (L - 1), 1);
        const Z<V<T, L>> b{reversed<T, L>(c.re), reversed<T, L>(c.im)};
        constexpr T h = T(0.5);
        const Z<V<T, L>> even{(a.re + b.re) * h, (a.im - b.im) * h}, odd{(a.im + b.im) * h, (b.re - a.re) * h};
        write<T, L, false>(to, k, even + times(odd, load<T, L>(wr + k), load<T, L>(wi + k)), 1, 1);
    });
}

// 2 Z = 2 (E + i O), from X[k] = E[k] + w^k O[k] with E and O of real elements; imaginary parts times `sign`.
template <class T, bool Planes>
void tangle(const T* x, int64_t half, const T* wr, const T* wi, const Side<T>& z, int64_t begin, int64_t end, T sign) {
    if (begin == 0) {
        const T first = x[0], last = x[2 * half];
        write<T, 1, Planes>(z, 0, Z<T>{first + last, (first - last) * sign}, 1, 1);
        begin = 1;
    }
    const Side<T> from{const_cast<T*>(x), nullptr, 1};
    in_lanes<T>(end - begin, [&](int64_t i, auto lanes) PB_INLINED {
        constexpr int L = decltype(lanes)::value;
        const int64_t k = begin + i;
        const Z<V<T, L>> a = read<T, L, false>(from, k, 1), c = read<T, L, false>(from, half - k - (L - 1), 1);
        const Z<V<T, L>> b{reversed<T, L>(c.re), reversed<T, L>(c.im)};
        const Z<V<T, L>> even{a.re + b.re, a.im - b.im};
        // Back, angles have the other sign.
        const Z<V<T, L>> odd = times(Z<V<T, L>>{a.re - b.re, a.im + b.im}, load<T, L>(wr + k), -load<T, L>(wi + k));
        write<T, L, Planes>(z, k, Z<V<T, L>>{even.re - odd.im, (even.im + odd.re) * sign}, 1, 1);
    });
}

// The planes of transform number `row`.
template <class T>
Side<T> planes_at(const Side<T>& z, int64_t at) {
    return {z.re + at, z.im + at, z.stride};
}

template <class T>
void real_rows(const Task<T>& task, Transform<T>& transform, const T* x, T* out, int64_t count) {
    const int64_t n = task.inner, half = n / 2, step = transform.step();
    const T *wr = task.table + task.plan[kCircle], *wi = wr + half + 1;
    if (n % 2 == 0) {
        const Side<T> z = transform.result({const_cast<T*>(x), nullptr, 1}, count, 1);
        for (int64_t row = 0; row < count; ++row)
            untangle<T, true>(planes_at(z, row * step), half, wr, wi, out + 2 * row * (half + 1), 0, half);
        return;
    }
    const Side<T>& in = transform.planes(1);
    for (int64_t row = 0; row < count; ++row) {
        std::memcpy(in.re + row * step, x + row * n, size_t(n) * sizeof(T));
        std::memset(in.im + row * step, 0, size_t(n) * sizeof(T));
    }
    transform.scatter(transform.result(in, count, 1), {out, nullptr, 1}, half + 1, half + 1, 1, 1);
}

template <class T>
void rows_to_real(const Task<T>& task, Transform<T>& transform, const T* x, T* out, int64_t count) {
    const int64_t n = task.inner, half = n / 2, step = transform.step();
    const T *wr = task.table + task.plan[kCircle], *wi = wr + half + 1;
    const Side<T>& in = transform.planes(1);
    for (int64_t row = 0; row < count; ++row, x += 2 * (half + 1)) {
        const Side<T> z = planes_at(in, row * step);
        if (n % 2 == 0) {
            tangle<T, true>(x, half, wr, wi, z, 0, half, T(-1));
            continue;
        }
        z.re[0] = x[0], z.im[0] = 0;
        for (int64_t k = 1; k <= half; ++k) {
            z.re[k] = z.re[n - k] = x[2 * k];
            z.im[n - k] = x[2 * k + 1], z.im[k] = -x[2 * k + 1];
        }
    }
    if (n % 2 == 0) return transform.run(in, {out, nullptr, 1}, count, 1, task.scale, -task.scale);
    const Side<T> done = transform.result(in, count, 1);
    for (int64_t row = 0; row < count; ++row)
        for (int64_t k = 0; k < n; ++k) out[row * n + k] = scaled(done.re[row * step + k], task.scale);
}

template <class T>
void by_circle(const Task<T>& task) {
    const int64_t half = task.inner / 2, begin = task.block, end = begin + task.count;
    const T *wr = task.table + task.plan[kCircle], *wi = wr + half + 1;
    T *x = static_cast<T*>(const_cast<void*>(task.x)), *out = static_cast<T*>(task.out);
    if (task.kind == kUntangle) untangle<T, false>({x, nullptr, 1}, half, wr, wi, out, begin, end);
    else tangle<T, false>(x, half, wr, wi, {out, nullptr, 1}, begin, end, 1);
}

// out[q, k] = z[k, q] coarse[k] fine[k, q], of `width` neighbours; imaginary parts times `sign`.
template <class T>
void turn(const Task<T>& task, const Side<T>& z, int64_t n, int64_t width, T sign) {
    const T *coarse = task.table + task.plan[kCoarse] + task.block * 2 * n, *fine = task.table + task.plan[kFine];
    T* out = static_cast<T*>(task.out);
    constexpr int64_t kTile = 16;
    for (int64_t first = 0; first < n; first += kTile) {
        const int64_t end = first + kTile < n ? first + kTile : n;
        for (int64_t k = first; k < end; ++k)
            for (int64_t q = 0; q < width; ++q) {
                const int64_t at = k * width + q;
                Z<T> value = times(Z<T>{z.re[at], z.im[at]}, coarse[k], coarse[n + k]);
                value = times(value, fine[k * width + q], fine[(n + k) * width + q]);
                z.re[at] = value.re, z.im[at] = value.im * sign;
            }
        for (int64_t q = 0; q < width; ++q)
            for (int64_t k = first; k < end; ++k) {
                out[2 * (q * n + k)] = z.re[k * width + q];
                out[2 * (q * n + k) + 1] = z.im[k * width + q];
            }
    }
}

template <class T>
void transform_all(const Task<T>& task) {
    if (task.kind == kUntangle || task.kind == kTangle) return by_circle(task);
    const int64_t n = task.plan[kLength], work = task.plan[kWork];
    const bool columns = task.kind == kColumns || task.kind == kTurnedColumns, arrays = task.kind == kArrays;
    const int64_t inner = arrays ? task.inner : 1;
    const bool lanes = !columns && work * inner < kLong<T> && task.count >= kMost<T>;
    const int64_t width = columns ? task.count : lanes ? inner * kMost<T> : inner;
    int64_t rows = 1;
    if (lanes) {
        // As many to a lane as fill vectors when they are loaded and stored.
        const bool real = task.kind == kRealRows || task.kind == kRowsToReal, odd = real && task.inner % 2;
        const int64_t vector = odd ? kMost<T> : kMost<T> / 2, wanted = (vector + n * inner - 1) / (n * inner);
        if (wanted * kMost<T> <= task.count) rows = wanted;
    } else if (!columns) {
        const int64_t fit = kTogether / (4 * work * inner * int64_t(sizeof(T)));
        rows = fit < 1 ? 1 : fit < task.count ? fit : task.count;
    }
    constexpr size_t kLine = 64;
    void* memory = alloca(size_t(Transform<T>::room(task, rows, width)) * sizeof(T) + kLine);
    T* room = reinterpret_cast<T*>((uintptr_t(memory) + kLine - 1) / kLine * kLine);
    Transform<T> transform(task, rows, width, room);
    if (lanes && task.kind == kRealRows) return real_batches(task, transform, rows);
    if (lanes && task.kind == kRowsToReal) return real_batches_back(task, transform, rows);
    if (lanes) return complex_batches(task, transform, inner, rows);
    T *x = static_cast<T*>(const_cast<void*>(task.x)), *out = static_cast<T*>(task.out);
    const T sign = task.backward ? T(-1) : T(1), im_scale = task.backward ? -task.scale : task.scale;
    if (task.kind == kColumns)
        return transform.run({x, nullptr, task.inner}, {out, nullptr, task.inner}, 1, sign, task.scale, im_scale);
    if (task.kind == kTurnedColumns)  // `result` is the conjugate of a transform back, and so are the angles
        return turn(task, transform.result({x, nullptr, task.inner}, 1, sign), n, width, sign);
    for (int64_t row = 0; row < task.count; row += rows) {
        const int64_t count = rows < task.count - row ? rows : task.count - row;
        if (task.kind == kRealRows) {
            real_rows(task, transform, x + row * task.inner, out + 2 * row * (task.inner / 2 + 1), count);
        } else if (task.kind == kRowsToReal) {
            rows_to_real(task, transform, x + 2 * row * (task.inner / 2 + 1), out + row * task.inner, count);
        } else {
            const int64_t at = 2 * row * n * inner;
            transform.run({x + at, nullptr, inner}, {out + at, nullptr, inner}, count, sign, task.scale, im_scale);
        }
    }
}

}  // namespace

void transform(const Task<float>& task) { transform_all(task); }
void transform(const Task<double>& task) { transform_all(task); }

#if PB_BYTES == 32
const Kernels<float>* kernels(float) { return kKernels<float>; }
const Kernels<double>* kernels(double) { return kKernels<double>; }
#endif

}  // namespace pb::fourier::PB_NAMESPACE
