"""Runs the libraries' own tests on JAX and on pullback, and prints what passes on JAX alone.

    python -m tools.library_suites --home .libraries                # all of them
    python -m tools.library_suites --home .libraries --only optax,flax --minutes 20 --most 50

The tests are those of the source distributions on PyPI, unmodified; `make libraries` makes the environment. Each file
runs in a process of its own. JAX's outcomes are kept under the home, and so are pullback's, with texts of failures.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from tools.library_suites.suites import SUITES, Suite

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]


def main(argv: list[str] | None = None) -> int:
    """Run what was asked for; 1 if a test fails on pullback that passes on JAX, or for which JAX was not asked."""
    options = parse(argv)
    end = time.monotonic() + 60 * options.minutes
    chosen = [s for s in SUITES if not options.only or s.name in options.only.split(",")]
    rows = []
    for suite in chosen:
        folder = unpacked(suite, options.home)
        files = [f for f in test_files(suite, folder) if options.file in str(f)]
        run_all(suite, folder, files, "pullback", options, end)
        judged = [f for f in files if not options.quick or any_fails(log_of(suite, f, "pullback", options))]
        run_all(suite, folder, judged, "jax", options, end)
        rows.append(compare(suite, folder, files, options))
        print(line(rows[-1]), flush=True)
    print("\n" + "\n".join(table(rows)))
    failing = [(row["name"], test, text) for row in rows for test, text in row["worse"].items()]
    for name, test, text in failing:
        print(f"\n== {name}: {test}\n{text if options.texts else last_line(text)}")
    not_judged = [(row["name"], test, text) for row in rows for test, text in row["not judged"].items()]
    for name, test, text in not_judged:
        print(f"\n== {name}: {test}: not judged, as there was no time for JAX\n{last_line(text)}")
    return int(bool(failing or not_judged))


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.library_suites", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--home", type=Path, required=True, help="has the environment (venv), sources and outcomes")
    parser.add_argument("--only", default="", metavar="NAMES", help="of these libraries, with commas between")
    parser.add_argument("--file", default="", metavar="PART", help="files whose path contains this")
    parser.add_argument("--minutes", type=float, default=60, help="no file begins after that (default: %(default)s)")
    parser.add_argument("--most", type=int, default=60, help="tests of each file at most (default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=120, help="seconds a test may take (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="ask JAX about files alone in which a test fails here")
    parser.add_argument("--texts", action="store_true", help="print failures in full")
    parser.add_argument("--again", action="store_true", help="run files of pullback whose outcomes are there, too")
    return parser.parse_args(argv)


def unpacked(suite: Suite, home: Path) -> Path:
    """The folder of the source distribution of the version that the environment has, fetched if need be."""
    python = home / "venv" / "bin" / "python"
    ask = f"import importlib.metadata as m; print(m.version({suite.name!r}))"
    version = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    sources = home / "sources"
    stems = [f"{name}-{version}" for name in (suite.name.replace("-", "_"), suite.name)]  # older ones keep the hyphen
    if not any((sources / stem).is_dir() for stem in stems):
        sources.mkdir(parents=True, exist_ok=True)
        command = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", suite.name, "-d", sources]
        subprocess.run([*command, f"{suite.name}=={version}"], check=True)
        with tarfile.open(next(p for p in sources.glob("*.tar.gz") if p.name.startswith(tuple(stems)))) as archive:
            archive.extractall(sources, filter="data")
    return next(sources / stem for stem in stems if (sources / stem).is_dir())


def test_files(suite: Suite, folder: Path) -> list[Path]:
    """The files of tests, relative to the folder."""
    found = sorted({p.relative_to(folder) for pattern in suite.files for p in folder.glob(pattern)})
    return [p for p in found if not any(part in str(p) for part in suite.left_out)]


def log_of(suite: Suite, file: Path, side: str, options: argparse.Namespace) -> Path:
    """Where the outcomes of a file stand."""
    return options.home / "outcomes" / side / suite.name / (str(file).replace("/", ".") + f".{options.most}.jsonl")


def run_all(suite: Suite, folder: Path, files: list[Path], side: str, options: argparse.Namespace, end: float) -> None:
    """Run those files whose outcomes are not there yet."""

    def one(file: Path) -> None:
        log = log_of(suite, file, side, options)
        if time.monotonic() < end and (not log.exists() or (side == "pullback" and options.again)):
            run(folder, file, side, log, options)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, files))


def run(folder: Path, file: Path, side: str, log: Path, options: argparse.Namespace) -> None:
    """Run one file in a process; one that dies has its last test counted as failed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    part = log.with_suffix(".part")
    part.unlink(missing_ok=True)
    environment = os.environ | {
        "LIBRARY_SUITES_SIDE": side,
        "LIBRARY_SUITES_LOG": str(part.resolve()),
        "LIBRARY_SUITES_MOST": str(options.most),
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(ROOT / "src")]),
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
    }
    command = [(options.home / "venv" / "bin" / "python").absolute(), "-m", "pytest", "-q", "-p", "recorder"]
    command += ["-p", "no:cacheprovider", f"--timeout={options.timeout}", "-o", "addopts=", str(file)]
    output = log.with_suffix(".txt")
    with output.open("w") as out:
        try:
            subprocess.run(
                command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, timeout=options.timeout * 8,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            out.write("\nthe file took too long\n")
    if not part.exists():
        part.write_text("")
    part.rename(log)


def outcomes(log: Path) -> dict[str, tuple[str, str]]:
    """Test -> outcome and text; one that began and did not end has 'died'."""
    found: dict[str, tuple[str, str]] = {}
    if log.exists():
        for text in log.read_text().splitlines():
            entry = json.loads(text)
            outcome = "died" if entry["outcome"] == "began" else entry["outcome"]
            if found.get(entry["test"], ("died",))[0] in ("died", "passed"):
                found[entry["test"]] = outcome, entry.get("text", "")
    return found


def any_fails(log: Path) -> bool:
    """Whether a test of a file fails."""
    return any(outcome in ("failed", "died") for outcome, _ in outcomes(log).values())


def compare(suite: Suite, folder: Path, files: list[Path], options: argparse.Namespace) -> dict:
    """How many tests pass on JAX, how many of those here, and which do not."""
    passed = equal = 0
    worse: dict[str, str] = {}
    not_judged: dict[str, str] = {}  # what fails here, in files for which there was no time on JAX
    for file in files:
        there = outcomes(log_of(suite, file, "jax", options))
        here = outcomes(log_of(suite, file, "pullback", options))
        if not here:
            continue
        if not log_of(suite, file, "jax", options).exists():
            fails = {test: text for test, (outcome, text) in here.items() if outcome in ("failed", "died")}
            not_judged |= fails
            if options.quick:  # what passes here is taken to pass on JAX
                there = {test: found for test, found in here.items() if test not in fails}
        broken = next((text for test, (_, text) in here.items() if test.endswith("(import)")), None)
        for test, (outcome, _) in there.items():
            if outcome != "passed" or (test not in here and broken is None):
                continue
            passed += 1
            found, text = here.get(test, ("failed", broken or ""))
            if found == "passed":
                equal += 1
            else:
                worse[test] = text or found
    return {
        "name": suite.name,
        "version": folder.name.rsplit("-", 1)[1],
        "passed": passed,
        "equal": equal,
        "worse": worse,
        "not judged": not_judged,
    }


def line(row: dict) -> str:
    """A row of the table."""
    share = 100 * row["equal"] / row["passed"] if row["passed"] else 0
    return f"| {row['name']} {row['version']} | {row['passed']} | {row['equal']} | {share:.1f} % |"


def table(rows: list[dict]) -> list[str]:
    """The table, in Markdown."""
    total = {"name": "all", "version": "", **{k: sum(r[k] for r in rows) for k in ("passed", "equal")}}
    head = ["| library | pass on JAX | of these here | share |", "| --- | ---: | ---: | ---: |"]
    return [*head, *map(line, rows), line(total)]


def last_line(text: str) -> str:
    """What went wrong, in one line."""
    errors = [part for part in text.splitlines() if part.startswith("E ")]
    return (errors or text.splitlines() or [""])[0]


if __name__ == "__main__":
    sys.exit(main())
