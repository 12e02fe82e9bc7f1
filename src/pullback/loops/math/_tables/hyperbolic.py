"""Coefficients for hyperbolic: written by tools/minimax.py from tools/minimax_targets.py."""

from pullback.loops.math._polynomials import Polynomial

COSH_F32 = Polynomial(
    "f32",
    "(cosh r - 1) / r^2 over z = r^2, relative to cosh r / r^2",
    (1.0e-12, 0.122527529874),
    33.1,
    (
        0.5, 0.0416664518, 0.00139362703,
    ),
)

COSH_F64 = Polynomial(
    "f64",
    "(cosh r - 1) / r^2 over z = r^2, relative to cosh r / r^2",
    (1.0e-12, 0.122527529874),
    57.1,
    (
        0.5, 0.041666666666597615, 0.0013888888929578034, 2.4801504946113736e-05,
        2.7626759201325953e-07,
    ),
)

SINH_F32 = Polynomial(
    "f32",
    "(sinh r - r) / r^3 over z = r^2, relative to sinh r / r^3",
    (1.0e-12, 0.122527529874),
    34.3,
    (
        0.166666672, 0.00833317731, 0.000199718575,
    ),
)

SINH_F64 = Polynomial(
    "f64",
    "(sinh r - r) / r^3 over z = r^2, relative to sinh r / r^3",
    (1.0e-12, 0.122527529874),
    61.5,
    (
        0.16666666666666677, 0.0083333333333211485, 0.0001984126988784232, 2.7557242084450322e-06,
        2.5109893611878698e-08,
    ),
)
