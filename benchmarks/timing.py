"""Times a program on all sides, interleaved: the minimum over rounds of the mean time of a batch of calls."""

from __future__ import annotations

import gc
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks.limits import Limits
from benchmarks.program import Program
from benchmarks.sides import JaxLike, Side, leaves_of

BATCH_SECONDS = 0.02
MOST_CALLS = 20_000
LOOK = 0.01  # seconds over which threads are watched before a batch
RESTING = 0.2  # of a core's time, at most, that a process takes whose threads rest
PATIENCE = 0.5  # seconds after which a batch begins all the same
JUDGES = ("numpy", "jax", "torch")  # whose results are taken for right, the first that is there


@dataclass
class Figures:
    """What was measured of one program."""

    group: str
    name: str
    seconds: dict[str, float] = field(default_factory=dict)  # side -> a call
    first: dict[str, float] = field(default_factory=dict)  # side -> first call, with tracing and compilation
    failed: dict[str, str] = field(default_factory=dict)  # side -> what went wrong
    values: dict[str, float] = field(default_factory=dict)  # side -> a number that the program found, where one matters
    kernels: float | None = None  # loop nests and library calls of ours
    bytes_moved: float | None = None  # by ours, as planned
    bytes_least: float = 0
    operations: float = 0
    limit: float | None = None  # seconds asked for
    thread: int | None = None
    share: float | None = None  # of the machine's limit that ours reaches

    def ratio(self, peer: str) -> float | None:
        """How many times faster ours is than a peer."""
        ours, theirs = self.seconds.get("pullback"), self.seconds.get(peer)
        return theirs / ours if ours and theirs else None

    @property
    def best_peer(self) -> str | None:
        """The fastest side besides pullback and JAX."""
        peers = {k: v for k, v in self.seconds.items() if k not in ("pullback", "jax")}
        return min(peers, key=peers.__getitem__) if peers else None

    def as_json(self) -> dict[str, Any]:
        """All fields, as plain values."""
        return asdict(self)


def measure(group: str, program: Program, sides: Sequence[Side], limits: Limits | None, rounds: int) -> Figures:
    """Run, compare and time one program; a side that fails is reported, not fatal. Without limits there is no share."""
    figures = Figures(group, program.name, limit=program.limit, thread=program.thread, operations=program.operations)
    rng = np.random.default_rng(zlib.crc32(program.name.encode()))
    inputs = program.inputs(rng)
    for side in sides:
        if isinstance(side, JaxLike):
            side.set_x64(program.x64)
    try:
        calls = _prepare(program, inputs, sides, figures)
        figures.seconds = interleaved(calls, rounds)
        _analyse(program, inputs, sides, figures)
    finally:
        for side in sides:
            if isinstance(side, JaxLike):
                side.set_x64(False)
    if limits and figures.seconds.get("pullback"):
        figures.share = limits.seconds(figures.bytes_least, figures.operations) / figures.seconds["pullback"]
    return figures


def fastest(calls: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """Seconds of each call: the least mean of a batch, over interleaved rounds; each call is made twice before."""
    for call in calls.values():
        call()
    return interleaved({name: (call, batch_size(call)) for name, call in calls.items()}, rounds)


def interleaved(calls: Mapping[str, tuple[Callable[[], Any], int]], rounds: int) -> dict[str, float]:
    """Seconds of each call, given with the number of calls in a batch: the least mean of a batch over all rounds."""
    seconds: dict[str, float] = {}
    for _ in range(rounds):
        for name, (call, count) in calls.items():
            mean = _timed(call, count)
            seconds[name] = min(mean, seconds.get(name, mean))
    return seconds


def batch_size(call: Callable[[], Any]) -> int:
    """How many calls fill a batch, found by making one."""
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-8)
    return max(1, min(MOST_CALLS, int(BATCH_SECONDS / once)))


def _prepare(program: Program, inputs: tuple, sides: Sequence[Side], figures: Figures) -> dict:
    """Each side's call with the number of calls in a batch, after its results were compared with a peer's."""
    calls: dict[str, tuple[Callable[[], Any], int]] = {}
    results: dict[str, list[np.ndarray]] = {}
    least = sum(np.asarray(x).nbytes for k, x in enumerate(inputs) if k not in program.static for x in leaves_of(x))
    for side in sides:
        if not side.has(program):
            continue
        try:
            start = time.perf_counter()
            call = side.call(program, inputs)
            result = call()
            figures.first[side.name] = time.perf_counter() - start
            results[side.name] = side.arrays(result)
        except Exception as error:
            figures.failed[side.name] = f"{type(error).__name__}: {str(error)[:200]}"
            continue
        if len(results) == 1:
            least += sum(a.nbytes for a in results[side.name])
        del result
        call()
        calls[side.name] = call, batch_size(call)
    if program.tolerance is not None:
        judge = next((name for name in JUDGES if name in results), next(iter(results), ""))
        for name, arrays in results.items():
            if name != judge and (difference := _difference(results[judge], arrays, program.tolerance)):
                figures.failed[name] = f"differs from {judge}: {difference}"
    figures.bytes_least = least if program.bytes is None else program.bytes
    return calls


def _difference(ours: list[np.ndarray], theirs: list[np.ndarray], tolerance: float) -> str:
    """What is unequal, in words; empty if nothing is."""
    if len(ours) != len(theirs):
        return f"{len(theirs)} results, not {len(ours)}"
    for k, (a, b) in enumerate(zip(ours, theirs)):
        if a.size != b.size:
            return f"result {k} has shape {b.shape}, not {a.shape}"
        a, b = (x.reshape(-1).astype(np.complex128 if np.iscomplexobj(x) else np.float64) for x in (a, b))
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * _largest(a), equal_nan=True):
            return f"result {k} by {_largest(a - b):.3g} of {_largest(a):.3g}"
    return ""


def _largest(x: np.ndarray) -> float:
    finite = np.abs(x[np.isfinite(x)])
    return float(finite.max()) if finite.size else 0.0


def _timed(call: Callable[[], Any], count: int) -> float:
    gc.collect(0)
    _let_threads_rest()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count
    finally:
        if was_enabled:
            gc.enable()


def _let_threads_rest() -> None:
    """Wait until no other side's threads run: OpenBLAS's spin for 0.11 s after work, on cores that others need."""
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(LOOK)
        if time.process_time() - used < RESTING * (time.perf_counter() - start):
            return


def _analyse(program: Program, inputs: tuple, sides: Sequence[Side], figures: Figures) -> None:
    """Number of kernels and bytes moved, as our compiler planned them."""
    if not sides:
        return
    side = sides[0]
    if side.name != "pullback" or not isinstance(side, JaxLike) or not program.jit or side.name in figures.failed:
        return
    cost = side.jitted(program).lower(*side.inputs(program, inputs)).compile().cost_analysis()
    figures.kernels, figures.bytes_moved = cost["kernels"], cost["bytes accessed"]
