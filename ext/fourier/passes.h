// The passes of Fourier transforms, and which of them does what; part of tasks.h.
//
// A transform of n = r_1 ... r_k is k passes over n numbers (Stockham's self-sorting form; Van Loan, 1.7): with s the
// product of the radices before and m = n / (s r),
//
//     out[q + s (r p + j)] = w^(j p) sum over k of exp(-2 pi i j k / r) in[q + s (p + k m)],   p < m, q < s
//
// Between passes real and imaginary parts lie in planes of their own. `width` neighbouring transforms share passes: s
// then starts at `width`.

template <class T>
constexpr int kMost = PB_BYTES / int(sizeof(T));
// Passes of a radix with fewer lanes than these are those of lanes32, to build which again would take a third of this
// file's time. In lanes, larger radices need the registers that came with 64 bytes: transforms of 243 took 2.3 times as
// long.
template <class T>
constexpr int least(int radix) {
    return PB_BYTES == 64 ? (radix <= 5 || radix == 8 ? kMost<T> : 4) : 1;
}

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

// What is written as a result, times a factor. Of zeros it is 0, never -0, whatever sums and signs on the way make of them;
// where a product and a sum are one operation, that costs nothing.
template <class X, class T>
PB_INLINE X scaled(X x, T factor) {
    return x * factor + X{};
}

template <class T, int L, bool Planes>
PB_INLINE void write(const Side<T>& out, int64_t at, Z<V<T, L>> z, T re_scale, T im_scale) {
    if constexpr (Planes) {
        store<T, L>(out.re + at, z.re), store<T, L>(out.im + at, z.im);
    } else if constexpr (L == 1) {
        out.re[2 * at] = scaled(z.re, re_scale), out.re[2 * at + 1] = scaled(z.im, im_scale);
    } else {
        const V<T, L> re = scaled(z.re, re_scale), im = scaled(z.im, im_scale);
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

// The next of the transforms that a pass is for.
template <bool InPlanes, bool OutPlanes, class T>
PB_INLINE void advance(Pass<T>& g) {
    g.in.re += InPlanes ? g.in_step : 2 * g.in_step;
    g.out.re += OutPlanes ? g.out_step : 2 * g.out_step;
    if constexpr (InPlanes) g.in.im += g.in_step;
    if constexpr (OutPlanes) g.out.im += g.out_step;
}

// Lanes along neighbours.
template <class T, int R, int L, bool InPlanes, bool OutPlanes>
void along_neighbours(const Pass<T>& given) {
    Pass<T> g = given;  // which nothing that is stored may be part of
    const int64_t step = g.m * g.s * g.in.stride;
    const auto line = [&](int64_t p, int64_t t, auto is_turned) PB_INLINED {
        const int64_t from = (p * g.s + t) * g.in.stride, to = (p * R * g.s + t) * g.out.stride;
        each<L>(g.width, [&](int64_t q) PB_INLINED {
            Z<V<T, L>> z[R];
            PB_UNROLL for (int k = 0; k < R; ++k) z[k] = read<T, L, InPlanes>(g.in, from + k * step + q, g.in_sign);
            dft_of<T, R>(z);
            if constexpr (decltype(is_turned)::value)
                PB_UNROLL for (int j = 1; j < R; ++j)
                    z[j] = times(z[j], g.wr[(j - 1) * g.m + p], g.wi[(j - 1) * g.m + p]);
            PB_UNROLL for (int j = 0; j < R; ++j)
                write<T, L, OutPlanes>(g.out, to + j * g.s * g.out.stride + q, z[j], g.re_scale, g.im_scale);
        });
    };
    for (int64_t done = 0;;) {
        for (int64_t t = 0; t < g.s; ++t) line(0, t, std::false_type());
        if constexpr (OutPlanes)  // only the last pass writes complex numbers, and has p = 0 alone
            for (int64_t p = 1; p < g.m; ++p)
                for (int64_t t = 0; t < g.s; ++t) line(p, t, std::true_type());
        if (++done == g.count) return;
        advance<InPlanes, OutPlanes>(g);
    }
}

// Lanes along p, for rows of S < L places; to planes.
template <class T, int R, int L, int S, bool InPlanes>
void along_rows(const Pass<T>& given) {
    Pass<T> g = given;
    const int64_t total = g.m * S;
    for (int64_t done = 0;;) {
        each<L>(total, [&](int64_t u) PB_INLINED {
            Z<V<T, L>> z[R];
            PB_UNROLL for (int k = 0; k < R; ++k) z[k] = read<T, L, InPlanes>(g.in, u + k * total, g.in_sign);
            dft_of<T, R>(z);
            PB_UNROLL for (int j = 1; j < R; ++j) {
                const int64_t at = (j - 1) * g.m + u / S;
                if constexpr (S == 1) z[j] = times(z[j], load<T, L>(g.wr + at), load<T, L>(g.wi + at));
                else z[j] = times(z[j], spread<T, L, S>(g.wr + at), spread<T, L, S>(g.wi + at));
            }
            V<T, L> parts[R];
            PB_UNROLL for (int j = 0; j < R; ++j) parts[j] = z[j].re;
            store_side_by_side<T, L, S, R>(g.out.re + u * R, parts);
            PB_UNROLL for (int j = 0; j < R; ++j) parts[j] = z[j].im;
            store_side_by_side<T, L, S, R>(g.out.im + u * R, parts);
        });
        if (++done == g.count) return;
        advance<InPlanes, true>(g);
    }
}

// Element j and R - j of the transforms of a prime R = 2 half + 1 by which it has half as many products: their sum, and
// their difference.
template <class Vec>
struct Folded {
    static constexpr int64_t kHalf = kLargestRadix / 2;
    Z<Vec> sums[kHalf], apart[kHalf];
    Z<Vec> first, total;
};

template <class T, int L>
PB_INLINE void fold(const Pass<T>& g, int64_t from, int64_t step, Folded<V<T, L>>& folded) {
    folded.first = folded.total = read<T, L, true>(g.in, from, 1);
    for (int64_t j = 0; j < g.half; ++j) {
        const Z<V<T, L>> a = read<T, L, true>(g.in, from + (j + 1) * step, 1);
        const Z<V<T, L>> b = read<T, L, true>(g.in, from + (2 * g.half - j) * step, 1);
        folded.sums[j] = a + b, folded.apart[j] = a - b;
        folded.total = folded.total + folded.sums[j];
    }
}

// Result k and R - k from what the angles' cosines and sines make of sums and differences, turned by the pass's angles.
template <class T, int L>
PB_INLINE void unfold(const Pass<T>& g, int64_t p, int64_t k, int64_t to, int64_t step, Z<V<T, L>> even, Z<V<T, L>> odd) {
    Z<V<T, L>> low{even.re - odd.im, even.im + odd.re}, high{even.re + odd.im, even.im - odd.re};
    if (p) {
        const int64_t at = (k - 1) * g.m + p, mirrored = (2 * g.half - k) * g.m + p;
        low = times(low, g.wr[at], g.wi[at]), high = times(high, g.wr[mirrored], g.wi[mirrored]);
    }
    write<T, L, true>(g.out, to + k * step, low, 1, 1);
    write<T, L, true>(g.out, to + (2 * g.half + 1 - k) * step, high, 1, 1);
}

// B results from number k + 1 on, in lanes along neighbours.
template <class T, int L, int B>
PB_INLINE void results_of(const Pass<T>& g, const Folded<V<T, L>>& folded, int64_t p, int64_t k, int64_t to, int64_t step) {
    Z<V<T, L>> even[B], odd[B];
    PB_UNROLL for (int b = 0; b < B; ++b) even[b] = folded.first, odd[b] = Z<V<T, L>>{};
    for (int64_t j = 0; j < g.half; ++j)
        PB_UNROLL for (int b = 0; b < B; ++b) {
            const T c = g.cr[j * g.half + k + b], s = g.ci[j * g.half + k + b];
            even[b] = {even[b].re + folded.sums[j].re * c, even[b].im + folded.sums[j].im * c};
            odd[b] = {odd[b].re + folded.apart[j].re * s, odd[b].im + folded.apart[j].im * s};
        }
    PB_UNROLL for (int b = 0; b < B; ++b) unfold<T, L>(g, p, k + b + 1, to, step, even[b], odd[b]);
}

// B vectors of results from number k + 1 on; lanes behind the last mean nothing.
template <class T, int B>
PB_INLINE void lanes_of_results(const Pass<T>& g, const Folded<T>& folded, int64_t k, Z<T*> even, Z<T*> odd) {
    constexpr int L = kMost<T>;
    using Lane = V<T, L>;
    Z<Lane> evens[B], odds[B];
    PB_UNROLL for (int b = 0; b < B; ++b) evens[b] = {Lane{} + folded.first.re, Lane{} + folded.first.im}, odds[b] = Z<Lane>{};
    for (int64_t j = 0; j < g.half; ++j)
        PB_UNROLL for (int b = 0; b < B; ++b) {
            const Lane c = load<T, L>(g.cr + j * g.half + k + b * L), s = load<T, L>(g.ci + j * g.half + k + b * L);
            evens[b] = {evens[b].re + c * folded.sums[j].re, evens[b].im + c * folded.sums[j].im};
            odds[b] = {odds[b].re + s * folded.apart[j].re, odds[b].im + s * folded.apart[j].im};
        }
    PB_UNROLL for (int b = 0; b < B; ++b) {
        store<T, L>(even.re + k + b * L, evens[b].re), store<T, L>(even.im + k + b * L, evens[b].im);
        store<T, L>(odd.re + k + b * L, odds[b].re), store<T, L>(odd.im + k + b * L, odds[b].im);
    }
}

// A prime without a codelet, from planes to planes: lanes along neighbours, or along results where these are too few (L
// is 1). Either way the products of a result are added in the order of j.
template <class T, int L>
void any_prime(const Pass<T>& given) {
    Pass<T> g = given;
    const int64_t in_step = g.m * g.s * g.in.stride, out_step = g.s * g.out.stride, radix = 2 * g.half + 1;
    Folded<V<T, L>> folded;
    for (int64_t done = 0;;) {
        for (int64_t p = 0; p < g.m; ++p)
            for (int64_t t = 0; t < g.s; ++t)
                each<L>(g.width, [&](int64_t q) PB_INLINED {
                    const int64_t from = (p * g.s + t) * g.in.stride + q, to = (p * radix * g.s + t) * g.out.stride + q;
                    fold<T, L>(g, from, in_step, folded);
                    write<T, L, true>(g.out, to, folded.total, 1, 1);
                    int64_t k = 0;
                    if constexpr (L > 1) {
                        for (; k + 2 < g.half; k += 3) results_of<T, L, 3>(g, folded, p, k, to, out_step);
                        for (; k < g.half; ++k) results_of<T, L, 1>(g, folded, p, k, to, out_step);
                    } else {
                        constexpr int64_t kRoom = kLargestRadix / 2 + 2 * kMost<T>, kTwo = 2 * kMost<T>;
                        T parts[4][kRoom];
                        const Z<T*> even{parts[0], parts[1]}, odd{parts[2], parts[3]};
                        for (; k + kMost<T> < g.half; k += kTwo) lanes_of_results<T, 2>(g, folded, k, even, odd);
                        if (k < g.half) lanes_of_results<T, 1>(g, folded, k, even, odd);
                        for (k = 0; k < g.half; ++k)
                            unfold<T, 1>(g, p, k + 1, to, out_step, {even.re[k], even.im[k]}, {odd.re[k], odd.im[k]});
                    }
                });
        if (++done == g.count) return;
        advance<true, true>(g);
    }
}

// Radices whose passes read and write complex numbers; others go from planes to planes.
constexpr bool is_direct(int radix) { return radix == 4 || radix == 8 || radix == 5; }

template <class T, int R, int L>
constexpr Kernel<T> kernel_of(int way, bool in_planes, bool out_planes) {
    if (way == kNeighbours) {
        if constexpr (is_direct(R) && L > 1) {
            if (!in_planes) return along_neighbours<T, R, L, false, true>;
            if (!out_planes) return along_neighbours<T, R, L, true, false>;
        }
        return along_neighbours<T, R, L, true, true>;
    }
    if constexpr (L > 4)
        if (way == kRows4) return along_rows<T, R, L, 4, true>;
    if constexpr (L > 8)
        if (way == kRows8) return along_rows<T, R, L, 8, true>;
    if constexpr (L > 1) {
        if constexpr (is_direct(R))
            if (!in_planes) return along_rows<T, R, L, 1, false>;
        return along_rows<T, R, L, 1, true>;
    }
    return nullptr;  // one number is no lanes
}

template <class T, int R>
constexpr Kernels<T> kernels_of() {
    Kernels<T> all{};
    for (int way = 0; way < kWays; ++way)
        for (int in = 0; in < 2; ++in)
            for (int out = 0; out < 2; ++out) {
                if constexpr (least<T>(R) == 1) all.of[0][way][in][out] = kernel_of<T, R, 1>(way, in, out);
                if constexpr (kMost<T> == 2) all.of[1][way][in][out] = kernel_of<T, R, 2>(way, in, out);
                if constexpr (kMost<T> >= 4 && least<T>(R) <= 4) all.of[2][way][in][out] = kernel_of<T, R, 4>(way, in, out);
                if constexpr (kMost<T> >= 8 && least<T>(R) <= 8) all.of[3][way][in][out] = kernel_of<T, R, 8>(way, in, out);
                if constexpr (kMost<T> >= 16) all.of[4][way][in][out] = kernel_of<T, R, 16>(way, in, out);
            }
    return all;
}

template <class T>
constexpr Kernels<T> kKernels[] = {
    {}, {}, kernels_of<T, 2>(), kernels_of<T, 3>(), kernels_of<T, 4>(), kernels_of<T, 5>(), {}, kernels_of<T, 7>(),
    kernels_of<T, 8>(), kernels_of<T, 9>(), {}, kernels_of<T, 11>(), {}, kernels_of<T, 13>()};

constexpr int64_t kLargestCodelet = 13;

template <class T, int L>
constexpr Kernel<T> any_prime_in() {
    if constexpr (L <= kMost<T>) return any_prime<T, L>;
    else return nullptr;
}
template <class T>
constexpr Kernel<T> kAnyPrime[] = {any_prime_in<T, 1>(), any_prime_in<T, 2>(), any_prime_in<T, 4>(), any_prime_in<T, 8>(),
                                   any_prime_in<T, 16>()};

// What does a pass of a radix, in so many lanes (an exponent).
template <class T>
PB_INLINE Kernel<T> kernel_for(int64_t radix, int lanes, int way, bool in_planes, bool out_planes) {
    if (radix > kLargestCodelet) return kAnyPrime<T>[lanes];
#if PB_BYTES == 64
    if (1 << lanes < least<T>(int(radix))) return lanes32::kernels(T(0))[radix].of[lanes][way][in_planes][out_planes];
#endif
    return kKernels<T>[radix].of[lanes][way][in_planes][out_planes];
}

// The most lanes that `n` elements fill, as an exponent.
template <class T>
PB_INLINE int lanes_of(int64_t n) {
    if constexpr (kMost<T> >= 16)
        if (n >= 16) return 4;
    if constexpr (kMost<T> >= 8)
        if (n >= 8) return 3;
    if constexpr (kMost<T> >= 4)
        if (n >= 4) return 2;
    if constexpr (kMost<T> == 2)
        if (n >= 2) return 1;
    return 0;
}

// function(q, constant of lanes) for vectors of n elements; some may be done twice.
template <class T, class Function>
PB_INLINE void in_lanes(int64_t n, const Function& function) {
    constexpr int L = kMost<T>, Few = L > 4 ? 4 : 1;
    if (n >= L) return each<L>(n, [&](int64_t q) PB_INLINED { function(q, std::integral_constant<int, L>()); });
    if (Few > 1 && n >= Few)
        return each<Few>(n, [&](int64_t q) PB_INLINED { function(q, std::integral_constant<int, Few>()); });
    for (int64_t q = 0; q < n; ++q) function(q, std::integral_constant<int, 1>());
}

// The same, each element once: for work in place.
template <class T, class Function>
PB_INLINE void in_lanes_once(int64_t n, const Function& function) {
    constexpr int L = kMost<T>;
    int64_t q = 0;
    for (; q + L <= n; q += L) function(q, std::integral_constant<int, L>());
    if constexpr (L > 4)
        for (; q + 4 <= n; q += 4) function(q, std::integral_constant<int, 4>());
    for (; q < n; ++q) function(q, std::integral_constant<int, 1>());
}
