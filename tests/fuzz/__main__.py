"""Runs random programs for so long: python -m fuzz --seconds 600 (in tests/), or one: --seed 17 --moves 9."""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from fuzz.passes import counted
from fuzz.program import run
from fuzz.transformed import run_derivatives, run_mapped


def main() -> int:
    """Run programs and print the ones that fail, each with the fewest moves that do; 1 if any did."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="this program alone")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--moves", type=int, help="as many moves; default: 2 to 25, by the seed")
    parser.add_argument("--passes", type=int, help="print in how many of so many programs each pass changes something")
    options = parser.parse_args()
    if options.passes:
        for name, number in counted(range(options.first, options.first + options.passes)).most_common():
            print(f"{name:14} {number}")
        return 0
    started, seed, failures = time.monotonic(), options.first if options.seed is None else options.seed, 0
    while True:
        count = options.moves or 2 + seed % 24
        problem = attempt(seed, count)
        if problem:
            failures += 1
            fewest = next(n for n in range(1, count + 1) if attempt(seed, n))
            print(f"seed {seed}, {fewest} moves (of {count}): {attempt(seed, fewest)}", flush=True)
        seed += 1
        if options.seed is not None or time.monotonic() - started > options.seconds:
            break
        if seed % 50 == 0:
            print(f"{seed - options.first} programs, {failures} failed", flush=True)
    print(f"{seed - (options.first if options.seed is None else options.seed)} programs, {failures} failed")
    return int(failures > 0)


def attempt(seed: int, count: int) -> str:
    """What is wrong with a program: its results, or the exception that it raised."""
    try:
        if problem := run(seed, count):
            return problem
        return run_derivatives(seed, count) if seed % 3 == 0 else run_mapped(seed, count) if seed % 3 == 1 else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"


if __name__ == "__main__":
    sys.exit(main())
