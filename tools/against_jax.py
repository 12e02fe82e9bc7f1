"""Runs random programs on pullback and on an installed JAX, side by side, and reports where they differ.

    python tools/against_jax.py --peer /path/to/venv/bin/python --minutes 30 --page docs/against-jax.md

Each library runs in processes of its own, one for 32 and one for 64 bits; programs go to them as text and arguments as
bytes (tests/fuzz/worker.py). Differences that a reason explains are counted by reason (explained_*.py);
others are made small and printed. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from explained_differences import CLASSES, explain  # noqa: E402
from explained_values import ELEMENTS, excused  # noqa: E402
from fuzz.calls import Call, make_call, with_other_values, with_values  # noqa: E402
from fuzz.compare import Difference, Evidence, compare, shaken, verdict, widened, worded  # noqa: E402
from fuzz.composed import make_composed, with_fewer_moves  # noqa: E402
from fuzz.stored import write_stored  # noqa: E402
from fuzz.worker import Outcome, Raised, Task  # noqa: E402
from side_by_side import Answers, Worker, timed_out  # noqa: E402

BATCH = 24
COMPOSED = 16  # every so many batches one is of composed programs
JIT_SHARE, PEER_JIT_SHARE = 0.3, 0.02
ROUNDING = {
    "condition": "both are within what a unit in the last place of the arguments changes",
    "peer": "JAX's result is further from that of wider arguments, on which both agree, than ours",
}
NORMWISE = ("linalg", "products", "composed")


class Finding(NamedTuple):
    """A difference that nothing explains."""

    call: Call
    x64: bool
    how: str
    difference: Difference
    got: Outcome
    want: Outcome


class Run:
    """The counts of one run, and what it does with each batch."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        answers = Answers(Path(options.cache) / "answers.sqlite")
        self.workers = {
            (library, x64): Worker(python, library, x64, options.cache, kept)
            for library, python, kept in (("pullback", sys.executable, None), ("jax", options.peer, answers))
            for x64 in (False, True)
        }
        self.groups: collections.Counter[str] = collections.Counter()
        self.runs: collections.Counter[str] = collections.Counter()
        self.classes: collections.Counter[str] = collections.Counter()
        self.findings: list[Finding] = []
        self.seen: set[tuple[str, str]] = set()  # one finding for each program
        self.texts: set[str] = set()
        self.stored: list[tuple[Call, bool, Outcome]] = []
        self.started, self.done, self.lock = time.monotonic(), 0, threading.Lock()

    def stream(self, x64: bool) -> None:
        """Make and run batches with or without 64 bits until there have been enough."""
        number = 0
        while not self.over():
            rng = np.random.default_rng([self.options.seed, int(x64), number])
            number += 1
            composed = number % COMPOSED == 0
            calls: list[Call] = []
            while len(calls) < BATCH:
                call = make_composed(rng) if composed else make_call(rng, x64)
                if self.options.only in call.text:
                    others = [] if composed else range(self.options.values - 1)
                    calls += [call] + [with_other_values(call, rng) for _ in others]
            self.batch(calls, x64, rng)

    def over(self) -> bool:
        late = self.options.minutes and time.monotonic() - self.started > 60 * self.options.minutes
        return bool(late or (self.options.programs and self.done >= self.options.programs))

    def batch(self, calls: list[Call], x64: bool, rng: np.random.Generator) -> None:
        """Run some programs on both sides, and judge them."""
        jitted = [c for c in calls if rng.random() < JIT_SHARE and c.group != "composed"]
        ours = [Task(c.text, c.arguments, False) for c in calls] + [Task(c.text, c.arguments, True) for c in jitted]
        there = [c for c in jitted if rng.random() < PEER_JIT_SHARE / JIT_SHARE]
        theirs = [Task(c.text, c.arguments, False) for c in calls] + [Task(c.text, c.arguments, True) for c in there]
        answers: dict[str, list[Outcome]] = {}
        other = threading.Thread(target=lambda: answers.update(jax=self.workers["jax", x64].ask(theirs)))
        other.start()
        answers["pullback"] = self.workers["pullback", x64].ask(ours)
        other.join()
        got, want = answers["pullback"], answers["jax"]
        compiled = {id(c): o for c, o in zip(there, want[len(calls) :])}
        with self.lock:
            self.done += len(calls)
            for c, w in zip(calls, want):
                self.groups[c.group] += 1
                self.runs["both raise" if isinstance(w, Raised) else "eager"] += 1
            self.runs["jit"] += len(jitted)
            self.runs["peer jit"] += len(there)
        by_call = {id(c): w for c, w in zip(calls, want)}
        for c, g in zip(calls, got):
            self.judge(c, x64, "eager", g, by_call[id(c)], rng)
        for c, g in zip(jitted, got[len(calls) :]):
            w = compiled.get(id(c), by_call[id(c)])
            if id(c) not in compiled and isinstance(g, Raised) and not isinstance(w, Raised):
                # What needs concrete values raises under jit: only the peer's jit can tell.
                w = self.workers["jax", x64].ask([Task(c.text, c.arguments, True)])[0]
            self.judge(c, x64, "jit", g, w, rng)

    def judge(self, c: Call, x64: bool, how: str, got: Outcome, want: Outcome, rng: np.random.Generator) -> None:
        """Count what explains the difference of two outcomes, or keep it."""
        if timed_out(want):
            with self.lock:
                self.runs["timed out"] += 1
            return
        if timed_out(got):  # once may be a stall of the machine, twice is a loop or a compilation that does not end
            got = self.workers["pullback", x64].ask([Task(c.text, c.arguments, how == "jit")])[0]
        if timed_out(got):
            with self.lock:
                self.findings.append(Finding(c, x64, how, Difference("time", "only JAX's ended"), got, want))
                self.report(self.findings[-1])
            return
        difference = compare(got, want)
        if difference is None:
            if self.options.store and how == "eager":
                self.keep(c, x64, want)
            return
        if how == "jit" and difference.what in ("weak_type", "exception", "dtype"):
            want = self.workers["jax", x64].ask([Task(c.text, c.arguments, True)])[0]
            difference = compare(got, want)
            if difference is None:
                return
        name = ""
        if difference.what == "value":
            name = self.rounding(c, x64, how, got, want, rng)
            name = name or self.by_elements(c, x64, how, got, want, rng)
        else:
            name = explain(c, how, difference, got, want)
        with self.lock:
            if name:
                self.classes[name] += 1
                return
            if (c.text, difference.what) in self.seen:
                return
            self.seen.add((c.text, difference.what))
        small = (
            self.shrink(Finding(c, x64, how, difference, got, want))
            if self.options.shrink
            else Finding(c, x64, how, difference, got, want)
        )
        with self.lock:
            self.findings.append(small)
            self.report(small)

    def by_elements(self, c: Call, x64: bool, how: str, got: Outcome, want: Outcome, rng: np.random.Generator) -> str:
        """The kind that explains some elements, if something explains the others."""
        rest, name = excused(c, got, want)
        difference = compare(rest, want) if name else None
        if difference is None:
            return name
        return name if self.rounding(c, x64, how, rest, want, rng) else ""

    def keep(self, c: Call, x64: bool, want: Outcome) -> None:
        """Note a small result of JAX that ours agrees with, one for each text."""
        size = sum(len(a.data) for a in c.arguments) + (
            0 if isinstance(want, Raised) else sum(len(x.data) for x in want)
        )
        with self.lock:
            if size <= 512 and c.text not in self.texts and len(self.stored) < self.options.stored:
                self.texts.add(c.text)
                self.stored.append((c, x64, want))

    def rounding(self, c: Call, x64: bool, how: str, got, want, rng: np.random.Generator) -> str:
        """What wide and slightly moved arguments say about a difference of values."""
        lifted = tuple(widened(a) for a in c.arguments)
        is_wide = lifted != c.arguments
        moved = [tuple(a if d == "exact" else shaken(a, rng) for a, d in zip(c.arguments, c.domains)) for _ in range(4)]
        if is_wide:
            moved = [tuple(widened(a) for a in m) for m in moved]
        tasks = [Task(c.text, m, False) for m in moved]
        first = Task(c.text, lifted, False)
        shifts = (
            self.workers["pullback", x64 or is_wide].ask([first, *tasks])
            if is_wide
            else self.workers["jax", x64].ask([first, *tasks])
        )
        truth = shifts[0] if is_wide and not isinstance(shifts[0], Raised) else None
        evidence = Evidence(got, want, truth, None, [m for m in shifts[1:] if not isinstance(m, Raised)])
        normwise = c.group in NORMWISE or any(part in c.text for part in (".fft.", "jnp.gradient(", "jnp.diff("))
        found = verdict(evidence, normwise)
        if found == "ask":
            there = self.workers["jax", True].ask([first])[0]
            found = "" if isinstance(there, Raised) else verdict(evidence._replace(truth_there=there), normwise)
        return "" if found == "ask" else found

    def shrink(self, f: Finding) -> Finding:
        """The same difference of a program with fewer moves and simpler arguments."""
        for call in with_fewer_moves(f.call):
            again = self.once(call, f)
            if again is not None:
                f = again
                break
        for k, a in enumerate(f.call.arguments):
            value = a.value()
            for simple in (
                np.zeros_like(value),
                np.ones_like(value),
                np.full_like(value, value.reshape(-1)[0] if value.size else 0),
            ):
                call = with_values(f.call, k, simple)
                again = self.once(call, f)
                if again is not None:
                    f = again
                    break
        return f

    def once(self, call: Call, f: Finding) -> Finding | None:
        task = Task(call.text, call.arguments, f.how == "jit")
        got, want = (self.workers[side, f.x64].ask([task])[0] for side in ("pullback", "jax"))
        difference = compare(got, want)
        if difference is None or difference.what != f.difference.what:
            return None
        rng = np.random.default_rng(0)
        if difference.what == "value":
            name = self.rounding(call, f.x64, f.how, got, want, rng)
            name = name or self.by_elements(call, f.x64, f.how, got, want, rng)
        else:
            name = explain(call, f.how, difference, got, want)
        return None if name else f._replace(call=call, difference=difference, got=got, want=want)

    def report(self, f: Finding) -> None:
        with open(self.options.log, "a") if self.options.log else open(os.devnull, "w") as out:
            print(described(f), file=out, flush=True)

    def progress(self) -> None:
        while not self.over():
            time.sleep(5)
            seconds = time.monotonic() - self.started
            print(
                f"\r{self.done} programs, {self.done / seconds:.1f}/s, {sum(self.classes.values())} explained, "
                f"{len(self.findings)} not", end="", flush=True,
            )  # fmt: skip


def described(f: Finding) -> str:
    """A finding as text that says how to see it again."""
    lines = [
        f"--- {f.call.group}, {f.how}, x64 {'on' if f.x64 else 'off'}: {f.difference.what}: {f.difference.detail}",
        f.call.text.rstrip(),
    ]
    for k, a in enumerate(f.call.arguments):
        with np.printoptions(threshold=40, floatmode="unique"):
            lines.append(f"x{k} = {a.form} {a.dtype}{list(a.shape)} {' '.join(str(a.value()).split())}")
    return "\n".join([*lines, f"pullback: {worded(f.got)}", f"JAX:      {worded(f.want)}"])


def page(run: Run) -> str:
    """The page of a run."""
    minutes = (time.monotonic() - run.started) / 60
    reasons = [*ROUNDING.items(), *((c.name, c.reason) for c in (*CLASSES, *ELEMENTS))]
    lines = [
        "# Against JAX", "",
        "Random programs on pullback and on JAX side by side, as `tools/against_jax.py` made and compared them: dtype,",
        "weak type, shape, values, and the types of exceptions. A program is a call of a public function with random",
        "arguments, legal or not, most often alone, else under a transformation or with steps around it",
        "(`tests/fuzz/catalog.py`); one batch in sixteen is of composed programs, of several operations with loops,",
        "branches and derivatives inside of each other, under jit and transformations (`tests/fuzz/program.py`).",
        "",
        f"The last run: **{run.done} programs** (seed {run.options.seed}, {minutes:.0f} minutes,",
        f"{run.options.values} sets of arguments for each text), of which {run.runs['both raise']} raise in JAX.",
        f"{run.runs['jit']} were also jitted, {run.runs['peer jit']} also by JAX. {run.runs['timed out']} took JAX",
        "more than 30 s, and say nothing.", "",
        "| programs | number |", "| --- | ---: |",
        *(f"| {group} | {count} |" for group, count in sorted(run.groups.items())), "",
        f"Programs with differences that nothing below explains: **{len(run.findings)}**.", "",
        "| difference | number | reason |", "| --- | ---: | --- |",
        *(f"| {name} | {run.classes[name]} | {reason} |" for name, reason in reasons), "",
    ]  # fmt: skip
    for f in run.findings[:40]:
        lines += ["```", described(f), "```", ""]
    return "\n".join(lines)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", required=True, help="the interpreter of an environment with JAX")
    parser.add_argument("--programs", type=int, default=0, help="stop after so many")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--values", type=int, default=4, help="how many sets of arguments each program gets (default 4)"
    )
    parser.add_argument("--store", help="write results of JAX that ours agree with to this file, which tests read")
    parser.add_argument("--stored", type=int, default=700, help="how many of them (default 700)")
    parser.add_argument("--only", default="", help="programs whose text contains this")
    parser.add_argument("--page", help="write the counts and what is unexplained to this file")
    parser.add_argument("--log", help="append what is unexplained to this file as it is found")
    parser.add_argument("--cache", default="/tmp/against-jax-cache", help="where the peer keeps what it has compiled")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    options = parser.parse_args(given)
    if not options.programs and not options.minutes:
        options.programs = 2000
    return options


def main() -> int:
    """Run programs until the limit; 1 if something is unexplained."""
    options = arguments()
    run = Run(options)
    threads = [threading.Thread(target=run.stream, args=(x64,), daemon=True) for x64 in (False, True)]
    for t in threads:
        t.start()
    run.progress()
    for t in threads:
        t.join()
    print()
    for f in run.findings[:20]:
        print(described(f))
    if options.store:
        write_stored(Path(options.store), run.stored)
    if options.page:
        Path(options.page).write_text(page(run))
    for w in run.workers.values():
        w.stop()
    print(f"{run.done} programs; {dict(run.classes)}; {len(run.findings)} unexplained")
    return int(bool(run.findings))


if __name__ == "__main__":
    sys.exit(main())
