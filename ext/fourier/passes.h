// The passes of Fourier transforms for vectors of PB_BYTES bytes, in a namespace PB_NAMESPACE of their own: the file is
// compiled once for each width, with the instructions that go with it, and uses no function that others might share.
//
// A transform of n = r_1 ... r_k is k passes over n numbers (Stockham's self-sorting form; Van Loan, 1.7): with s the
// product of the radices before and m = n / (s r),
//
//     out[q + s (r p + j)] = w^(j p) sum over k of exp(-2 pi i j k / r) in[q + s (p + k m)],   p < m, q < s
//
// Between passes real and imaginary parts lie in planes of their own. `width` neighbouring transforms share passes: s
// then starts at `width`. Lengths with a large prime are convolutions with a chirp (Bluestein; 4.2.3). Transforms back
// are those of the conjugate, conjugated. A real transform of even length is a complex one of half the length with a
// pass before or after it. No sum depends on the width of vectors.
#include <alloca.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fourier/fourier.h"

namespace pb::fourier::PB_NAMESPACE {

namespace {

#include "fourier/vectors.h"
#include "fourier/codelets.h"

// Elements behind each plane: planes that all began at a multiple of 4 KB would compete for the same cache sets.
constexpr int64_t kPadding = 272;

// No length has more: 2^14 is above the longest.
constexpr int kMostPasses = 14;
// Rows of up to so many numbers are transformed several at a time.
constexpr int64_t kShort = 128;

template <class T>
constexpr int kMost = PB_BYTES / int(sizeof(T));

// Rows of complex numbers, side by side (im is null, and neighbouring rows are `stride` apart) or in planes.
template <class T>
struct Side {
    T *re, *im;
    int64_t stride;
    bool is_planes() const { return im; }
};

// What a pass does: m values of p, rows of s places of `width` neighbours.
template <class T>
struct Pass {
    Side<T> in, out;
    int64_t m, s, width;
    const T *wr, *wi;  // [radix - 1, m]
    T in_sign, re_scale, im_scale;
};

template <class T, int L, bool Planes>
PB_INLINE Z<V<T, L>> read(const Side<T>& in, int64_t at, T sign) {
    if constexpr (Planes) {
        return {load<T, L>(in.re + at), load<T, L>(in.im + at)};
    } else if constexpr (L == 1) {
        return {in.re[2 * at], in.re[2 * at + 1] * sign};
    } else {
        const V<T, L> a = load<T, L>(in.re + 2 * at), b = load<T, L>(in.re + 2 * at + L);
        return {second<T, L, 0>(a, b), second<T, L, 1>(a, b) * sign};
    }
}

template <class T, int L, bool Planes>
PB_INLINE void write(const Side<T>& out, int64_t at, Z<V<T, L>> z, T re_scale, T im_scale) {
    if constexpr (Planes) {
        store<T, L>(out.re + at, z.re), store<T, L>(out.im + at, z.im);
    } else if constexpr (L == 1) {
        out.re[2 * at] = z.re * re_scale, out.re[2 * at + 1] = z.im * im_scale;
    } else {
        const V<T, L> re = z.re * re_scale, im = z.im * im_scale;
        store<T, L>(out.re + 2 * at, zip<T, L, 0>(re, im)), store<T, L>(out.re + 2 * at + L, zip<T, L, 1>(re, im));
    }
}

// function(q) for vectors of L of n >= L elements; the last ones may be done twice.
template <int L, class Function>
PB_INLINE void each(int64_t n, const Function& function) {
    for (int64_t q = 0;;) {
        function(q);
        q += L;
        if (q >= n) return;
        if (q > n - L) q = n - L;
    }
}

// Lanes along neighbours.
template <class T, int R, int L, bool InPlanes, bool OutPlanes>
void along_neighbours(const Pass<T>& given) {
    const Pass<T> g = given;  // which nothing that is stored may be part of
    const int64_t step = g.m * g.s * g.in.stride;
    const auto line = [&](int64_t p, int64_t t, auto is_turned) PB_INLINED {
        const int64_t from = (p * g.s + t) * g.in.stride, to = (p * R * g.s + t) * g.out.stride;
        each<L>(g.width, [&](int64_t q) PB_INLINED {
            Z<V<T, L>> z[R];
            for (int k = 0; k < R; ++k) z[k] = read<T, L, InPlanes>(g.in, from + k * step + q, g.in_sign);
            dft<T, R>(z);
            if constexpr (decltype(is_turned)::value)
                for (int j = 1; j < R; ++j) z[j] = times(z[j], g.wr[(j - 1) * g.m + p], g.wi[(j - 1) * g.m + p]);
            for (int j = 0; j < R; ++j)
                write<T, L, OutPlanes>(g.out, to + j * g.s * g.out.stride + q, z[j], g.re_scale, g.im_scale);
        });
    };
    for (int64_t t = 0; t < g.s; ++t) line(0, t, std::false_type());
    for (int64_t p = 1; p < g.m; ++p)
        for (int64_t t = 0; t < g.s; ++t) line(p, t, std::true_type());
}

// Lanes along p, for rows of S < L places; to planes.
template <class T, int R, int L, int S, bool InPlanes>
void along_rows(const Pass<T>& given) {
    const Pass<T> g = given;
    const int64_t total = g.m * S;
    each<L>(total, [&](int64_t u) PB_INLINED {
        Z<V<T, L>> z[R];
        for (int k = 0; k < R; ++k) z[k] = read<T, L, InPlanes>(g.in, u + k * total, g.in_sign);
        dft<T, R>(z);
        for (int j = 1; j < R; ++j) {
            const int64_t at = (j - 1) * g.m + u / S;
            if constexpr (S == 1) z[j] = times(z[j], load<T, L>(g.wr + at), load<T, L>(g.wi + at));
            else z[j] = times(z[j], spread<T, L, S>(g.wr + at), spread<T, L, S>(g.wi + at));
        }
        V<T, L> parts[R];
        for (int j = 0; j < R; ++j) parts[j] = z[j].re;
        store_side_by_side<T, L, S, R>(g.out.re + u * R, parts);
        for (int j = 0; j < R; ++j) parts[j] = z[j].im;
        store_side_by_side<T, L, S, R>(g.out.im + u * R, parts);
    });
}

// Radices whose passes read and write complex numbers; others go from planes to planes.
constexpr bool is_direct(int radix) { return radix == 4 || radix == 8 || radix == 5; }

template <class T>
using Kernel = void (*)(const Pass<T>&);

template <class T, int R, int L>
Kernel<T> kernel_in(int along, bool in_planes, bool out_planes) {
    if (along == 0) {
        if constexpr (is_direct(R) && L > 1) {
            if (!in_planes) return along_neighbours<T, R, L, false, true>;
            if (!out_planes) return along_neighbours<T, R, L, true, false>;
        }
        return along_neighbours<T, R, L, true, true>;
    }
    if constexpr (L > 4)
        if (along == 4) return along_rows<T, R, L, 4, true>;
    if constexpr (L > 8)
        if (along == 8) return along_rows<T, R, L, 8, true>;
    if constexpr (is_direct(R) && L > 1)
        if (!in_planes) return along_rows<T, R, L, 1, false>;
    return along_rows<T, R, L, 1, true>;
}

template <class T, int R>
Kernel<T> kernel_of(int lanes, int along, bool in_planes, bool out_planes) {
    if constexpr (kMost<T> >= 16)
        if (lanes == 16) return kernel_in<T, R, 16>(along, in_planes, out_planes);
    if constexpr (kMost<T> >= 8)
        if (lanes == 8) return kernel_in<T, R, 8>(along, in_planes, out_planes);
    if constexpr (kMost<T> >= 4)
        if (lanes == 4) return kernel_in<T, R, 4>(along, in_planes, out_planes);
    if constexpr (kMost<T> == 2)
        if (lanes == 2) return kernel_in<T, R, 2>(along, in_planes, out_planes);
    return kernel_in<T, R, 1>(along, in_planes, out_planes);
}

template <class T>
Kernel<T> kernel_for(int64_t radix, int lanes, int along, bool in_planes, bool out_planes) {
    switch (radix) {
        case 2: return kernel_of<T, 2>(lanes, along, in_planes, out_planes);
        case 3: return kernel_of<T, 3>(lanes, along, in_planes, out_planes);
        case 4: return kernel_of<T, 4>(lanes, along, in_planes, out_planes);
        case 5: return kernel_of<T, 5>(lanes, along, in_planes, out_planes);
        case 7: return kernel_of<T, 7>(lanes, along, in_planes, out_planes);
        case 8: return kernel_of<T, 8>(lanes, along, in_planes, out_planes);
        case 9: return kernel_of<T, 9>(lanes, along, in_planes, out_planes);
        case 11: return kernel_of<T, 11>(lanes, along, in_planes, out_planes);
        default: return kernel_of<T, 13>(lanes, along, in_planes, out_planes);
    }
}

// The most lanes that `n` elements fill.
template <class T>
int lanes_of(int64_t n) {
    int lanes = kMost<T>;
    while (lanes > n) lanes = lanes > 4 ? lanes / 2 : 1;
    return lanes;
}

// function(q, constant of lanes) for vectors of n elements.
template <class T, class Function>
PB_INLINE void in_lanes(int64_t n, const Function& function) {
    if (n >= kMost<T>) each<kMost<T>>(n, [&](int64_t q) PB_INLINED { function(q, std::integral_constant<int, kMost<T>>()); });
    else for (int64_t q = 0; q < n; ++q) function(q, std::integral_constant<int, 1>());
}

template <class T>
class Transform {
  public:
    Transform(const Task<T>& task, int64_t width, T* room)
        : plan_(task.plan), table_(task.table), n_(task.plan[kLength]), work_(task.plan[kWork]), width_(width) {
        const int64_t size = work_ * width + kPadding;
        for (int k = 0; k < 2; ++k) planes_[k] = {room + 2 * k * size, room + (2 * k + 1) * size, width};
    }

    static int64_t room(const Task<T>& task, int64_t width) {
        return 4 * (task.plan[kWork] * width + kPadding);
    }

    const Side<T>& planes(int k) const { return planes_[k]; }

    // The transform of `in` (complex numbers, times 1 or i's sign; or planes 1) to complex numbers `out`.
    void run(const Side<T>& in, const Side<T>& out, T in_sign, T re_scale, T im_scale) {
        if (plan_[kChirp] < 0) passes(in, planes_[0], planes_[1], &out, in_sign, re_scale, im_scale);
        else convolution(in, &out, in_sign, re_scale, im_scale);
    }

    // The planes that hold the transform.
    Side<T> result(const Side<T>& in, T in_sign) {
        if (plan_[kChirp] < 0) return passes(in, planes_[0], planes_[1], nullptr, in_sign, 1, 1);
        return convolution(in, nullptr, in_sign, 1, 1);
    }

    // From complex numbers, whose rows are `stride` apart, to planes, and back.
    void gather(const Side<T>& in, const Side<T>& planes, int64_t rows, T sign) const {
        rows_of(in, rows, [&](int64_t from, int64_t to, auto lanes) PB_INLINED {
            constexpr int L = decltype(lanes)::value;
            write<T, L, true>(planes, to, read<T, L, false>(in, from, sign), 1, 1);
        });
    }
    void scatter(const Side<T>& planes, const Side<T>& out, int64_t rows, T re_scale, T im_scale) const {
        rows_of(out, rows, [&](int64_t to, int64_t from, auto lanes) PB_INLINED {
            constexpr int L = decltype(lanes)::value;
            write<T, L, false>(out, to, read<T, L, true>(planes, from, 1), re_scale, im_scale);
        });
    }

  private:
    // function(place in `side`, place in planes, lanes) for all rows of neighbours.
    template <class Function>
    PB_INLINE void rows_of(const Side<T>& side, int64_t rows, const Function& function) const {
        if (side.stride == width_)
            return in_lanes<T>(rows * width_, [&](int64_t q, auto lanes) PB_INLINED { function(q, q, lanes); });
        for (int64_t row = 0; row < rows; ++row)
            in_lanes<T>(width_, [&](int64_t q, auto lanes) PB_INLINED { function(row * side.stride + q, row * width_ + q, lanes); });
    }

    // The passes of transforms from one kind of memory to another: chosen once, run for each row.
    struct Steps {
        int64_t count = 0;
        bool gathers = false, scatters = false;
        Side<T> result{};  // where it lies, if not in memory of the caller's
        struct {
            Kernel<T> kernel;
            Pass<T> pass;
        } of[kMostPasses];
    };

    // `in` to a, a to b, b to a, ...; to `out` in the end, if there is one. Gives where the result lies else.
    Side<T> passes(const Side<T>& in, const Side<T>& a, const Side<T>& b, const Side<T>* out, T in_sign, T re_scale,
                   T im_scale) {
        const bool is_known = steps_.count && steps_of_ == a.re && in.is_planes() == in_planes_ && bool(out) == has_out_;
        if (!is_known) {
            prepare(in, a, b, out, in_sign, re_scale, im_scale);
            steps_of_ = a.re, in_planes_ = in.is_planes(), has_out_ = bool(out);
        }
        Steps& steps = steps_;
        if (steps.gathers) gather(in, b, work_, in_sign);
        else steps.of[0].pass.in.re = in.re, steps.of[0].pass.in.im = in.im;
        if (out && !steps.scatters) steps.of[steps.count - 1].pass.out.re = out->re;
        for (int64_t i = 0; i < steps.count; ++i) steps.of[i].kernel(steps.of[i].pass);
        if (steps.scatters) scatter(steps.result, *out, work_, re_scale, im_scale);
        return steps.result;
    }

    void prepare(const Side<T>& in, const Side<T>& a, const Side<T>& b, const Side<T>* out, T in_sign, T re_scale,
                 T im_scale) {
        const int64_t* step = plan_ + kFields;
        Steps& steps = steps_;
        steps.count = plan_[kPasses];
        steps.gathers = steps.scatters = false;
        int64_t s = 1;
        const Side<T>* from = &in;
        for (int64_t i = 0; i < steps.count; ++i, step += 3) {
            const int64_t radix = step[0], m = step[1];
            const Side<T>& to = i % 2 ? b : a;
            const bool last = i == steps.count - 1 && out;
            Pass<T>& g = steps.of[i].pass;  // field by field, as it is read: copies of it would wait for the stores
            const auto put = [](Side<T>& side, const Side<T>& value) {
                side.re = value.re, side.im = value.im, side.stride = value.stride;
            };
            put(g.in, *from), put(g.out, last ? *out : to);
            g.m = m, g.s = s, g.width = width_, g.wr = table_ + step[2], g.wi = g.wr + (radix - 1) * m;
            g.in_sign = in_sign, g.re_scale = re_scale, g.im_scale = im_scale;
            const auto together = [&] { return g.in.stride == width_ && g.out.stride == width_; };
            int lanes = lanes_of<T>(together() ? s * width_ : width_), along = 0;
            if (together() && m > 1 && lanes < kMost<T>) {
                const int64_t run = s * width_;
                const int more = lanes_of<T>(m * run);
                if (more > run && (run == 1 || (g.in.is_planes() && (run == 4 || run == 8) && more > 4)))
                    lanes = more, along = int(run);
            }
            const bool direct = is_direct(int(radix)) && lanes > 1;
            if (!g.in.is_planes() && (!direct || !g.out.is_planes())) {
                steps.gathers = true;
                put(g.in, b);
            }
            if (last && !(direct && g.in.is_planes())) {
                steps.scatters = true;
                put(g.out, to);
            }
            if (together()) {
                g.width = s * width_, g.s = 1;
                g.in.stride = g.out.stride = g.width;
            } else {
                along = 0;
            }
            if (!along) lanes = lanes_of<T>(g.width);
            steps.of[i].kernel = kernel_for<T>(radix, lanes, along, g.in.is_planes(), g.out.is_planes());
            from = &to;
            s *= radix;
        }
        put_result(*from);
    }
    void put_result(const Side<T>& side) {
        steps_.result.re = side.re, steps_.result.im = side.im, steps_.result.stride = side.stride;
    }

    // The transform as a convolution with a chirp: forward, times the chirp's transform, and back, which is forward with
    // real and imaginary parts in each other's place.
    Side<T> convolution(const Side<T>& in, const Side<T>* out, T in_sign, T re_scale, T im_scale) {
        const Side<T> a = planes_[0], b = planes_[1];
        const T *cr = table_ + plan_[kChirp], *ci = cr + n_, *kr = table_ + plan_[kSpectrum], *ki = kr + work_;
        if (in.is_planes()) times_table(in, b, n_, cr, ci);
        else {
            gather(in, b, n_, in_sign);
            times_table(b, b, n_, cr, ci);
        }
        std::memset(b.re + n_ * width_, 0, size_t((work_ - n_) * width_) * sizeof(T));
        std::memset(b.im + n_ * width_, 0, size_t((work_ - n_) * width_) * sizeof(T));
        const Side<T> there = passes(b, a, b, nullptr, 1, 1, 1);
        times_table(there, there, work_, kr, ki);
        const auto exchanged = [](const Side<T>& x) { return Side<T>{x.im, x.re, x.stride}; };
        const bool in_a = there.re == a.re;
        const Side<T> back = passes(exchanged(there), exchanged(in_a ? b : a), exchanged(in_a ? a : b), nullptr, 1, 1, 1);
        const Side<T> done = exchanged(back);
        times_table(done, done, n_, cr, ci);
        if (out) scatter(done, *out, n_, re_scale, im_scale);
        return done;
    }

    // out[row] = in[row] (re[row] + i im[row])
    void times_table(const Side<T>& in, const Side<T>& out, int64_t rows, const T* re, const T* im) const {
        if (width_ == 1)
            return in_lanes_once(rows, [&](int64_t q, auto lanes) PB_INLINED {
                constexpr int L = decltype(lanes)::value;
                write<T, L, true>(out, q, times(read<T, L, true>(in, q, 1), load<T, L>(re + q), load<T, L>(im + q)), 1, 1);
            });
        for (int64_t row = 0; row < rows; ++row)
            in_lanes_once(width_, [&](int64_t q, auto lanes) PB_INLINED {
                constexpr int L = decltype(lanes)::value;
                const int64_t at = row * width_ + q;
                write<T, L, true>(out, at, times(read<T, L, true>(in, at, 1), re[row], im[row]), 1, 1);
            });
    }

    // As `in_lanes`, but no element is done twice: for work in place.
    template <class Function>
    PB_INLINE void in_lanes_once(int64_t n, const Function& function) const {
        int64_t q = 0;
        for (; q + kMost<T> <= n; q += kMost<T>) function(q, std::integral_constant<int, kMost<T>>());
        for (; q < n; ++q) function(q, std::integral_constant<int, 1>());
    }

    const int64_t* plan_;
    const T* table_;
    const int64_t n_, work_, width_;
    Side<T> planes_[2];
    Steps steps_;
    const T* steps_of_ = nullptr;
    bool in_planes_ = false, has_out_ = false;
};

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

template <class T>
void real_rows(const Task<T>& task, Transform<T>& transform, int64_t n) {
    const T* x = static_cast<const T*>(task.x);
    T* out = static_cast<T*>(task.out);
    const int64_t half = n / 2;
    const T *wr = task.table + task.plan[kCircle], *wi = wr + half + 1;
    for (int64_t row = 0; row < task.count; ++row, x += n, out += 2 * (half + 1)) {
        if (n % 2 == 0) {
            untangle<T, true>(transform.result({const_cast<T*>(x), nullptr, 1}, 1), half, wr, wi, out, 0, half);
            continue;
        }
        const Side<T>& in = transform.planes(1);
        std::memcpy(in.re, x, size_t(n) * sizeof(T));
        std::memset(in.im, 0, size_t(n) * sizeof(T));
        transform.scatter(transform.result(in, 1), {out, nullptr, 1}, half + 1, 1, 1);
    }
}

template <class T>
void rows_to_real(const Task<T>& task, Transform<T>& transform, int64_t n) {
    const T* x = static_cast<const T*>(task.x);
    T* out = static_cast<T*>(task.out);
    const int64_t half = n / 2;
    const T *wr = task.table + task.plan[kCircle], *wi = wr + half + 1;
    const Side<T>& in = transform.planes(1);
    for (int64_t row = 0; row < task.count; ++row, x += 2 * (half + 1), out += n) {
        if (n % 2 == 0) {
            tangle<T, true>(x, half, wr, wi, in, 0, half, T(-1));
            transform.run(in, {out, nullptr, 1}, 1, task.scale, -task.scale);
            continue;
        }
        in.re[0] = x[0], in.im[0] = 0;
        for (int64_t k = 1; k <= half; ++k) {
            in.re[k] = in.re[n - k] = x[2 * k];
            in.im[n - k] = x[2 * k + 1], in.im[k] = -x[2 * k + 1];
        }
        const Side<T> done = transform.result(in, 1);
        for (int64_t k = 0; k < n; ++k) out[k] = done.re[k] * task.scale;
    }
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

// Transforms of rows, as many at a time as fill a vector: short ones would fill parts of one. The last ones may be done
// twice.
template <class T>
void short_rows(const Task<T>& task, Transform<T>& transform, T* room, T sign, T im_scale) {
    struct Pair {
        T re, im;
    };
    constexpr int64_t W = kMost<T>;
    const int64_t n = task.plan[kLength];
    Pair *in = reinterpret_cast<Pair*>(room), *made = in + n * W;
    const Pair* x = static_cast<const Pair*>(task.x);
    Pair* out = static_cast<Pair*>(task.out);
    each<W>(task.count, [&](int64_t row) PB_INLINED {
        for (int64_t k = 0; k < n; ++k)
            for (int64_t r = 0; r < W; ++r) in[k * W + r] = x[(row + r) * n + k];
        transform.run({&in->re, nullptr, W}, {&made->re, nullptr, W}, sign, task.scale, im_scale);
        for (int64_t r = 0; r < W; ++r)
            for (int64_t k = 0; k < n; ++k) out[(row + r) * n + k] = made[k * W + r];
    });
}

template <class T>
void transform_all(const Task<T>& task) {
    if (task.kind == kUntangle || task.kind == kTangle) return by_circle(task);
    const int64_t n = task.plan[kLength], count = task.count, inner = task.inner;
    const bool columns = task.kind == kColumns || task.kind == kTurnedColumns;
    const bool together = task.kind == kRows && n <= kShort && count >= kMost<T>;
    const int64_t width = columns ? count : together ? kMost<T> : 1;
    constexpr size_t kLine = 64;
    const int64_t planes = Transform<T>::room(task, width), pairs = together ? 4 * n * width : 0;
    void* memory = alloca(size_t(planes + pairs) * sizeof(T) + kLine);
    T* room = reinterpret_cast<T*>((uintptr_t(memory) + kLine - 1) / kLine * kLine);
    Transform<T> work(task, width, room);
    T* x = static_cast<T*>(const_cast<void*>(task.x));
    T* out = static_cast<T*>(task.out);
    const T sign = task.backward ? T(-1) : T(1), im_scale = task.backward ? -task.scale : task.scale;
    switch (task.kind) {
        case kRows:
            if (together) return short_rows(task, work, room + planes, sign, im_scale);
            for (int64_t row = 0; row < count; ++row, x += 2 * n, out += 2 * n)
                work.run({x, nullptr, 1}, {out, nullptr, 1}, sign, task.scale, im_scale);
            return;
        case kColumns: return work.run({x, nullptr, inner}, {out, nullptr, inner}, sign, task.scale, im_scale);
        case kTurnedColumns: {
            const Side<T> done = work.result({x, nullptr, inner}, sign);
            // `done` is the conjugate of a transform back, and so are the angles.
            return turn(task, done, n, width, sign);
        }
        case kRealRows: return real_rows(task, work, inner);
        case kRowsToReal: return rows_to_real(task, work, inner);
        default: return;
    }
}

}  // namespace

void transform(const Task<float>& task) { transform_all(task); }
void transform(const Task<double>& task) { transform_all(task); }

}  // namespace pb::fourier::PB_NAMESPACE
