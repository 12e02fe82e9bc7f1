"""What each polynomial of loops/math approximates, and with which weight: the mathematics behind the tables."""

from __future__ import annotations

from functools import cache

import mpmath as mp
from minimax import Target

HALF_LN2 = mp.log(2) / 2
SQRT2 = mp.sqrt(2)


def both(name: str, text: str, function, weight, low, high, degree32: int, degree64: int, **more) -> list[Target]:
    """The same target for f32 and f64."""
    make = lambda dtype, degree: Target(
        f"{name}_{dtype.upper()}", dtype, text, function, weight, mp.mpf(low), mp.mpf(high), degree, **more
    )
    return [make("f32", degree32), make("f64", degree64)]


def even(f, drop, power):
    """(f(r) - drop(r)) / r**power as a function of z = r*r; at z = 0 by a point nearby."""

    def g(z):
        r = mp.sqrt(max(z, mp.mpf(10) ** -12))
        return (f(r) - drop(r)) / r**power

    return g


# exp: e^r = 1 + r + r^2 q(r)
exp_q = lambda r: (mp.expm1(r) - r) / r**2
exponential = [
    *both(
        "EXP", "(e^r - 1 - r) / r^2, relative to (e^r - 1) / r^2", exp_q, lambda r: abs(r**2 / mp.expm1(r)),
        -HALF_LN2 * mp.mpf("1.01"), HALF_LN2 * mp.mpf("1.01"), 4, 10,
    ),
    *both(
        "EXP2", "(2^r - 1) / r, relative to 2^r / r", lambda r: (2**r - 1) / r, lambda r: abs(r) / 2**r,
        -0.505, 0.505, 5, 10,
    ),
]

# log1p(f) = f - f^2/2 + f^3 p(f); 2 atanh(s) = 2 s + s z p(z), z = s^2
log_f = lambda f: (mp.log1p(f) - f + f * f / 2) / f**3
atanh_z = even(lambda s: 2 * mp.atanh(s), lambda s: 2 * s, 3)
Z_LOG = ((SQRT2 - 1) / (SQRT2 + 1)) ** 2 * mp.mpf("1.001")
logarithm = [
    Target(
        "LOG_F32", "f32", "(log(1+f) - f + f^2/2) / f^3, relative to log(1+f) / f^3", log_f,
        lambda f: abs(f**3 / mp.log1p(f)), 1 / SQRT2 - mp.mpf("1.0003"), SQRT2 - mp.mpf("0.9997"), 7,
    ),
    Target(
        "LOG_F64", "f64", "(2 atanh(s) - 2 s) / s^3 over z = s^2, relative to 2 atanh(s) / s^3", atanh_z,
        lambda z: z / 2, mp.mpf(0), Z_LOG, 6,
    ),
]

# sin(r) = r + r^3 p(r^2) on half a period
HALF_PI = mp.pi / 2 * mp.mpf("1.01")
QUARTER_PI = mp.pi / 4 * mp.mpf("1.01")
tiny = mp.mpf(10) ** -12
trigonometric = [
    *both(
        "SIN", "(sin r - r) / r^3 over z = r^2, relative to sin r / r^3", even(mp.sin, lambda r: r, 3),
        lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)) if z else z, tiny, HALF_PI**2, 3, 8,
    ),
    *both(
        "TAN", "(tan r - r) / r^3 over z = r^2, relative to tan r / r^3", even(mp.tan, lambda r: r, 3),
        lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)), tiny, QUARTER_PI**2, 6, 14,
    ),
    *both(
        "ATAN", "(atan t - t) / t^3 over z = t^2, relative to atan t / t^3", even(mp.atan, lambda t: t, 3),
        lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)), tiny, mp.mpf(1), 8, 20,
    ),
    *both(
        "ASIN", "(asin t - t) / t^3 over z = t^2, relative to asin t / t^3", even(mp.asin, lambda t: t, 3),
        lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)), tiny, mp.mpf("0.2501"), 4, 12,
    ),
]

# log2(m) = (2 / ln 2) (s + s^3 p(s^2)) for the f32 power, computed in f64; accuracy 2^-40 is plenty
power = [
    Target(
        "LOG2_F64", "f64", "log2((1+s) / (1-s)) / s over z = s^2, relative to itself, to f32 accuracy",
        even(lambda s: 2 * mp.atanh(s) / mp.log(2), lambda s: 0, 1), lambda z: mp.log(2) / 2, tiny, Z_LOG, 5,
    ),
    Target(
        "EXP2_SHORT_F64", "f64", "2^r, relative to itself, to f32 accuracy", lambda r: mp.mpf(2) ** r,
        lambda r: mp.mpf(2) ** -r, mp.mpf("-0.5"), mp.mpf("0.5"), 7,
    ),
    Target(
        "LOG_TAIL_F64", "f64", "(2 atanh(s) - 2 s - 2/3 s^3) / s^5 over z = s^2, relative to 2 atanh(s) / s^5",
        even(lambda s: 2 * mp.atanh(s), lambda s: 2 * s + 2 * s**3 / 3, 5), lambda z: z * z / 2, tiny, Z_LOG, 6,
    ),
]

hyperbolic = [
    *both(
        "COSH", "(cosh r - 1) / r^2 over z = r^2, relative to cosh r / r^2", even(mp.cosh, lambda r: 1, 2),
        lambda z: z, tiny, (HALF_LN2 * mp.mpf("1.01")) ** 2, 2, 4,
    ),
    *both(
        "SINH", "(sinh r - r) / r^3 over z = r^2, relative to sinh r / r^3", even(mp.sinh, lambda r: r, 3),
        lambda z: z, tiny, (HALF_LN2 * mp.mpf("1.01")) ** 2, 2, 4,
    ),
]



def one(name: str, text: str, dtype: str, function, weight, low, high, degree: int, around=None) -> Target:
    """A target for one dtype, expanded near `around` if given."""
    return Target(name, dtype, text, function, weight, mp.mpf(low), mp.mpf(high), degree, around)


# erf near 0, log(erfc) beyond, (1 + 2 x) e^(x^2) erfc(x) as a function of t = (x - K) / (x + K)
K = mp.mpf("3.75")
log_erfc = lambda x: mp.log(mp.erfc(x))
log_erfc_weight = lambda x: mp.erfc(x) / mp.erf(x)


def scaled_erfc(t):
    x = K * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


@cache
def inverse_erf_ratio(w):
    """erf_inv(x) / x where 1 - x^2 = e^-w, by Newton's method with Halley's correction on erfc."""
    ew = mp.exp(-w)
    x = mp.sqrt(1 - ew)
    rest = ew / (1 + x)  # 1 - x
    y = mp.sqrt(w) if rest < 0.5 else x * mp.sqrt(mp.pi) / 2
    for _ in range(60):
        step = (mp.erfc(y) - rest) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        step = step / (1 - y * step) if abs(y * step) < 0.5 else step
        y += step
        if abs(step) < mp.mpf(10) ** -54:
            break
    return y / x


root_ratio = lambda s: inverse_erf_ratio(s * s)
w_text = "erf_inv(x) / x over w = -log(1 - x^2), relative to itself"
s_text = "erf_inv(x) / x over sqrt(w), w = -log(1 - x^2), relative to itself"
inv = lambda f: lambda v: 1 / abs(f(v))
error_function = [
    *both(
        "ERF", "(erf x - x) / x over z = x^2, relative to erf x / x", even(mp.erf, lambda x: x, 1),
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), tiny, "0.811", 6, 11,
    ),
    one("LOG_ERFC_F32", "log(erfc x), to the relative accuracy of erf", "f32", log_erfc, log_erfc_weight,
        "0.89", 4, 6, 1.0),
    one("LOG_ERFC_F64", "log(erfc x), to the relative accuracy of erf", "f64", log_erfc, log_erfc_weight,
        "0.89", 6, 18, 1.0),
    one("ERFC_F32", "(1 + 2 x) e^(x^2) erfc x over (x - 3.75) / (x + 3.75), relative to itself", "f32", scaled_erfc,
        inv(scaled_erfc), (mp.mpf("0.49") - K) / (mp.mpf("0.49") + K), (11 - K) / (11 + K), 10, 0.2),
    one("ERFC_F64", "(1 + 2 x) e^(x^2) erfc x over (x - 3.75) / (x + 3.75), relative to itself", "f64", scaled_erfc,
        inv(scaled_erfc), (mp.mpf("0.49") - K) / (mp.mpf("0.49") + K), (28 - K) / (28 + K), 22, 0.2),
    one("ERF_INV_NEAR_F32", w_text, "f32", inverse_erf_ratio, inv(inverse_erf_ratio), tiny, "5.01", 9, 2.5),
    one("ERF_INV_FAR_F32", s_text, "f32", root_ratio, inv(root_ratio), "2.2", "4.1", 10, 3.125),
    one("ERF_INV_NEAR_F64", w_text, "f64", inverse_erf_ratio, inv(inverse_erf_ratio), tiny, "4.01", 19, 2.0),
    one("ERF_INV_FAR_F64", s_text, "f64", root_ratio, inv(root_ratio), "1.99", "3.31", 20, 2.625),
    one("ERF_INV_END_F64", s_text, "f64", root_ratio, inv(root_ratio), "3.29", "6.1", 24, 4.75),
]

# lgamma(2 + h) = h p(h); Stirling: lgamma(a) = (a - 1/2) log a - a + log(2 pi) / 2 + p(1/a^2) / a
lgamma_h = lambda h: mp.loggamma(2 + h) / h


def stirling(u):
    a = 1 / mp.sqrt(u)
    return (mp.loggamma(a) - ((a - 0.5) * mp.log(a) - a + mp.log(2 * mp.pi) / 2)) * a


def digamma_tail(u):
    z = 1 / mp.sqrt(u)
    return (mp.log(z) - 1 / (2 * z) - mp.psi(0, z)) / u


DIGAMMA_ZERO = mp.findroot(lambda z: mp.psi(0, z), mp.mpf("1.4616"))


def digamma_ratio(z):
    d = z - DIGAMMA_ZERO
    if abs(d) < mp.mpf(10) ** -20:
        return mp.psi(1, DIGAMMA_ZERO)
    return mp.psi(0, z) / d


stirling_text = "(lgamma(a) - (a - 1/2) log a + a - log(2 pi) / 2) a over u = 1/a^2, relative to lgamma(a) a"
stirling_weight = lambda u: mp.sqrt(u) / mp.loggamma(1 / mp.sqrt(u))
digamma_text = "(log z - 1 / (2 z) - digamma(z)) z^2 over u = 1/z^2, relative to digamma(z) z^2"
digamma_weight = lambda u: u / mp.psi(0, 1 / mp.sqrt(u))
gamma = [
    *both("LGAMMA", "lgamma(2 + h) / h, relative to itself", lgamma_h, inv(lgamma_h), -0.751, 0.5, 10, 22),
    *both("STIRLING", stirling_text, stirling, stirling_weight, 1e-8, 1 / mp.mpf("3.49") ** 2, 2, 8),
    *both("DIGAMMA", digamma_text, digamma_tail, digamma_weight, 1e-8, 1 / mp.mpf("8.49") ** 2, 1, 5),
    *both("DIGAMMA_ROOT", "digamma(z) / (z - 1.4616...), relative to itself", digamma_ratio, inv(digamma_ratio),
          1, 2, 9, 20, around=1.5),
]

bessel = []
for n in (0, 1):
    small = lambda t, n=n: (lambda x: mp.besseli(n, x) * mp.exp(-x) / x**n)(4 * (t + 1))
    large = lambda t, n=n: (lambda u: mp.besseli(n, 1 / u) * mp.exp(-1 / u) / mp.sqrt(u))((t + 1) / 16)
    over = ("", " / x")[n]
    bessel += [
        *both(f"I{n}E_SMALL", f"e^-x I{n}(x){over} over t = x/4 - 1, relative to itself", small, inv(small),
              tiny - 1, 1, 18, 29),
        *both(f"I{n}E_LARGE", f"sqrt(x) e^-x I{n}(x) over t = 16/x - 1, relative to itself", large, inv(large),
              mp.mpf("-0.99999"), 1, 7, 24),
    ]

TARGETS: dict[str, list[Target]] = {
    "exponential": exponential,
    "logarithm": logarithm,
    "trigonometric": trigonometric,
    "hyperbolic": hyperbolic,
    "power": power,
    "error_function": error_function,
    "gamma": gamma,
    "bessel": bessel,
}
