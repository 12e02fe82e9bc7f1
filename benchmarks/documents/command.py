"""`python -m benchmarks documents`: measures each section in a process of its own and writes docs/documents.md.

What was measured is kept in out/documents.json, so that one section can be measured again and an interrupted run
resumed; the text is made of those values only.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples import _common as common

from benchmarks.documents import arrays, compared, derivatives, layers, pln, radii, samples, sums
from benchmarks.documents.section import GAPS, TITLES, Section, Setting, failures
from benchmarks.report import times
from benchmarks.sides import add_peers
from benchmarks.timing import Figures

ROOT = Path(__file__).parents[2]
SECTIONS = {
    module.SECTION.key: module.SECTION for module in (arrays, derivatives, layers, pln, samples, sums, radii, compared)
}
BEHIND = 1.05  # times a peer's time, from which a program is listed


def main(argv: list[str] | None = None) -> int:
    """Measure and write; 1 if pullback failed somewhere or a section was not done in time."""
    options = parse(argv)
    chosen = [SECTIONS[key] for key in (options.only.split(",") if options.only else SECTIONS)]
    setting = Setting(options.quick, options.rounds, options.peers)
    if options.part:
        warnings.simplefilter("ignore")
        if options.peers:
            add_peers(options.peers)
        measure_part(chosen[0], setting, options.part)
        return 0
    options.json.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    for section in chosen:
        if options.resume and known.get(section.key, {}).get("complete"):
            continue
        known[section.key] = measure_section(section, options)
        options.json.write_text(json.dumps(known, indent=1) + "\n")
    text = document(known, options.folder)
    (options.folder / "documents.md").write_text(text)
    print(f"written: {options.folder / 'documents.md'}", file=sys.stderr)
    measured = [known[section.key] for section in chosen]
    failed = []
    for f in (f for part in measured for f in part["figures"]):
        message = f["failed"].get("pullback", "")
        if message and not message.startswith(GAPS):
            failed.append(f"{f['group']}, {f['name']}: {message}")
    print("".join(f + "\n" for f in failed), end="", file=sys.stderr)
    return int(bool(failed) or not all(part["complete"] for part in measured))


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    description = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks documents", description=description)
    parser.add_argument("--peers", type=Path, metavar="VENV", help="an environment that has JAX, PyTorch and autograd")
    parser.add_argument("--only", metavar="F1,...", help=f"of {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--resume", action="store_true", help="keep the sections that were measured completely")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "documents.json", help="what was measured")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs", help="where documents.md and its pictures go")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)  # measure one section in this process
    options = parser.parse_args(argv)
    unknown = set((options.only or "").split(",")) - set(SECTIONS) - {""}
    if unknown:
        parser.error(f"--only: {', '.join(sorted(unknown))} is not one of {', '.join(SECTIONS)}")
    return options


def measure_section(section: Section, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of a section from a process of its own, or what it had when its time was over."""
    part = options.json.with_suffix(f".{section.key}.json")
    part.unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks", "documents", "--only", section.key, "--part", str(part)]
    command += ["--rounds", str(options.rounds), *(["--quick"] if options.quick else [])]
    command += ["--peers", str(options.peers)] if options.peers else []
    start = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=section.limit, check=False)
        complete, why = done.returncode == 0, f"the process ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        complete, why = False, f"not done after {section.limit:g} s"
    figures = json.loads(part.read_text()) if part.exists() else []
    part.unlink(missing_ok=True)
    took = time.perf_counter() - start
    common.progress(f"{section.key}: {len(figures)} programs in {took:.0f} s{'' if complete else ', ' + why}")
    print(file=sys.stderr)
    return {"figures": figures, "complete": complete, "why": why, "quick": options.quick, "versions": versions(options)}


def measure_part(section: Section, setting: Setting, path: Path) -> None:
    """Measure a section in this process; what is known is on disk after each program."""
    figures: list[Figures] = []
    for f in section.measure(setting):
        figures.append(f)
        path.write_text(json.dumps([x.as_json() for x in figures]))


def versions(options: argparse.Namespace) -> dict[str, str]:
    """Of the machine and of what was timed."""
    found = {"cores": str(len(os.sched_getaffinity(0))), "processor": processor(), "Python": platform.python_version()}
    paths = list(sys.path)
    if options.peers:
        add_peers(options.peers)
    for package in ("numpy", "jax", "torch", "autograd"):
        try:
            found[TITLES[package]] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[TITLES[package]] = "not there"
    sys.path[:] = paths
    return found


def processor() -> str:
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def document(known: dict[str, Any], folder: Path) -> str:
    """The whole text."""
    parts = [
        "# What the documents show",
        "Five public documents show JAX from its users' side: what it does, and where it hurts. Their programs were "
        "measured again, by JAX of today, by pullback and by their peers; the programs are those of "
        "[examples](../examples), which run on JAX, too (`--backend jax`).",
        "This page is written by `python -m benchmarks documents --peers VENV`; its sentences are made of the measured "
        "values. All libraries run in one process (in F4: each in its own), interleaved, on equal inputs; a time is "
        "the least mean of a batch of calls over all rounds. '-': not measured, as the library has no such thing or "
        "not the memory.",
    ]
    settings = {json.dumps(part["versions"]) for part in known.values()}
    for setting in sorted(settings):
        values = json.loads(setting)
        names = ", ".join(f"{k} {v}" for k, v in values.items() if k not in ("cores", "processor"))
        parts.append(f"Machine: {values['cores']} cores of {values['processor']}; {names}.")
    everything: list[Figures] = []
    for key, section in SECTIONS.items():
        parts.append(f"## {key}. {section.title}")
        parts.append(f"**The document** {section.found}")
        if key not in known:
            parts.append(f"Not measured yet: `python -m benchmarks documents --only {key}`.")
            continue
        figures = [Figures(**f) for f in known[key]["figures"]]
        everything += figures
        if known[key]["quick"]:
            parts.append("(Measured on small sizes: `--quick`.)")
        if not known[key]["complete"]:
            parts.append(f"(Incomplete: {known[key]['why']}.)")
        if figures:
            parts += [*section.render(figures, folder), *failures(figures)]
    parts += ["## Where pullback is behind", *behind(everything)]
    return "\n\n".join(parts) + "\n"


def behind(figures: Sequence[Figures]) -> list[str]:
    """The programs that a peer does in less time."""
    rows = []
    for f in figures:
        ours = f.seconds.get("pullback")
        for side, theirs in sorted(f.seconds.items(), key=lambda item: item[1]):
            if ours and side != "pullback" and ours > BEHIND * theirs:
                rows.append([f"{f.group}, {f.name}", ours, theirs, TITLES.get(side, side), times(ours / theirs)])
                break
    timed = sum("pullback" in f.seconds for f in figures)
    if not rows:
        return [f"Nowhere by more than {BEHIND - 1:.0%}, of {timed} programs."]
    return [
        f"{len(rows)} of {timed} programs take more than {BEHIND:g} times the time of the fastest peer:",
        common.table(["program", "pullback", "fastest", "by", "pullback / fastest"], rows),
    ]


if __name__ == "__main__":
    sys.exit(main())
