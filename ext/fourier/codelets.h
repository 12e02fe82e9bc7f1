// Forward transforms of R numbers in registers; part of passes.h. With w = exp(-2 pi i / R), X[k] = sum of w^(jk) x[j].
// Primes by the symmetry of cosine and sine, composites r m by r transforms of m and m of r (Van Loan, Computational
// Frameworks for the Fast Fourier Transform, 1992, 1.2 and 2.1).

template <class Vec>
struct Z {
    Vec re, im;
};

template <class Vec>
PB_INLINE Z<Vec> operator+(Z<Vec> x, Z<Vec> y) {
    return {x.re + y.re, x.im + y.im};
}
template <class Vec>
PB_INLINE Z<Vec> operator-(Z<Vec> x, Z<Vec> y) {
    return {x.re - y.re, x.im - y.im};
}
// x (c + i s)
template <class Vec, class Factor>
PB_INLINE Z<Vec> times(Z<Vec> x, Factor c, Factor s) {
    return {x.re * c - x.im * s, x.re * s + x.im * c};
}
// -i x
template <class Vec>
PB_INLINE Z<Vec> turned_back(Z<Vec> x) {
    return {x.im, -x.re};
}

// Cosines and sines of 2 pi k / R for k <= R / 2.
template <int R>
struct Circle;
template <>
struct Circle<3> {
    static constexpr double c[] = {1.0, -0.5}, s[] = {0.0, 0.86602540378443864676};
};
template <>
struct Circle<5> {
    static constexpr double c[] = {1.0, 0.3090169943749474241, -0.8090169943749474241},
                            s[] = {0.0, 0.95105651629515357212, 0.58778525229247312917};
};
template <>
struct Circle<7> {
    static constexpr double c[] = {1.0, 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624},
                            s[] = {0.0, 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048};
};
template <>
struct Circle<9> {
    static constexpr double c[] = {1.0, 0.7660444431189780352, 0.17364817766693034885, -0.5, -0.93969262078590838405},
                            s[] = {0.0, 0.64278760968653932632, 0.98480775301220805937, 0.86602540378443864676,
                                   0.34202014332566873304};
};
template <>
struct Circle<11> {
    static constexpr double c[] = {1.0, 0.84125353283118116886, 0.41541501300188642553, -0.14231483827328514044,
                                   -0.65486073394528506406, -0.95949297361449738989},
                            s[] = {0.0, 0.54064081745559758211, 0.90963199535451837141, 0.98982144188093273238,
                                   0.75574957435425828377, 0.28173255684142969771};
};
template <>
struct Circle<13> {
    static constexpr double c[] = {1.0, 0.8854560256532098959, 0.56806474673115580251, 0.12053668025532305335,
                                   -0.35460488704253562597, -0.74851074817110109863, -0.97094181742605202716},
                            s[] = {0.0, 0.46472317204376854566, 0.82298386589365639458, 0.9927088740980539928,
                                   0.93501624268541482344, 0.66312265824079520238, 0.23931566428755776715};
};

// Factors of the sums of a prime radix, by result and pair of numbers.
template <class T, int R>
struct Turns {
    T c[R / 2][R / 2], s[R / 2][R / 2];
    constexpr Turns() : c(), s() {
        for (int k = 1; k <= R / 2; ++k)
            for (int j = 1; j <= R / 2; ++j) {
                const int turn = j * k % R;
                const bool back = turn > R / 2;
                const int at = back ? R - turn : turn;
                c[k - 1][j - 1] = T(Circle<R>::c[at]), s[k - 1][j - 1] = T(back ? -Circle<R>::s[at] : Circle<R>::s[at]);
            }
    }
};
template <class T, int R>
constexpr Turns<T, R> kTurns{};

template <class T, int R, class Vec>
PB_INLINE void dft(Z<Vec>* x) {
    if constexpr (R == 2) {
        const Z<Vec> a = x[0], b = x[1];
        x[0] = a + b, x[1] = a - b;
    } else if constexpr (R == 4) {
        const Z<Vec> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = turned_back(x[1] - x[3]);
        x[0] = a + c, x[1] = b + d, x[2] = a - c, x[3] = b - d;
    } else if constexpr (R == 8) {
        constexpr T h = T(0.70710678118654752440);
        Z<Vec> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
        dft<T, 4>(even), dft<T, 4>(odd);
        odd[1] = {(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};
        odd[2] = turned_back(odd[2]);
        odd[3] = {(odd[3].im - odd[3].re) * h, -((odd[3].re + odd[3].im) * h)};
        PB_UNROLL for (int k = 0; k < 4; ++k) x[k] = even[k] + odd[k], x[k + 4] = even[k] - odd[k];
    } else if constexpr (R == 9) {
        Z<Vec> part[3][3];
        PB_UNROLL for (int c = 0; c < 3; ++c) {
            PB_UNROLL for (int j = 0; j < 3; ++j) part[c][j] = x[c + 3 * j];
            dft<T, 3>(part[c]);
        }
        PB_UNROLL for (int k = 0; k < 3; ++k) {
            Z<Vec> column[3];
            PB_UNROLL for (int c = 0; c < 3; ++c)
                column[c] = c && k ? times(part[c][k], T(Circle<9>::c[c * k]), T(-Circle<9>::s[c * k])) : part[c][k];
            dft<T, 3>(column);
            PB_UNROLL for (int j = 0; j < 3; ++j) x[k + 3 * j] = column[j];
        }
    } else {
        constexpr int H = R / 2;
        Z<Vec> sums[H], apart[H];
        Z<Vec> total = x[0];
        PB_UNROLL for (int j = 0; j < H; ++j) {
            sums[j] = x[j + 1] + x[R - 1 - j], apart[j] = x[j + 1] - x[R - 1 - j];
            total = total + sums[j];
        }
        const Z<Vec> first = x[0];
        x[0] = total;
        const auto two_results = [&](int k) PB_INLINED {
            Z<Vec> even = first, odd{};
            PB_UNROLL for (int j = 0; j < H; ++j) {
                const T c = kTurns<T, R>.c[k - 1][j], s = kTurns<T, R>.s[k - 1][j];
                even = {even.re + sums[j].re * c, even.im + sums[j].im * c};
                odd = j ? Z<Vec>{odd.re + apart[j].re * s, odd.im + apart[j].im * s}
                        : Z<Vec>{apart[j].re * s, apart[j].im * s};
            }
            odd = turned_back(odd);
            x[k] = even + odd, x[R - k] = even - odd;
        };
        if constexpr (R < 10) {
            PB_UNROLL for (int k = 1; k <= H; ++k) two_results(k);
        } else {  // whose numbers lie in memory anyway: written out it took a third more time to build, and was no quicker
#pragma GCC unroll 1
            for (int k = 1; k <= H; ++k) two_results(k);
        }
    }
}

// The same, once for all passes of a radix whose numbers are too many for registers.
template <class T, int R, class Vec>
__attribute__((noinline)) void dft_in_memory(Z<Vec>* x) {
    dft<T, R>(x);
}
template <class T, int R, class Vec>
PB_INLINE void dft_of(Z<Vec>* x) {
    if constexpr (R > 8) dft_in_memory<T, R>(x);
    else dft<T, R>(x);
}
