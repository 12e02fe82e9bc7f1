"""sum(range(n)): Python, eager and jitted arrays, the closed form n (n - 1) / 2, and C.

A clever compiler finds the closed form: what JAX's API says as sum(arange(n)) is a constant of the compiled program, as
the listing at the end shows.

    python -m examples.sum_of_range
    python -m examples.sum_of_range --n 1000
    python -m examples.sum_of_range --backend jax          # the same source on JAX
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from examples import _common as common

N = 50_000
LARGEST_N = 65_536  # the sum is an int32

C_PROGRAM = r"""
#include <stdio.h>
#include <time.h>

static long sum(int n) {
    long total = 0;
    for (int i = 0; i < n; i++) total += i;
    return total;
}

int main(void) {
    volatile int n = %d;  /* read anew for each call, and called by a pointer: the calls cannot be merged */
    long (*volatile call)(int) = sum;
    long result = 0;
    double best = 1e9;
    for (int round = 0; round < 20; round++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int k = 0; k < 100; k++) result = call(n);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double seconds = (end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec)) / 100;
        if (seconds < best) best = seconds;
    }
    printf("%%ld %%.12f\n", result, best);
    return 0;
}
"""


def levels(jax: Any) -> dict[str, Callable]:
    """Functions of n, which is static where they are jitted."""

    def total(n):
        return jax.numpy.arange(n).sum()

    return {
        "Python": lambda n: sum(range(n)),
        "eager": total,
        "jitted": jax.jit(total, static_argnums=0),
        "closed form": lambda n: n * (n - 1) // 2,
    }


def compiler() -> str | None:
    """The path of a C compiler, clang if it is there."""
    return shutil.which("clang") or shutil.which("cc")


def by_c(n: int, flag: str) -> tuple[int, float]:
    """(sum, seconds) of the C program, compiled with this optimization."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "sum.c"), Path(folder, "sum")
        source.write_text(C_PROGRAM % n)
        subprocess.run([str(compiler()), flag, "-o", program, source], check=True)
        result, seconds = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    return int(result), float(seconds)


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if all sums are n (n - 1) / 2."""
    parser = common.parser("sum_of_range", __doc__, picture=False)
    parser.add_argument("--n", type=int, default=N, help="(default: %(default)s)")
    common.add_rounds(parser)
    options = parser.parse_args(argv)
    if options.n > LARGEST_N:
        parser.error(f"--n: at most {LARGEST_N}, or the sum overflows an int32")
    jax, n = common.backend(options.backend), options.n

    functions = levels(jax)
    results = {name: int(function(n)) for name, function in functions.items()}
    calls = {name: partial(function, n) for name, function in functions.items()}
    times = common.seconds(jax, calls, options.rounds)
    for flag in ("-O0", "-O2") if compiler() else ():
        results[f"C {flag}"], times[f"C {flag}"] = by_c(n, flag)
    print(common.table([f"n = {n}", "time", "sum"], [[k, times[k], results[k]] for k in results]))
    print(f"the C compiler is {compiler()}" if compiler() else "without C: no compiler was found (clang or cc)")
    print(f"\nThe jitted function, compiled for n = {n} (the end of its text):")
    print(*functions["jitted"].lower(n).compile().as_text().strip().splitlines()[-15:], sep="\n")
    return int(any(result != n * (n - 1) // 2 for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
