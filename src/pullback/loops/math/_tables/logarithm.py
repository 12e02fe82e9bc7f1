"""Coefficients for logarithm: written by tools/minimax.py from tools/minimax_targets.py."""

from pullback.loops.math._polynomials import Polynomial

LOG_F32 = Polynomial(
    "f32",
    "(log(1+f) - f + f^2/2) / f^3, relative to log(1+f) / f^3",
    (-0.293193218813, 0.414513562373),
    27.3,
    (
        0.333333313, -0.250008255, 0.20001258, -0.16623202, 0.142009258, -0.1316102,
        0.127681509, -0.0764042735,
    ),
)

LOG_F64 = Polynomial(
    "f64",
    "(2 atanh(s) - 2 s) / s^3 over z = s^2, relative to 2 atanh(s) / s^3",
    (0.0, 0.0294666887744),
    59.4,
    (
        0.66666666666667351, 0.39999999999409358, 0.28571428743686217, 0.22222198428935935,
        0.18183572357558253, 0.15313832183762788, 0.14798256832009415,
    ),
)
