"""Values of neighbours along dimensions that are cut: `x[1:] - x[:-1]`, `pad(x, 1)[2:]`, `x.at[1:-1].add(y)`.

Of 8 elements on 4 devices each has two; x[1:] has 7, which no four devices have in equal parts, so that all of x would
be gathered. Here x[1:] is the beginning of an array of 8 elements that is cut as x is, rotate(x, 1), for which devices
exchange their edges only. Terms:

    frame   the sizes of x along its dimensions that are cut: arrays that have them are cut as x is
    near    a value that is at most as large as its frame: it is the beginning of an array of the frame's sizes, whose
            elements behind it are arbitrary
    far     a value that is larger (padded, or joined with others): it is never made, its slices are taken of what it
            is made of

    x[1:] - x[:-1]           rotate(x, 1) - x: 7 elements, and one behind them that is arbitrary
    sum(y), y near           the arbitrary elements count as 0; an index along the dimension tells which these are
    x.at[1:-1].set(y)        select(index is one of y's, rotate(y, -1), x)

The rest of the program gets near values with their own shapes, which gathers them. So both programs are partitioned,
and the one that moves fewer bytes is taken (write.py).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.compiler.graph.simplify.cse import eliminate_common_subexpressions
from pullback.core.asked import asked
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from pullback.core.source import at_line, calling_line
from pullback.core.staging import trace
from pullback.core.types import CONSTRAINTS, untyped
from pullback.partition.factors import Cut, Sizes, extent
from pullback.partition.neighbours import identity_of, rotate_p
from pullback.transforms.partial_eval import dce_jaxpr
from pullback.util import dtypes
from pullback.util.record import NamedTuple

_REDUCTIONS = {
    "reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min",
    "reduce_or": "or", "reduce_and": "and",
}  # fmt: skip
_FEW = 4  # an array of so few rows that becomes a part of a larger one is placed row by row

Ints = tuple[int, ...]


class _Frame(NamedTuple):
    """Sizes of an array along its dimensions that are cut, and of the part that one device has of each."""

    sizes: Mapping[int, int]
    parts: Mapping[int, int]

    def near(self, shape: Sequence[int]) -> bool:
        """Whether a value of this shape is as large, within the size of a part: only then edges alone are exchanged."""
        return all(abs(shape[d] - n) <= self.parts[d] for d, n in self.sizes.items())

    def shape(self, shape: Sequence[int]) -> Ints:
        """The shape of the array that has the frame's sizes, and a value's own along all else."""
        return tuple(self.sizes.get(d, n) for d, n in enumerate(shape))


def with_halos(closed: ClosedJaxpr, known: Mapping[Any, Cut], mesh: Sizes) -> ClosedJaxpr:
    """The program with near and far values written by rotations; itself if there are none."""
    original, jaxpr = closed, closed.jaxpr
    if not any(_is_partial(eqn, known, mesh) for eqn in jaxpr.eqns):
        return closed
    known = dict(known)
    closed = ClosedJaxpr(_in_two_steps(jaxpr, known, mesh), closed.consts)
    rewriting = _Rewriting(known, mesh)

    def run(*args: Any) -> list[Any]:
        return rewriting.run(closed, args)

    avals = [getattr(a, "untyped", a) for a in closed.in_avals]
    with asked(mesh):
        found = untyped(trace(run, avals, jaxpr.debug_info))
    if not rewriting.changed:
        return original
    return eliminate_common_subexpressions(ClosedJaxpr(dce_jaxpr(found.jaxpr), found.consts))


def _in_two_steps(jaxpr: Jaxpr, known: dict[Any, Cut], mesh: Sizes) -> Jaxpr:
    """The program with slices that have a step in two: one that every device takes of its own part, and one without.

    x[2::2] of 16 elements is x[::2][1:].
    """
    eqns: list[Any] = []
    for eqn in jaxpr.eqns:
        parts = None
        if eqn.primitive.name == "slice" and eqn.params["strides"] and not isinstance(eqn.invars[0], Literal):
            parts = _steps(eqn, known.get(eqn.invars[0]), mesh)
        if parts is None:
            eqns.append(eqn)
            continue
        first, second, shape = parts
        every = Var(eqn.outvars[0].aval.update(shape=shape))
        known[every] = known[eqn.invars[0]]
        eqns.append(eqn.replace(params={**eqn.params, **first}, outvars=[every]))
        eqns.append(eqn.replace(params={**second, "strides": None}, invars=[every]))
    return jaxpr.replace(eqns=eqns) if len(eqns) > len(jaxpr.eqns) else jaxpr


def _steps(eqn: Any, cut: Cut | None, mesh: Sizes) -> tuple[dict[str, Any], dict[str, Any], Ints] | None:
    """Parameters of both slices, and the shape between; None where one is enough, or parts become unequal."""
    p, whole = eqn.params, eqn.invars[0].aval.shape
    starts, strides = p["start_indices"], p["strides"]
    counts = [extent(axes, mesh) for axes in cut or ((),) * len(whole)]
    divide = [c > 1 and s > 1 and n % (c * s) == 0 for c, s, n in zip(counts, strides, whole)]
    out = eqn.outvars[0].aval.shape
    if not any(d and n != m * s for d, n, m, s in zip(divide, whole, out, strides)):
        return None
    if any(c > 1 and s > 1 and not d for c, s, d in zip(counts, strides, divide)):
        return None
    shape = tuple(n // s if d else m for d, n, m, s in zip(divide, whole, out, strides))
    first = {
        "start_indices": tuple(a % s if d else a for d, a, s in zip(divide, starts, strides)),
        "limit_indices": tuple(n if d else b for d, n, b in zip(divide, whole, p["limit_indices"])),
    }
    begin = tuple(a // s if d else 0 for d, a, s in zip(divide, starts, strides))
    return first, {"start_indices": begin, "limit_indices": tuple(a + m for a, m in zip(begin, out))}, shape


def _is_partial(eqn: Any, known: Mapping[Any, Cut], mesh: Sizes) -> bool:
    """Whether an equation takes or makes a part of a dimension that is cut."""
    if eqn.primitive.name not in ("slice", "pad", "dynamic_update_slice", "dynamic_slice", "concatenate"):
        return False
    shape = eqn.outvars[0].aval.shape
    for atom in eqn.invars[:1] if eqn.primitive.name != "concatenate" else eqn.invars:
        cut = None if isinstance(atom, Literal) else known.get(atom)
        for d, axes in enumerate(cut or ()):
            differs = eqn.primitive.name == "dynamic_update_slice" or atom.aval.shape[d] != shape[d]
            if extent(axes, mesh) > 1 and differs:
                return True
    return False


class _Impossible(Exception):
    """A value cannot be written by rotations: its equation is kept as it is."""


class _Rewriting:
    """One program, while it is written anew; the dictionaries have its variables as keys."""

    def __init__(self, known: Mapping[Any, Cut], mesh: Sizes) -> None:
        self.known, self.mesh, self.changed = known, mesh, False
        self.whole: dict[Any, Any] = {}  # arrays of the variables' own shapes
        self.near: dict[Any, Any] = {}  # arrays of frames' shapes that begin with the value
        self.frames: dict[Any, _Frame] = {}
        self.made_by: dict[Any, Any] = {}  # the equation of what is near, far, or small enough to be made again
        self.taken: dict[Any, Any] = {}  # what `take` has given

    def run(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of the program."""
        jaxpr: Jaxpr = closed.jaxpr
        self.whole.update(zip(jaxpr.invars, args, strict=True))
        self.whole.update(zip(jaxpr.constvars, closed.consts, strict=True))
        here = calling_line()
        for var in (*jaxpr.invars, *jaxpr.constvars):
            self.see(var)
        for eqn in jaxpr.eqns:
            with at_line(here, eqn.source):
                self.equation(eqn)
        return [self.read(a) for a in jaxpr.outvars]

    def see(self, var: Any) -> None:
        """Note the frame of an array of the program, if one of its dimensions is cut."""
        shape = var.aval.shape
        counts = {d: extent(axes, self.mesh) for d, axes in enumerate(self.known.get(var) or ())}
        sizes = {d: shape[d] for d, count in counts.items() if count > 1}
        if sizes and getattr(var.aval, "placing", None) is None and not dtypes.is_extended(var.aval.dtype):
            self.frames[var] = _Frame(sizes, {d: n // counts[d] for d, n in sizes.items()})

    def follow(self, eqn: Any, out: Any) -> None:
        """Note the frame of the result of an elementwise operation: its operands', if they have the same one."""
        found = [a for a in eqn.invars if not isinstance(a, Literal) and a.aval.shape == out.aval.shape]
        frames = [self.frames[a] for a in found if a in self.frames]
        if frames and all(h == frames[0] for h in frames) and out.aval.shape == frames[0].shape(out.aval.shape):
            self.frames[out] = frames[0]

    def read(self, atom: Any) -> Any:
        """A value as the program had it."""
        if isinstance(atom, Literal):
            return atom.val
        if atom not in self.whole:
            if atom in self.near:
                self.whole[atom] = lax.slice(self.near[atom], (0,) * atom.aval.ndim, atom.aval.shape)
            else:
                self.bind(self.made_by[atom])
        return self.whole[atom]

    def bind(self, eqn: Any) -> None:
        """Make the equation's results as the program did."""
        outs = eqn.primitive.bind(*map(self.read, eqn.invars), **eqn.params)
        self.whole.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))

    def equation(self, eqn: Any) -> None:
        """Make a result that is whole or near; of one that is far, or only a small part, note the equation."""
        name, out = eqn.primitive.name, eqn.outvars[0] if eqn.outvars else None
        frame = self.frame_of(eqn)
        if frame is None:
            if name in _REDUCTIONS and any(a in self.near for a in eqn.invars if not isinstance(a, Literal)):
                self.reduction(eqn)
            else:
                self.bind(eqn)
            for var in eqn.outvars:
                self.see(var)
            if out is not None and out not in self.frames and "elementwise" in eqn.primitive.traits:
                self.follow(eqn, out)
            if name in ("slice", "dynamic_slice", "broadcast_in_dim") and out is not None:
                self.made_by[out] = eqn
            return
        assert out is not None
        self.made_by[out] = eqn
        shape = out.aval.shape
        self.frames[out] = frame
        if not frame.near(shape) or any(shape[d] > n for d, n in frame.sizes.items()):
            return  # its readers say which elements they need
        try:
            array = self.made(eqn, (0,) * len(shape), frame.shape(shape))
        except _Impossible:
            del self.frames[out]
            self.bind(eqn)
            self.see(out)
            return
        self.changed = True
        if frame.shape(shape) == tuple(shape):
            self.whole[out] = array
        else:
            self.near[out] = array

    def frame_of(self, eqn: Any) -> _Frame | None:
        """The frame by which the result of an equation is written anew; None: the equation is kept."""
        name = eqn.primitive.name
        if len(eqn.outvars) != 1 or getattr(eqn.outvars[0].aval, "placing", None) is not None:
            return None
        if not any(a in self.frames for a in eqn.invars if not isinstance(a, Literal)):
            return None
        if name == "concatenate":
            frame = self.frame_of_joined(eqn)
        elif name in ("slice", "dynamic_slice", "dynamic_update_slice", "pad"):
            frame = self.frame_of_part(eqn)
        elif "elementwise" in eqn.primitive.traits and name not in CONSTRAINTS and name != "rotate":
            frame = self.frame_of_elementwise(eqn)
        else:
            return None
        # Slices of what is not made, small ones too, are not made either, and may become near by a later equation.
        is_postponed = name in ("slice", "dynamic_slice") and not self.is_there(eqn.invars[0])
        return frame if frame is None or is_postponed or frame.near(eqn.outvars[0].aval.shape) else None

    def frame_of_part(self, eqn: Any) -> _Frame | None:
        """The operand's frame, for slices, updates and paddings; None where its dimensions stay as they are."""
        name, x, out = eqn.primitive.name, eqn.invars[0], eqn.outvars[0].aval.shape
        frame = self.frames.get(x)
        if frame is None:
            return None
        whole = x.aval.shape
        is_as_large = frame.shape(whole) == tuple(whole)
        if name == "pad":
            config = eqn.params["padding_config"]
            if any(between for _, _, between in config):
                return None
            return None if is_as_large and not any(any(config[d]) for d in frame.sizes) else frame
        if _starts(eqn) is None:
            return None
        if name == "dynamic_update_slice":
            update = eqn.invars[1].aval.shape
            return None if all(update[d] == out[d] for d in frame.sizes) else frame
        return None if is_as_large and all(out[d] == n for d, n in frame.sizes.items()) else frame

    def frame_of_joined(self, eqn: Any) -> _Frame | None:
        """The largest operand's frame; None where all are made and are joined along a dimension that is not cut."""
        atoms = [a for a in eqn.invars if not isinstance(a, Literal) and a in self.frames]
        frame = self.frames[max(atoms, key=lambda a: a.aval.size)]
        return None if all(map(self.is_there, atoms)) and eqn.params["dimension"] not in frame.sizes else frame

    def frame_of_elementwise(self, eqn: Any) -> _Frame | None:
        """The one frame of the operands that are not made; None where all are made, or shapes or frames differ."""
        out = eqn.outvars[0].aval.shape
        found = [self.frames[a] for a in eqn.invars if not self.is_there(a) and a in self.frames]
        if not found or any(frame != found[0] for frame in found):
            return None
        return found[0] if all(not a.aval.shape or a.aval.shape == out for a in eqn.invars) else None

    def is_there(self, atom: Any) -> bool:
        """Whether a value has been made in its own shape."""
        return isinstance(atom, Literal) or (atom in self.whole and atom not in self.near)

    def is_as_large(self, atom: Any) -> bool:
        """Whether a value has been made, and is as large as its frame."""
        return atom in self.whole and self.frames[atom].shape(atom.aval.shape) == tuple(atom.aval.shape)

    # ---- values at other places

    def take(self, atom: Any, starts: Ints, shape: Ints) -> Any:
        """An array of this shape, whose element i is that of the value at starts + i, where there is one."""
        if isinstance(atom, Literal):
            return lax.full(shape, atom.val, atom.aval.dtype)
        frame = self.frames.get(atom)
        if frame is not None and _is_as_long(shape, frame) and (atom in self.near or self.is_as_large(atom)):
            starts = tuple(s % frame.sizes[d] if d in frame.sizes else s for d, s in enumerate(starts))
        key = atom, starts, shape
        if key not in self.taken:
            self.taken[key] = self.found(atom, starts, shape)
        return self.taken[key]

    def found(self, atom: Any, starts: Ints, shape: Ints) -> Any:
        """As `take`, which remembers it."""
        frame, eqn = self.frames.get(atom), self.made_by.get(atom)
        if frame is not None and _is_as_long(shape, frame) and (atom in self.near or self.is_as_large(atom)):
            array = self.near[atom] if atom in self.near else self.whole[atom]
            return _rotated(array, frame.sizes, starts, shape)
        if eqn is not None and eqn.primitive.name == "broadcast_in_dim" and not eqn.invars[0].aval.shape:
            return lax.broadcast_in_dim(self.read(eqn.invars[0]), shape, ())
        if eqn is not None and eqn.primitive.name != "broadcast_in_dim":
            try:
                return self.made(eqn, starts, shape)
            except _Impossible:
                pass
        if frame is not None:
            raise _Impossible
        return _placed(self.read(atom), starts, shape)

    def made(self, eqn: Any, starts: Ints, shape: Ints) -> Any:
        """The result of an equation, from `starts` on."""
        name, p = eqn.primitive.name, eqn.params
        if name in ("slice", "dynamic_slice"):
            begin = _starts(eqn)
            if begin is None:
                raise _Impossible
            return self.take(eqn.invars[0], tuple(m + n for m, n in zip(starts, begin, strict=True)), shape)
        if name == "pad":
            low = tuple(c[0] for c in p["padding_config"])
            x = self.take(eqn.invars[0], tuple(s - n for s, n in zip(starts, low)), shape)
            return self.where(x, self.read(eqn.invars[1]), low, eqn.invars[0].aval.shape, starts)
        if name == "dynamic_update_slice":
            at = _starts(eqn)
            assert at is not None
            x = self.take(eqn.invars[0], starts, shape)
            update = self.take(eqn.invars[1], tuple(s - n for s, n in zip(starts, at)), shape)
            return self.where(update, x, at, eqn.invars[1].aval.shape, starts)
        if name == "concatenate":
            return self.joined(eqn, starts, shape)
        if "elementwise" in eqn.primitive.traits:
            values = [self.take(a, starts, shape) if a.aval.shape else self.read(a) for a in eqn.invars]
            return eqn.primitive.bind(*values, **p)
        raise _Impossible

    def where(self, x: Any, other: Any, low: Sequence[int], sizes: Sequence[int], starts: Ints) -> Any:
        """x where starts + i is in [low, low + sizes) along all dimensions, else the other."""
        shape = x.shape
        for d, (n, first, size, start) in enumerate(zip(shape, low, sizes, starts)):
            begin, end = first - start, first + size - start
            if begin > 0 or end < n:
                full = other if np.ndim(other) else lax.full(shape, other, x.dtype)
                x = lax.select(_between(shape, d, begin, end), x, full)
        return x

    def joined(self, eqn: Any, starts: Ints, shape: Ints) -> Any:
        """The elements of a concatenation from `starts` on: each operand is chosen where its elements are."""
        d, end, found = eqn.params["dimension"], 0, None
        n, start = shape[d], starts[d]
        for a in eqn.invars:
            begin, end = end, end + a.aval.shape[d]
            if begin == end or end <= start or begin >= start + n:
                continue
            x = self.take(a, (*starts[:d], start - begin, *starts[d + 1 :]), shape)
            found = x if found is None else lax.select(_between(shape, d, begin - start, n), x, found)
        if found is None:
            raise _Impossible
        return found

    def reduction(self, eqn: Any) -> None:
        """Reduce a near value: the arbitrary elements behind it are replaced by the operation's identity."""
        (atom,), axes = eqn.invars, eqn.params["axes"]
        x, frame, shape = self.near[atom], self.frames[atom], atom.aval.shape
        axes = {a % len(shape) for a in axes}
        if any(d not in axes and shape[d] != n for d, n in frame.sizes.items()):
            self.bind(eqn)
            return
        nothing = lax.full((), identity_of(_REDUCTIONS[eqn.primitive.name], x.dtype), x.dtype)
        x = self.where(x, nothing, (0,) * len(shape), shape, (0,) * len(shape))
        outs = eqn.primitive.bind(x, **eqn.params)
        self.whole[eqn.outvars[0]] = outs[0] if eqn.primitive.multiple_results else outs


def _is_as_long(shape: Ints, frame: _Frame) -> bool:
    """Whether an array of this shape has the frame's sizes: elements of another are not found by rotation."""
    return all(shape[d] == n for d, n in frame.sizes.items())


def _starts(eqn: Any) -> Ints | None:
    """Where a slice, or an update of one, begins; None where that is computed, or where it has a step."""
    p, shape = eqn.params, eqn.invars[0].aval.shape
    if eqn.primitive.name == "slice":
        return None if any(s != 1 for s in p["strides"] or ()) else tuple(p["start_indices"])
    update = eqn.primitive.name == "dynamic_update_slice"
    given, sizes = (eqn.invars[2:], eqn.invars[1].aval.shape) if update else (eqn.invars[1:], p["slice_sizes"])
    if not all(isinstance(a, Literal) for a in given):
        return None
    return tuple(min(max(int(a.val), 0), n - m) for a, n, m in zip(given, shape, sizes, strict=True))


def _between(shape: Ints, d: int, begin: int, end: int) -> Any:
    """True where the index along d is in [begin, end)."""
    at = lax.broadcasted_iota(np.int32, shape, d)
    parts = [lax.ge(at, np.int32(begin))] if begin > 0 else []
    parts += [lax.lt(at, np.int32(end))] if end < shape[d] else []
    return functools.reduce(lax.bitwise_and, parts) if parts else lax.full(shape, True, np.bool_)


def _rotated(x: Any, sizes: Mapping[int, int], starts: Ints, shape: Ints) -> Any:
    """An array from `starts` on: rotated along dimensions that are cut, sliced or padded along others."""
    starts = tuple(s % sizes[d] if d in sizes else s for d, s in enumerate(starts))
    inner = tuple(0 if d in sizes else s for d, s in enumerate(starts))
    x = _placed(x, inner, shape)
    for d in sizes:
        if starts[d]:
            x = rotate_p.bind(x, axis=d, shift=starts[d])
    return x


def _placed(x: Any, starts: Ints, shape: Ints) -> Any:
    """An array of this shape with the elements of x from `starts` on; elsewhere they are arbitrary."""
    for d, (start, size) in enumerate(zip(starts, shape)):
        n = x.shape[d]
        if (start, size) == (0, n):
            continue
        shape_now = (*x.shape[:d], size, *x.shape[d + 1 :])
        if n == 0:
            x = lax.full(shape_now, 0, x.dtype)
        elif n == 1:  # what lies beside it is arbitrary: repeated, it needs no place
            x = lax.broadcast_in_dim(x, shape_now, tuple(range(x.ndim)))
        elif n <= _FEW and size > n:
            x = _rows(x, d, -start, size)
        else:
            config = [(0, 0, 0)] * x.ndim
            config[d] = (-start, size - n + start, 0)
            x = lax.pad(x, lax.full((), 0, x.dtype), config)
    return x


def _rows(x: Any, d: int, at: int, size: int) -> Any:
    """The few rows of x along d in a larger array, from `at` on: each is repeated, and chosen where it belongs."""
    shape = (*x.shape[:d], size, *x.shape[d + 1 :])
    found = None
    for k in range(x.shape[d]):
        row = lax.broadcast_in_dim(lax.slice_in_dim(x, k, k + 1, axis=d), shape, tuple(range(x.ndim)))
        found = row if found is None else lax.select(_between(shape, d, at + k, size), row, found)
    return found


__all__ = ["with_halos"]
