"""Computes pieces of elementary functions, for evaluation by tables: loops/math/_tables/pieces.py (needs mpmath).

    python tools/piece_tables.py

Each piece is fitted coefficient by coefficient: what is left after one is rounded is fitted anew by the next, which
make up for it. Centres are chosen, of the floats next to the middle of a piece,
such that the function is almost a float there (Gal's accurate tables): its value costs no second rounding. The first
piece is odd, as the functions are: near 0 its first coefficient decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp
import numpy as np

Real = mp.mpf
TABLE = Path(__file__).resolve().parents[1] / "src/pullback/loops/math/_tables/pieces.py"
ENTRIES = {64: 16, 32: 8}  # of f32 that an instruction finds in a register of so many bytes
NEAR = 4000  # floats to either side of a middle among which a centre is chosen


@dataclass(frozen=True)
class Target:
    """A function on [0, limit], in pieces 1 / density wide; an `odd` one rounds to 1 at `limit`."""

    name: str
    text: str
    function: Callable[[Real], Real]
    limit: float
    density: float
    degree: int
    register: int = 64  # bytes
    odd: bool = True

    def interval(self, piece: int) -> tuple[Real, Real]:
        low = max((piece - Real(1) / 2) / Real(self.density), Real(0))
        return low, min((piece + Real(1) / 2) / Real(self.density), Real(self.limit))


def erfcx(x: Real) -> Real:
    return mp.erfc(x) * mp.exp(x * x)


TARGETS = [
    Target("ERF_F32", "erf x", mp.erf, 3.9296875, 3.9375, 5),
    Target("TANH_F32", "tanh x", mp.tanh, 9.125, 1.6875, 7),
    Target("ERF_F32_BY_8", "erf x", mp.erf, 3.9296875, 1.875, 7, 32),
    Target("ERFCX_F32", "exp(x^2) erfc x", erfcx, 10.25, 1.5, 7, odd=False),
    Target("ERFCX_F32_BY_8", "exp(x^2) erfc x", erfcx, 10.25, 0.725, 9, 32, odd=False),
]


def single(x: Real) -> Real:
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, 24)), int(exponent) - 24)


def horner(coefficients: list[float] | list[Real], x: Real) -> Real:
    result = Real(0)
    for c in reversed(coefficients):
        result = result * x + Real(c)
    return result


def centre_of(target: Target, piece: int) -> float:
    """The float near the middle of a piece where the function is nearest to a float; 0 in the first piece."""
    if piece == 0:
        return 0.0
    middle = np.float32(piece / target.density)
    found = (np.inf, middle)
    for candidate in (middle.view(np.int32) + np.arange(-NEAR, NEAR, dtype=np.int32)).view(np.float32):
        value = target.function(Real(float(candidate)))
        found = min(found, (float(abs(value - single(value)) / value), candidate))
        if found[0] < 2.0**-34:
            break
    return float(found[1])


def fitted(target: Target, centre: Real, low: Real, high: Real, known: list[Real]) -> Real:
    """The next coefficient after the `known` ones: least squares of relative errors, at Chebyshev's points."""
    powers = range(len(known), target.degree + 1, 1 if centre or not target.odd else 2)
    many = 4 * target.degree
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * many)) for k in range(many)]
    matrix, right = mp.matrix(many, len(powers)), mp.matrix(many, 1)
    for row, h in enumerate(points):
        value = target.function(centre + h)
        right[row] = (value - (h if target.odd else 0) - horner(known, h)) / value
        for k, power in enumerate(powers):
            matrix[row, k] = h**power / value
    return mp.lu_solve(matrix, right)[0]


def coefficients(target: Target, piece: int, centre: float) -> list[float]:
    low, high = (x - Real(centre) for x in target.interval(piece))
    known = [single(target.function(Real(centre)))]
    while len(known) <= target.degree:
        even = target.odd and centre == 0 and len(known) % 2 == 0
        known.append(Real(0) if even else single(fitted(target, Real(centre), low, high, known)))
    return [float(c) for c in known]


def error(target: Target, rows: list[list[float]], centres: list[float], count: int = 40) -> float:
    """The largest error in units in the last place of f32, in exact arithmetic."""
    worst = Real(0)
    for piece, centre in enumerate(centres):
        low, high = target.interval(piece)
        for k in range(count + 1):
            x = low + (high - low) * k / count
            if x == 0:
                continue
            h = x - Real(centre)
            value = (h if target.odd else 0) + horner([row[piece] for row in rows], h)
            want = target.function(x)
            worst = max(worst, abs(value - want) * Real(2) ** (24 - int(mp.frexp(want)[1])))
    return float(worst)


def text(target: Target) -> str:
    centres = [centre_of(target, piece) for piece in range(ENTRIES[target.register])]
    columns = [coefficients(target, piece, centre) for piece, centre in enumerate(centres)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    worst = error(target, rows, centres)
    print(f"{target.name}: degree {target.degree}, {worst:.2f} ulp", flush=True)

    def listed(numbers: list[float], indent: str) -> list[str]:
        words = [f"{x:.9g}" for x in numbers]
        words = [word if "." in word or "e" in word else word + ".0" for word in words]
        return [indent + " ".join(f"{word}," for word in words[i : i + 6]) for i in range(0, len(words), 6)]

    lines = [f"{target.name} = Pieces(", '    "f32",', f'    "{target.text}",', f"    {target.limit!r},"]
    lines += [f"    {target.density!r},", f"    {worst + 0.01:.2f},", f"    {target.odd},"]
    lines += ["    (", *listed(centres, "        "), "    ),"]
    lines.append("    (")
    for row in rows:
        lines += ["        (", *listed(row, "            "), "        ),"]
    return "\n".join([*lines, "    ),", ")"])


def main() -> None:
    with mp.workdps(50):
        tables = [text(target) for target in TARGETS]
    head = '"""Functions in pieces: written by tools/piece_tables.py."""\n\nfrom .._polynomials import Pieces\n'
    TABLE.write_text("\n".join([head, "\n\n".join(tables), ""]))


if __name__ == "__main__":
    main()
