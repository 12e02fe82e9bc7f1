"""Computes the coefficients of Temme's uniform expansion of the incomplete gamma functions and writes their table.

Q(a, x) = erfc(eta sqrt(a / 2)) / 2 + e^(-a eta^2 / 2) / sqrt(2 pi a) * sum_k c_k(eta) a^-k,
c_k(eta) = sum_n d[k][n] eta^n. The recurrences are DLMF 8.12.8 to 8.12.12: with x / a - 1 = sum alpha_n eta^n,
d[0][n] = (n + 2) alpha_(n+2) (but d[0][0] = -1/3), and d[k][n] = (-1)^k g_k d[0][n] + (n + 2) d[k-1][n+2] with the
coefficients g_k of the Stirling series of Gamma.
"""

from __future__ import annotations

from pathlib import Path

import mpmath as mp

TABLE = Path(__file__).resolve().parent.parent / "src/pullback/loops/math/_tables/incomplete.py"
# Terms kept of each c_k: what matters for |eta| < 0.33 and a > 20.
LENGTHS = (17, 15, 13, 11, 10, 8, 7, 5, 4, 3)


def coefficients() -> list[list[mp.mpf]]:
    """d[k][n] for the terms kept."""
    count = LENGTHS[0] + 2 * len(LENGTHS) + 4
    alpha = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, count):
        total = alpha[n - 1] - mp.fsum(k * alpha[k] * alpha[n - k + 1] for k in range(2, n))
        alpha.append(total / (n + 1))
    # 1 / Gamma*(a) and Gamma*(a) have coefficients (-1)^k g_k and g_k: from exp of the Stirling series of log Gamma
    stirling = [mp.mpf(0)] * (len(LENGTHS) + 1)
    for j in range(1, len(LENGTHS) // 2 + 1):
        if 2 * j - 1 < len(stirling):
            stirling[2 * j - 1] = mp.bernoulli(2 * j) / (2 * j * (2 * j - 1))
    g = [mp.mpf(1)]
    for k in range(1, len(stirling)):
        g.append(mp.fsum(j * stirling[j] * g[k - j] for j in range(1, k + 1)) / k)
    d = [[(n + 2) * alpha[n + 2] for n in range(count - 2)]]
    d[0][0] = -mp.mpf(1) / 3
    for k in range(1, len(LENGTHS)):
        previous = d[-1]
        d.append([(-1) ** k * g[k] * d[0][n] + (n + 2) * previous[n + 2] for n in range(len(previous) - 2)])
    return [row[:length] for row, length in zip(d, LENGTHS, strict=True)]


def main() -> None:
    lines = ['"""Coefficients for incomplete: written by tools/uniform_gamma.py."""\n']
    lines.append("TEMME: tuple[tuple[float, ...], ...] = (")
    for row in coefficients():
        words = [repr(float(c)) for c in row]
        lines.append("    (")
        lines.extend("        " + " ".join(f"{w}," for w in words[i : i + 4]) for i in range(0, len(words), 4))
        lines.append("    ),")
    TABLE.write_text("\n".join([*lines, ")"]) + "\n")


if __name__ == "__main__":
    mp.mp.dps = 60
    main()
