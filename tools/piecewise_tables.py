"""Computes the polynomials of scipy/special/_piecewise.py and writes their tables (needs mpmath).

    python tools/piecewise_tables.py

Each function is interpolated at Chebyshev's points of each piece in 60-digit arithmetic, with as many terms as bring
the error below a tenth of a rounding, and then written in powers of u, which goes from -1 to 1 along the piece.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60
TARGET = Path(__file__).resolve().parent.parent / "src/pullback/scipy/special/_tables.py"
Real = mp.mpf
EI_ROOT = mp.findroot(mp.ei, 0.3725)
CI_ROOTS = mp.findroot(mp.ci, 0.6165), mp.findroot(mp.ci, 3.3842)


def at_infinity(function: Callable[[Real], Real], limit: int) -> Callable[[Real], Real]:
    """A function of 1/x or of a power of it, which is `limit` at zero."""
    return lambda t: Real(limit) if t == 0 else function(t)


def _sine_parts(x: Real) -> tuple[Real, Real]:
    """Auxiliary functions f, g of Si and Ci (Abramowitz and Stegun 5.2.6, 5.2.7)."""
    si, ci = mp.si(x) - mp.pi / 2, mp.ci(x)
    return ci * mp.sin(x) - si * mp.cos(x), -ci * mp.cos(x) - si * mp.sin(x)


def _fresnel_parts(x: Real) -> tuple[Real, Real]:
    """Auxiliary functions f, g of the Fresnel integrals (Abramowitz and Stegun 7.3.5, 7.3.6)."""
    s, c, phase = mp.fresnels(x), mp.fresnelc(x), mp.pi * x * x / 2
    half = Real(1) / 2
    f = (half - s) * mp.cos(phase) - (half - c) * mp.sin(phase)
    return f, (half - c) * mp.cos(phase) + (half - s) * mp.sin(phase)


def _dawson(x: Real) -> Real:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _normal_quantile(z: Real) -> Real:
    """-x / sqrt(-2 log q) for the x with Phi(x) = q, z = log(-2 log q), by Newton's method."""
    size = mp.exp(z)
    root = mp.sqrt(size)
    x = (mp.log(2 * mp.pi) + z) / (2 * root) - root
    while True:
        log_phi = mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
        step = (log_phi + size / 2) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2 + log_phi)
        x -= step
        if abs(step) < abs(x) * Real(2) ** -120:
            return -x / root


def _scaled_erfcx(t: Real) -> Real:
    """(1 + 2 x) e^(x^2) erfc x for t = (x - K) / (x + K), Shepherd and Laframboise, Math. Comp. 36 (1981)."""
    x = Real(15) / 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


# What is evaluated in float32 alone has F32 at the end of its name.
TABLES: dict[str, tuple[str, Callable[[Real], Real], list[Fraction]]] = {
    "E1": (
        "x exp(x) E1(x) of 1/x",
        at_infinity(lambda t: mp.exp(1 / t) * mp.e1(1 / t) / t, 1),
        [Fraction(0), *(Fraction(1, 2**k) for k in (6, 5, 4, 3, 2, 1, 0))],
    ),
    "EI_NEAR": (
        "(Ei(x) - log(x / root)) / (x - root)",
        lambda x: (mp.ei(x) - mp.log(x / EI_ROOT)) / (x - EI_ROOT),
        [Fraction(k, 2) for k in (0, 2, 4, 6, 9, 12)],
    ),
    "EI_FAR": (
        "x exp(-x) Ei(x) of 1/x",
        at_infinity(lambda t: mp.exp(-1 / t) * mp.ei(1 / t) / t, 1),
        [Fraction(0), *(Fraction(1, n) for n in (96, 48, 36, 27, 20, 15, 12, 9, 6))],
    ),
    "DAWSON_NEAR": (
        "F(x) / x",
        lambda x: _dawson(x) / x,
        [Fraction(n) for n in (0, 1, 2, 3, 4, 5, 6, 8)],
    ),
    "DAWSON_FAR": ("2 x F(x) of 1/x^2", at_infinity(lambda t: 2 / mp.sqrt(t) * _dawson(1 / mp.sqrt(t)), 1),
                   [Fraction(0), Fraction(1, 256), Fraction(1, 128), Fraction(1, 64)]),
    "DILOGARITHM": (
        "Li2(y) / y",
        lambda y: mp.re(mp.polylog(2, y)) / y,
        [Fraction(k, 4) for k in (-2, -1, 0, 1, 2)],
    ),
    "SI": ("Si(x) / x", lambda x: mp.si(x) / x, [Fraction(n) for n in range(5)]),
    "CI_NEAR": (
        "(Ci(x) - log(x / root)) / (x - root), the first root",
        lambda x: (mp.ci(x) - mp.log(x / CI_ROOTS[0])) / (x - CI_ROOTS[0]),
        [Fraction(n) for n in range(3)],
    ),
    "CI_MIDDLE": (
        "Ci(x) / (x - root), the second root",
        lambda x: mp.ci(x) / (x - CI_ROOTS[1]),
        [Fraction(n) for n in range(2, 5)],
    ),
    "SINE_F": (
        "x f(x) of 1/x^2",
        at_infinity(lambda t: _sine_parts(1 / mp.sqrt(t))[0] / mp.sqrt(t), 1),
        [Fraction(0), *(Fraction(1, n) for n in (1024, 256, 128, 64, 32, 16))],
    ),
    "SINE_G": (
        "x^2 g(x) of 1/x^2",
        at_infinity(lambda t: _sine_parts(1 / mp.sqrt(t))[1] / t, 1),
        [Fraction(0), *(Fraction(1, n) for n in (1024, 256, 128, 64, 32, 16))],
    ),
    "ERFCX": (
        "(1 + 2 x) e^(x^2) erfc x of (x - 15/4) / (x + 15/4)",
        _scaled_erfcx,
        [Fraction(k, 2) for k in (-2, -1, 0, 1, 2)],
    ),
    "ERFCX_F32": ("the same", _scaled_erfcx, [Fraction(-1), Fraction(1)]),
    "QUANTILE": (
        "-x / sqrt(-2 log q) for Phi(x) = q <= 1/10, of log(-2 log q)",
        _normal_quantile,
        [Fraction(3, 2), Fraction(16, 5), Fraction(26, 5), Fraction(74, 10)],
    ),
    "QUANTILE_F32": ("the same", _normal_quantile, [Fraction(3, 2), Fraction(27, 5)]),
    "FRESNEL_S": ("S(x) / x^3", lambda x: mp.fresnels(x) / x**3, [Fraction(k, 8) for k in (0, 4, 8, 12, 14)]),
    "FRESNEL_C": ("C(x) / x", lambda x: mp.fresnelc(x) / x, [Fraction(k, 8) for k in (0, 4, 8, 12, 14)]),
    "FRESNEL_F": (
        "pi x f(x) of 1/x^4",
        at_infinity(lambda t: mp.pi * t ** Real(-0.25) * _fresnel_parts(t ** Real(-0.25))[0], 1),
        [Fraction(0), *(Fraction(1, n) for n in (4096, 1024, 256, 128, 64, 32, 16, 9))],
    ),
    "FRESNEL_G": (
        "pi^2 x^3 g(x) of 1/x^4",
        at_infinity(lambda t: mp.pi**2 * t ** Real(-0.75) * _fresnel_parts(t ** Real(-0.25))[1], 1),
        [Fraction(0), *(Fraction(1, n) for n in (4096, 1024, 256, 128, 64, 32, 16, 9))],
    ),
}  # fmt: skip


def chebyshev(function: Callable[[Real], Real], low: Real, high: Real, terms: int) -> list[Real]:
    """Coefficients of Chebyshev's polynomials on [low, high]."""
    points = [mp.cos(mp.pi * (j + Real(1) / 2) / terms) for j in range(terms)]
    values = [function((low + high) / 2 + (high - low) / 2 * u) for u in points]
    return [
        (1 if k == 0 else 2) * mp.fsum(v * mp.cos(k * mp.acos(u)) for u, v in zip(points, values)) / terms
        for k in range(terms)
    ]


def powers(coefficients: list[Real]) -> list[Real]:
    """The same polynomial in powers of u, from the lowest up."""
    n = len(coefficients)
    out = [Real(0)] * n
    before, current = [Real(1)], [Real(0), Real(1)]
    for k, c in enumerate(coefficients):
        basis = before if k == 0 else current
        for i, b in enumerate(basis):
            out[i] += c * b
        if k:
            doubled = [Real(0), *(2 * b for b in current)]
            for i, b in enumerate(before):
                doubled[i] -= b
            before, current = current, doubled
    return out


def table(function: Callable[[Real], Real], edges: list[Fraction], bits: int) -> list[list[float]]:
    """One row of coefficients for each power of u, one column for each piece; for numbers of so many bits."""
    columns = []
    for low, high in itertools.pairwise(edges):
        found = chebyshev(function, Real(low.numerator) / low.denominator, Real(high.numerator) / high.denominator, 40)
        limit = max(abs(c) for c in found) * Real(2) ** -(bits + 4)
        while abs(found[-1]) < limit:
            found.pop()
        columns.append([float(c) for c in powers(found)])
    rows = max(map(len, columns))
    return [[c[k] if k < len(c) else 0.0 for c in columns] for k in range(rows)]


def gauss(terms: int) -> list[tuple[float, float]]:
    """Nodes and weights of Gauss's quadrature on [0, 1], which NumPy's have 40 roundings away at the ends."""
    found = []
    for near in np.polynomial.legendre.leggauss(terms)[0]:
        x = mp.findroot(lambda x: mp.legendre(terms, x), mp.mpf(float(near)))
        slope = terms * mp.legendre(terms - 1, x) / (1 - x * x)
        found.append((float((x + 1) / 2), float(1 / ((1 - x * x) * slope**2))))
    return found


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, 116, initial_indent=" " * indent, subsequent_indent=" " * (indent + 1))


def main() -> None:
    """Write the tables."""
    lines = [
        '"""Polynomials of scipy/special/_piecewise.py, written by tools/piecewise_tables.py."""',
        "",
        "import numpy as np",
        "",
        "# name = edges of the pieces, coefficients[power of u][piece]",
    ]
    for name, (text, function, edges) in TABLES.items():
        rows = table(function, edges, 24 if name.endswith("F32") else 53)
        print(name, len(rows), "terms,", len(edges) - 1, "pieces", flush=True)
        places = [float(e) for e in edges]
        lines += ["", f"# {text}", f"{name} = (", *_wrapped(f"np.array({places}),", 4), "    np.array(["]
        for row in rows:
            lines += _wrapped(f"[{', '.join(map(repr, row))}],", 8)
        lines += ["    ]),", ")  # fmt: skip"]
    lines += ["", "# Gauss's quadrature on [0, 1]: (node, weight)", "GAUSS = ["]
    lines += [f"    ({x!r}, {weight!r})," for x, weight in gauss(28)]
    lines += ["]"]
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
