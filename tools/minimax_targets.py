"""What each polynomial of loop_passes/math approximates, and with which weight: the mathematics behind the tables."""

from __future__ import annotations

import mpmath as mp
from minimax import Target

HALF_LN2 = mp.log(2) / 2
SQRT2 = mp.sqrt(2)


def both(name: str, text: str, function, weight, low, high, degree32: int, degree64: int, **more) -> list[Target]:
    """The same target for f32 and f64."""
    make = lambda dtype, degree: Target(  # noqa: E731
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
exp_q = lambda r: (mp.expm1(r) - r) / r**2  # noqa: E731
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
log_f = lambda f: (mp.log1p(f) - f + f * f / 2) / f**3  # noqa: E731
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
        lambda z: z, tiny, (HALF_LN2 * mp.mpf("1.01")) ** 2, 2, 4, start=(0.5,),
    ),
    *both(
        "SINH", "(sinh r - r) / r^3 over z = r^2, relative to sinh r / r^3", even(mp.sinh, lambda r: r, 3),
        lambda z: z, tiny, (HALF_LN2 * mp.mpf("1.01")) ** 2, 2, 4,
    ),
]

TARGETS: dict[str, list[Target]] = {
    "exponential": exponential,
    "logarithm": logarithm,
    "trigonometric": trigonometric,
    "hyperbolic": hyperbolic,
    "power": power,
}
