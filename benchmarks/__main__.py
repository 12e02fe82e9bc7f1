"""Times programs on pullback and its peers, interleaved in one process, and prints a table with ratios.

    python -m benchmarks --peers /path/to/venv           # with JAX, PyTorch and autograd from that environment
    python -m benchmarks --only reductions --rounds 9    # a group, or programs whose name contains this
    python -m benchmarks --json new.json --picture new.png --compare old.json
    python -m benchmarks documents --peers VENV          # what public documents show of JAX, into docs/documents.md
    python -m benchmarks libraries --peers VENV          # work of libraries written for JAX, into docs/libraries.md
    python -m benchmarks scale                           # several processes: collectives, scaling; docs/scale.md
    python -m benchmarks regret                          # expected against measured times, choices against others

Inputs are equal; results are compared before anything is timed. A figure is the minimum over rounds of the mean time
of a batch of calls. 'limit' is the share of the machine's measured limit (a large copy and a large product in the same
run) that pullback reaches; 'moved' the bytes its kernels move per byte of inputs and outputs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from benchmarks import report
from benchmarks.limits import measure_limits
from benchmarks.programs import groups
from benchmarks.sides import MAKERS, add_peers, make_sides
from benchmarks.timing import Figures, measure


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks and print the table; 1 if a result differs or pullback fails."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["documents"]:
        from benchmarks.documents import command

        return command.main(argv[1:])
    if argv[:1] == ["regret"]:
        from benchmarks import regret

        return regret.main(argv[1:])
    if argv[:1] == ["libraries"]:
        from benchmarks.libraries import command as libraries

        return libraries.main(argv[1:])
    if argv[:1] == ["scale"]:
        from benchmarks import scale

        return scale.main(argv[1:])
    options = parse(argv)
    if options.peers:
        add_peers(options.peers)
    warnings.simplefilter("ignore")
    sides = make_sides(options.sides.split(","), required=options.peers is not None)
    names = [s.name for s in sides]
    before = report.read_json(options.compare) if options.compare else None
    limits = measure_limits()
    print(
        f"The machine copies {limits.bytes_per_second / 1e9:.1f} GB/s (read and written) and does "
        f"{limits.operations_per_second / 1e9:.0f} GFLOP/s in a float32 product of NumPy's."
    )
    everything: list[Figures] = []
    for group, programs in groups().items():
        chosen = [p for p in programs if options.only in group or options.only in report.title(p)]
        if options.sample and chosen:
            count = min(options.sample, len(chosen))
            chosen = [chosen[k * len(chosen) // count] for k in range(count)]
        if chosen:
            print(f"\n{group}\n{report.header(names)}", flush=True)
        for program in chosen:
            figures = measure(group, program, sides, limits, options.rounds)
            everything.append(figures)
            print(report.line(figures, names), flush=True)
            for side, message in figures.failed.items():
                print(f"    {side}: {message}", flush=True)
            if options.json:
                report.write_json(options.json, everything, limits)
    print("\n" + "\n".join(report.summary(everything)))
    print("\n" + "\n".join(report.spellings(everything)))
    if options.picture:
        report.draw(options.picture, everything)
    if before is not None:
        print("\n" + "\n".join(report.comparison(before, everything)))
    return int(any("pullback" in f.failed or "jax" in f.failed for f in everything))


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--peers", type=Path, metavar="VENV", help="an environment that has JAX, PyTorch and autograd")
    parser.add_argument(
        "--only", default="", metavar="NAME", help="groups or programs whose name contains this; '#': threads"
    )
    parser.add_argument(
        "--sides", default="pullback,jax,torch,numpy,autograd", help=f"of {', '.join(MAKERS)} (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sample", type=int, metavar="N", help="at most N programs of each group, evenly taken")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--picture", type=Path, help="draw the ratios here (PNG)")
    parser.add_argument("--compare", type=Path, metavar="JSON", help="say what changed since these figures")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
