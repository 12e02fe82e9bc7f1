"""What two libraries gave for one program, compared: structure first, then elements, then what rounding explains."""

from __future__ import annotations

import builtins
from typing import NamedTuple

import ml_dtypes
import numpy as np

from fuzz.worker import Argument, Leaf, Outcome, Raised

QUICK = 8  # units in the last place within which nothing further is asked
SLACK = 16.0  # times what a change of the arguments by one unit changes
FLOATS = ("float16", "bfloat16", "float32", "float64")


class Difference(NamedTuple):
    """The first difference of two outcomes: `exception`, `number`, `dtype`, `weak_type`, `shape`, `value`, `time`."""

    what: str
    detail: str
    leaf: int = 0


def compare(got: Outcome, want: Outcome) -> Difference | None:
    """The first difference between an outcome and the one that is wanted; None if they agree within some units."""
    if isinstance(got, Raised) or isinstance(want, Raised):
        return compare_raised(got, want)
    if len(got) != len(want):
        return Difference("number", f"{len(got)} arrays instead of {len(want)}")
    for k, (g, w) in enumerate(zip(got, want)):
        if g.shape != w.shape:
            return Difference("shape", f"{g.shape} instead of {w.shape}", k)
        if g.dtype != w.dtype:
            return Difference("dtype", f"{g.dtype} instead of {w.dtype}", k)
        if g.weak != w.weak:
            return Difference("weak_type", f"{g.weak} instead of {w.weak} ({g.dtype}{list(g.shape)})", k)
    for k, (g, w) in enumerate(zip(got, want)):
        if g.data != w.data and not np.all(near(g.value(), w.value())):
            bad = ~near(g.value(), w.value())
            some = [f"{x} for {y}" for x, y in zip(g.value()[bad][:3], w.value()[bad][:3])]
            return Difference("value", f"{g.dtype}{list(g.shape)}: {', '.join(some)} ({bad.sum()} elements)", k)
    return None


def compare_raised(got: Outcome, want: Outcome) -> Difference | None:
    """Exceptions agree if ours is caught by who catches JAX's builtin class, or its named class of `jax.errors`."""
    if isinstance(got, Raised) and isinstance(want, Raised):
        wanted = next(n for n in want.names if n in ERRORS or hasattr(builtins, n))
        builtin = next(n for n in want.names if hasattr(builtins, n))
        if {wanted, builtin} <= set(got.names):
            return None
    return Difference("exception", f"{worded(got)} instead of {worded(want)}")


ERRORS = {
    "ConcretizationTypeError", "TracerBoolConversionError", "TracerArrayConversionError",
    "TracerIntegerConversionError", "NonConcreteBooleanIndexError", "UnexpectedTracerError",
}  # fmt: skip


def worded(outcome: Outcome) -> str:
    """An outcome in one line."""
    if isinstance(outcome, Raised):
        return f"{outcome.names[0]}({outcome.message[:150]!r})"
    with np.printoptions(threshold=8):
        return "; ".join(f"{x.dtype}{list(x.shape)}{' weak' if x.weak else ''} {x.value()!s}" for x in outcome)[:200]


def parts(x: np.ndarray) -> np.ndarray:
    """Real and imaginary parts along a new last axis (one of length 1 for real ones), widened."""
    if x.dtype.kind == "c":
        return np.stack([x.real, x.imag], -1)
    return x[..., None]


def is_float(x: np.ndarray) -> bool:
    return x.dtype.kind == "c" or x.dtype.name in FLOATS or x.dtype.name.startswith("float8")


def precision(x: np.ndarray) -> tuple[float, float]:
    """The relative distance of neighbours, and the least normal number, of an inexact dtype."""
    part = x.real.dtype if x.dtype.kind == "c" else x.dtype
    info = ml_dtypes.finfo(part)
    return float(info.eps), float(info.smallest_normal)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) if is_float(x) else x


def near(g: np.ndarray, w: np.ndarray, units: float = QUICK) -> np.ndarray:
    """Where elements agree: exactly, or floats within some units (of a complex number: of its larger part)."""
    if not is_float(g):
        return np.asarray(g == w)
    eps, tiny = precision(w)
    with np.errstate(all="ignore"):
        a, b = parts(wide(g)), parts(wide(w))
        size = np.maximum(np.abs(a), np.abs(b)).max(-1, keepdims=True)
        close = np.abs(a - b) <= units * np.maximum(eps * size, tiny * eps if tiny else 0)
        close |= (a == b) | (np.isnan(a) & np.isnan(b))
    return np.all(close, -1)


def widened(a: Argument) -> Argument:
    """The same argument in the widest dtype of its kind."""
    target = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}.get(a.dtype)
    if target is None or a.form == "python":
        return a
    return Argument(a.form, target, a.shape, a.value().astype(target).tobytes())


def shaken(a: Argument, rng: np.random.Generator) -> Argument:
    """The argument with each element moved by one unit in the last place, up or down."""
    if a.dtype not in (*FLOATS, "complex64", "complex128"):
        return a
    value = a.value().reshape(-1)
    real = value.view(value.real.dtype) if value.dtype.kind == "c" else value
    sign = np.asarray(rng.choice([-np.inf, np.inf], real.shape)).astype(real.dtype)
    moved = np.where(np.isfinite(real.astype(np.float64)) & (real != 0), np.nextafter(real, sign), real)
    return Argument(a.form, a.dtype, a.shape, np.ascontiguousarray(moved.astype(real.dtype)).tobytes())


class Evidence(NamedTuple):
    """What decides on a difference of values: both results, the result with wide arguments, and with moved ones."""

    got: list[Leaf]
    want: list[Leaf]
    truth: list[Leaf] | None  # with wide arguments, by us
    truth_there: list[Leaf] | None  # with wide arguments, by the peer
    moved: list[list[Leaf]]  # with arguments moved by a unit, in the precision of `truth` or else of `want`


def verdict(e: Evidence, normwise: bool) -> str:
    """What explains a difference of values: 'condition', 'peer', or '' for nothing."""
    found = "condition"
    for k, (g, w) in enumerate(zip(e.got, e.want)):
        x, y = g.value(), w.value()
        if g.data == w.data or np.all(near(x, y)):
            continue

        def of(leaves, k=k, g=g, number=len(e.got)):
            """The same leaf of another result, if that has the same structure."""
            same = leaves is not None and len(leaves) == number and leaves[k].shape == g.shape
            return leaves[k].value() if same else None

        moved = [m for m in map(of, e.moved) if m is not None]
        one = leaf_verdict(x, y, of(e.truth), of(e.truth_there), moved, normwise)
        if not one:
            return ""
        if one == "ask":
            return one
        found = one if one == "peer" else found
    return found


def leaf_verdict(x, y, truth, truth_there, moved, normwise) -> str:
    base = truth if truth is not None else y
    if not is_float(x):
        # Integers made of floats: what a unit in an argument changes is open.
        open_ = np.zeros(x.shape, bool)
        for m in moved:
            open_ |= np.asarray(m != moved[0])
        open_ |= False if truth is None else np.asarray(truth != y) & np.asarray(truth == x)
        return "condition" if np.all((x == y) | open_) else ""
    eps, tiny = precision(y)
    with np.errstate(all="ignore"):
        p, j, t = (parts(wide(v)) for v in (x, y, base))
        limit = float(ml_dtypes.finfo(y.real.dtype if y.dtype.kind == "c" else y.dtype).max)
        t = np.where(np.abs(t) > limit, np.sign(t) * np.inf, t)
        change = np.zeros(p.shape)
        for m in moved:
            d = np.abs(parts(wide(m)) - parts(wide(base)))
            change = np.fmax(
                change, np.where(np.isnan(d), np.where(np.isnan(parts(wide(m))) & np.isnan(t), 0, np.inf), d)
            )
        size = np.abs(t).max(-1, keepdims=True)
        size = np.where(np.isfinite(size), size, 0)
        if normwise and size.size:
            size = np.maximum(size, size.max())
        allowed = 2 * QUICK * (eps * size + tiny * eps) + SLACK * change
        ours = (np.abs(p - t) <= allowed) | (p == t) | (np.isnan(p) & np.isnan(t))
        alike = (p == j) | (np.isnan(p) & np.isnan(j))  # where both say the same there is nothing to explain
        theirs = (np.abs(j - t) <= allowed) | (j == t) | (np.isnan(j) & np.isnan(t)) | alike
        # No worse than the peer is good enough where sums are long or steps many.
        lost = np.abs(j - t)
        share = np.where(np.isfinite(lost) & (size > 0), lost / np.where(size > 0, size, 1), 0)
        no_worse = np.abs(p - t) <= 4 * size * np.max(share, initial=0.0)
        if np.all(ours | no_worse | alike):
            if np.all(theirs):
                return "condition"
            if truth is not None and truth_there is None:
                return "ask"
            if truth is not None:
                s = parts(wide(truth_there))
                s = np.where(np.abs(s) > limit, np.sign(s) * np.inf, s)
                by_peer = np.where(np.isfinite(lost), lost, 0)
                same = (np.abs(s - t) <= allowed + 0.25 * by_peer) | (s == t) | (np.isnan(s) & np.isnan(t))
                return "peer" if np.all(same | theirs) else ""
    return ""
