"""Computes the polynomial coefficients of loops/math and writes their tables (needs mpmath; faster with gmpy2).

    python tools/minimax.py                  all polynomials of tools/minimax_targets.py
    python tools/minimax.py exp log          only tables (files) of these names

Method: the weighted Remez exchange (Muller, Elementary Functions, 3rd ed., section 3.5) on a fine Chebyshev grid, in
60-digit arithmetic. Coefficients are rounded one after the other, from the lowest power up; after each rounding the
remaining ones are fitted again to what is left, so that later coefficients make up for the rounding of earlier ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60
TABLES = Path(__file__).resolve().parent.parent / "src/pullback/loops/math/_tables"
Real = mp.mpf


@dataclass(frozen=True)
class Target:
    """Wanted: p of `degree` on [low, high] with the least max |p(z - centre) - function(z)| * weight(z).

    A centre inside the interval keeps the powers small where those of z would cancel. `around` asks for one near that
    place where the function happens to be close to a number of `dtype`, so that rounding p's constant costs nothing.
    """

    name: str
    dtype: str  # 'f32' or 'f64': what the coefficients are rounded to
    text: str  # the function and the weight in words, for the table
    function: Callable[[Real], Real]
    weight: Callable[[Real], Real]
    low: Real
    high: Real
    degree: int
    around: float | None = None

    @property
    def centre(self) -> Real:
        """The point the polynomial is expanded at; 0 unless `around` is given."""
        if self.around is None:
            return mp.mpf(0)
        candidates = [mp.mpf(self.around) + mp.mpf(k) / 512 for k in range(-60, 61)]
        candidates = [c for c in candidates if self.low < c < self.high]

        def loss(c: Real) -> Real:
            value = self.function(c)
            return abs(value - mp.mpf(round_to(value, self.dtype)))

        return min(candidates, key=loss)


def grid(low: Real, high: Real, count: int) -> list[Real]:
    """Chebyshev points of [low, high], in ascending order, without the end points themselves."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def fit(points: list[Real], values: list[Real], weights: list[Real], first: int, degree: int) -> list[Real]:
    """Coefficients of powers first..degree that minimise max |values - p| * weights over `points` (Remez exchange).

    Everything is divided by z**first, since powers without the constant are no Chebyshev system around z = 0.
    """
    unknowns = degree - first + 2  # the coefficients and the levelled error
    values = [v / z**first for v, z in zip(values, points, strict=True)]
    weights = [w * abs(z**first) for w, z in zip(weights, points, strict=True)]
    count = len(points)
    reference = [(count - 1) * i // (unknowns - 1) for i in range(unknowns)]
    powers = [[z**j * w for j in range(unknowns - 1)] for z, w in zip(points, weights, strict=True)]
    coefficients: list[Real] = []
    for _ in range(40):
        matrix = mp.matrix(unknowns, unknowns)
        right = mp.matrix(unknowns, 1)
        for row, k in enumerate(reference):
            for j in range(unknowns - 1):
                matrix[row, j] = powers[k][j]
            matrix[row, unknowns - 1] = (-1) ** row
            right[row] = values[k] * weights[k]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[j] for j in range(unknowns - 1)]
        level = abs(solution[unknowns - 1])
        errors = [
            v * w - mp.fsum(c * p for c, p in zip(coefficients, row, strict=True))
            for v, w, row in zip(values, weights, powers, strict=True)
        ]
        peaks = _alternating_peaks(errors, unknowns)
        largest = max(abs(e) for e in errors)
        if len(peaks) < unknowns or largest <= level * mp.mpf("1.01"):
            break
        reference = peaks
    return coefficients


def _alternating_peaks(errors: list[Real], wanted: int) -> list[int]:
    """Indices of the largest |error| in each run of equal sign, thinned to `wanted` that still alternate in sign."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if error == 0:
            continue
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > wanted:
        sizes = [abs(errors[k]) for k in peaks]
        least = sizes.index(min(sizes))
        if len(peaks) == wanted + 1 or least in (0, len(peaks) - 1):
            peaks.pop(0 if sizes[0] < sizes[-1] else -1)
        else:  # a small run inside: its neighbours have one sign, so the smaller of them goes too
            other = least - 1 if sizes[least - 1] < sizes[least + 1] else least + 1
            for k in sorted((least, other), reverse=True):
                peaks.pop(k)
    return peaks


def round_to(value: Real, dtype: str) -> float:
    """`value` rounded to nearest in `dtype`, once."""
    if dtype == "f64":
        return float(value)
    mantissa, exponent = mp.frexp(value)
    return float(mp.ldexp(mp.nint(mp.ldexp(mantissa, 24)), int(exponent) - 24))


def polynomial(target: Target) -> tuple[list[float], float]:
    """The rounded coefficients, lowest power first, and -log2 of their largest weighted error."""
    arguments = grid(target.low, target.high, max(24 * (target.degree + 2), 200))
    rest = [target.function(z) for z in arguments]
    weights = [target.weight(z) for z in arguments]
    centre = target.centre
    points = [z - centre for z in arguments]
    rounded: list[float] = []
    for i in range(target.degree + 1):
        c = round_to(fit(points, rest, weights, i, target.degree)[0], target.dtype)
        rounded.append(c)
        rest = [r - mp.mpf(c) * z**i for r, z in zip(rest, points, strict=True)]
    worst = max(abs(r * w) for r, w in zip(rest, weights, strict=True))
    return rounded, float(-mp.log(worst, 2))


def bits_of(target: Target, coefficients: tuple[float, ...], centre: float = 0.0, count: int = 300) -> float:
    """-log2 of the largest weighted error of `coefficients`, measured anew at `count` points."""
    worst = mp.mpf(0)
    for z in grid(target.low, target.high, count):
        value = mp.mpf(0)
        for c in reversed(coefficients):
            value = value * (z - mp.mpf(centre)) + mp.mpf(c)
        worst = max(worst, abs(value - target.function(z)) * target.weight(z))
    return float(-mp.log(worst, 2))


def table_text(subject: str, targets: list[Target]) -> str:
    """The Python source of one table file."""
    lines = [f'"""Coefficients for {subject}: written by tools/minimax.py from tools/minimax_targets.py."""\n']
    lines.append("from .._polynomials import Polynomial\n")
    for target in targets:
        coefficients, bits = polynomial(target)
        shown = 9 if target.dtype == "f32" else 17
        print(f"{target.name:24s} degree {target.degree:2d}  2^-{bits:.1f}", flush=True)
        words = [f"{c:.{shown}g}" for c in coefficients]
        words = [w if "." in w or "e" in w else w + ".0" for w in words]
        assert [float(np.float32(w)) if shown == 9 else float(w) for w in words] == coefficients
        lines.append(f"{target.name} = Polynomial(")
        lines.append(f'    "{target.dtype}",')
        lines.append(f'    "{target.text}",')
        lines.append(f"    ({mp.nstr(target.low, 12)}, {mp.nstr(target.high, 12)}),")
        lines.append(f"    {bits - 0.05:.1f},")
        lines.append("    (")
        per_line = 6 if target.dtype == "f32" else 4
        lines.extend(
            "        " + " ".join(f"{w}," for w in words[i : i + per_line]) for i in range(0, len(words), per_line)
        )
        lines.append("    ),")
        if target.around is not None:
            lines.append(f"    centre={float(target.centre)!r},")
        lines.append(")\n")
    return "\n".join(lines).rstrip("\n") + "\n"


def main(arguments: list[str]) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from minimax_targets import TARGETS

    for subject, targets in TARGETS.items():
        if not arguments or subject in arguments:
            (TABLES / f"{subject}.py").write_text(table_text(subject, targets))


if __name__ == "__main__":
    main(sys.argv[1:])
