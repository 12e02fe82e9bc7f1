"""Coefficients for power: written by tools/minimax.py from tools/minimax_targets.py."""

from pullback.loops.math._polynomials import Polynomial

LOG2_F64 = Polynomial(
    "f64",
    "log2((1+s) / (1-s)) / s over z = s^2, relative to itself, to f32 accuracy",
    (1.0e-12, 0.0294666887744),
    45.0,
    (
        2.8853900817778491, 0.96179669411501989, 0.57707794187157946, 0.41220930143062551,
        0.31990371252670996, 0.28292833104693615,
    ),
)

EXP2_SHORT_F64 = Polynomial(
    "f64",
    "2^r, relative to itself, to f32 accuracy",
    (-0.5, 0.5),
    34.5,
    (
        0.99999999996171429, 0.6931471807283025, 0.24022651197869874, 0.055504103537616971,
        0.0096180272819307733, 0.0013333922191984908, 0.00015469284333128981, 1.520203057742203e-05,
    ),
)

LOG_TAIL_F64 = Polynomial(
    "f64",
    "(2 atanh(s) - 2 s - 2/3 s^3) / s^5 over z = s^2, relative to 2 atanh(s) / s^5",
    (1.0e-12, 0.0294666887744),
    66.2,
    (
        0.40000000000002273, 0.28571428570091334, 0.2222222252144348, 0.18181784230038306,
        0.15386763816288254, 0.13256663089783399, 0.1319779556029636,
    ),
)
