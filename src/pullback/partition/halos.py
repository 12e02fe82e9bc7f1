"""Values of neighbours along dimensions that are cut: `x[1:] - x[:-1]`, `pad(x, 1)[2:]`, `x.at[1:-1].add(y)`.

What a slice of such a dimension gives cannot be cut by equal parts, so that x would be gathered. Here it is written in
terms of arrays as large as x, of which devices exchange edges only (`rotate`):

    near    y of size m, at the beginning of one of size n that is cut as x: what lies behind is arbitrary
    far     what is larger than x (padded, or joined with others), and is never made: slices of it are taken of parts

    x[1:] - x[:-1]                     rotate(x, 1) - x, near
    sum(y), pad(y, (1, 0))             where the index says that there is no element: 0
    x.at[1:-1].set(y)                  where the index is one of y: rotate(y, -1)

The rest of the program gets such values as they were, which gathers them. So both programs are partitioned, and the one
that moves fewer bytes is taken (write.py).
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
_FEW = 4  # so many lines of a small array are put where they belong one by one

Ints = tuple[int, ...]


class _Host(NamedTuple):
    """The arrays in terms of which a value is written: sizes of dimensions along which it is, and those of parts."""

    sizes: Mapping[int, int]
    parts: Mapping[int, int]

    def near(self, shape: Sequence[int]) -> bool:
        """Whether a value of this shape has its place in such an array, or reaches over its ends by a part at most."""
        return all(abs(shape[d] - n) <= self.parts[d] for d, n in self.sizes.items())

    def shape(self, shape: Sequence[int]) -> Ints:
        """That of such an array."""
        return tuple(self.sizes.get(d, n) for d, n in enumerate(shape))


def with_halos(closed: ClosedJaxpr, known: Mapping[Any, Cut], mesh: Sizes) -> ClosedJaxpr:
    """The program, in which values near an array that is cut are written in terms of it; itself if there are none."""
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
    """Slices of every second element, and the like, that do not begin with the first ones: of all of these, a slice.

    x[2::2] of 16 elements is x[::2], 8 elements of which each device has its own, and of that [1:].
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
    """Parameters of both slices, and the shape between; None where one is enough, or parts do not divide so."""
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
    """That a value cannot be taken so."""


class _Rewriting:
    """One program, while it is written anew. A value is `whole`, an array like the one of the program; or `near`."""

    def __init__(self, known: Mapping[Any, Cut], mesh: Sizes) -> None:
        self.known, self.mesh, self.changed = known, mesh, False
        self.whole: dict[Any, Any] = {}
        self.near: dict[Any, Any] = {}
        self.hosts: dict[Any, _Host] = {}
        self.made_by: dict[Any, Any] = {}  # what is near or far, and small parts: the equation
        self.taken: dict[Any, Any] = {}

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
        """A value that is there: along dimensions that are cut others may be written in terms of it."""
        shape = var.aval.shape
        counts = {d: extent(axes, self.mesh) for d, axes in enumerate(self.known.get(var) or ())}
        sizes = {d: shape[d] for d, count in counts.items() if count > 1}
        if sizes and getattr(var.aval, "placing", None) is None and not dtypes.is_extended(var.aval.dtype):
            self.hosts[var] = _Host(sizes, {d: n // counts[d] for d, n in sizes.items()})

    def follow(self, eqn: Any, out: Any) -> None:
        """What is made of values each by each is cut as they are, if they are written in terms of others now."""
        found = [a for a in eqn.invars if not isinstance(a, Literal) and a.aval.shape == out.aval.shape]
        hosts = [self.hosts[a] for a in found if a in self.hosts]
        if hosts and all(h == hosts[0] for h in hosts) and out.aval.shape == hosts[0].shape(out.aval.shape):
            self.hosts[out] = hosts[0]

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
        """The equation as it was."""
        outs = eqn.primitive.bind(*map(self.read, eqn.invars), **eqn.params)
        self.whole.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))

    def equation(self, eqn: Any) -> None:
        """Decide what an equation's result is, and make it where it is an array of the program or near one."""
        name, out = eqn.primitive.name, eqn.outvars[0] if eqn.outvars else None
        host = self.host_of(eqn)
        if host is None:
            if name in _REDUCTIONS and any(a in self.near for a in eqn.invars if not isinstance(a, Literal)):
                self.reduction(eqn)
            else:
                self.bind(eqn)
            for var in eqn.outvars:
                self.see(var)
            if out is not None and out not in self.hosts and "elementwise" in eqn.primitive.traits:
                self.follow(eqn, out)
            if name in ("slice", "dynamic_slice", "broadcast_in_dim") and out is not None:
                self.made_by[out] = eqn
            return
        assert out is not None
        self.made_by[out] = eqn
        shape = out.aval.shape
        self.hosts[out] = host
        if not host.near(shape) or any(shape[d] > n for d, n in host.sizes.items()):
            return  # far, or small: who reads it says what it takes
        try:
            array = self.made(eqn, (0,) * len(shape), host.shape(shape))
        except _Impossible:
            del self.hosts[out]
            self.bind(eqn)
            self.see(out)
            return
        self.changed = True
        if host.shape(shape) == tuple(shape):
            self.whole[out] = array
        else:
            self.near[out] = array

    def host_of(self, eqn: Any) -> _Host | None:
        """The arrays in terms of which the result of an equation is written; None: it is made as it was."""
        name = eqn.primitive.name
        if len(eqn.outvars) != 1 or getattr(eqn.outvars[0].aval, "placing", None) is not None:
            return None
        atoms = [a for a in eqn.invars if not isinstance(a, Literal) and a in self.hosts]
        if not atoms:
            return None
        out = eqn.outvars[0].aval
        if name in ("slice", "dynamic_slice"):
            if _starts(eqn) is None or eqn.invars[0] not in self.hosts:
                return None
            host = self.hosts[eqn.invars[0]]
            whole = eqn.invars[0].aval.shape
            if host.shape(whole) == tuple(whole) and all(out.shape[d] == n for d, n in host.sizes.items()):
                return None  # along other dimensions only
        elif name == "dynamic_update_slice":
            if _starts(eqn) is None or eqn.invars[0] not in self.hosts:
                return None
            host = self.hosts[eqn.invars[0]]
            if all(eqn.invars[1].aval.shape[d] == out.shape[d] for d in host.sizes):
                return None
        elif name == "pad":
            if eqn.invars[0] not in self.hosts or any(c[2] for c in eqn.params["padding_config"]):
                return None
            host = self.hosts[eqn.invars[0]]
            if host.shape(eqn.invars[0].aval.shape) == eqn.invars[0].aval.shape and not any(
                any(eqn.params["padding_config"][d]) for d in host.sizes
            ):
                return None
        elif name == "concatenate":
            host = self.hosts[max(atoms, key=lambda a: a.aval.size)]
            if all(self.is_there(a) for a in atoms) and eqn.params["dimension"] not in host.sizes:
                return None
        elif "elementwise" in eqn.primitive.traits and name not in CONSTRAINTS and name != "rotate":
            if all(map(self.is_there, atoms)):
                return None
            found = [self.hosts[a] for a in atoms if not self.is_there(a)]
            host = found[0]
            same = all(h == host for h in found) and all(
                not a.aval.shape or a.aval.shape == out.shape for a in eqn.invars
            )
            if not same:
                return None
        else:
            return None
        lazy = name in ("slice", "dynamic_slice") and not self.is_there(eqn.invars[0])
        return host if lazy or host.near(out.shape) else None

    def is_there(self, atom: Any) -> bool:
        """Whether a value is an array of the program."""
        return isinstance(atom, Literal) or (atom in self.whole and atom not in self.near)

    def is_as_large(self, atom: Any) -> bool:
        """Whether a value is an array of the program, as large as those in terms of which others are written."""
        return atom in self.whole and self.hosts[atom].shape(atom.aval.shape) == tuple(atom.aval.shape)

    # ---- values at other places

    def take(self, atom: Any, starts: Ints, shape: Ints) -> Any:
        """An array of this shape, whose element i is that of the value at starts + i, where there is one."""
        if isinstance(atom, Literal):
            return lax.full(shape, atom.val, atom.aval.dtype)
        host = self.hosts.get(atom)
        if host is not None and _is_as_long(shape, host) and (atom in self.near or self.is_as_large(atom)):
            starts = tuple(s % host.sizes[d] if d in host.sizes else s for d, s in enumerate(starts))
        key = atom, starts, shape
        if key not in self.taken:
            self.taken[key] = self.found(atom, starts, shape)
        return self.taken[key]

    def found(self, atom: Any, starts: Ints, shape: Ints) -> Any:
        """As `take`, made now."""
        host, eqn = self.hosts.get(atom), self.made_by.get(atom)
        if host is not None and _is_as_long(shape, host) and (atom in self.near or self.is_as_large(atom)):
            array = self.near[atom] if atom in self.near else self.whole[atom]
            return _turned(array, host.sizes, starts, shape)
        if eqn is not None and eqn.primitive.name == "broadcast_in_dim" and not eqn.invars[0].aval.shape:
            return lax.broadcast_in_dim(self.read(eqn.invars[0]), shape, ())
        if eqn is not None and eqn.primitive.name != "broadcast_in_dim":
            try:
                return self.made(eqn, starts, shape)
            except _Impossible:
                pass
        if host is not None:
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
        """x where index + starts is one of low to low + sizes, else the other."""
        shape = x.shape
        for d, (n, first, size, start) in enumerate(zip(shape, low, sizes, starts)):
            begin, end = first - start, first + size - start
            if begin > 0 or end < n:
                full = other if np.ndim(other) else lax.full(shape, other, x.dtype)
                x = lax.select(_between(shape, d, begin, end), x, full)
        return x

    def joined(self, eqn: Any, starts: Ints, shape: Ints) -> Any:
        """Of parts along a dimension, one behind the other."""
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
        """Of what is near: without the elements that are none."""
        (atom,), axes = eqn.invars, eqn.params["axes"]
        x, host, shape = self.near[atom], self.hosts[atom], atom.aval.shape
        axes = {a % len(shape) for a in axes}
        if any(d not in axes and shape[d] != n for d, n in host.sizes.items()):
            self.bind(eqn)
            return
        nothing = lax.full((), identity_of(_REDUCTIONS[eqn.primitive.name], x.dtype), x.dtype)
        x = self.where(x, nothing, (0,) * len(shape), shape, (0,) * len(shape))
        outs = eqn.primitive.bind(x, **eqn.params)
        self.whole[eqn.outvars[0]] = outs[0] if eqn.primitive.multiple_results else outs


def _is_as_long(shape: Ints, host: _Host) -> bool:
    """Whether an array of this shape is of the host's sizes: of another the elements are not found by turning it."""
    return all(shape[d] == n for d, n in host.sizes.items())


def _starts(eqn: Any) -> Ints | None:
    """Where a slice, or an update of one, begins; None where that is computed, or where it leaves elements out."""
    p, shape = eqn.params, eqn.invars[0].aval.shape
    if eqn.primitive.name == "slice":
        return None if any(s != 1 for s in p["strides"] or ()) else tuple(p["start_indices"])
    update = eqn.primitive.name == "dynamic_update_slice"
    given, sizes = (eqn.invars[2:], eqn.invars[1].aval.shape) if update else (eqn.invars[1:], p["slice_sizes"])
    if not all(isinstance(a, Literal) for a in given):
        return None
    return tuple(min(max(int(a.val), 0), n - m) for a, n, m in zip(given, shape, sizes, strict=True))


def _between(shape: Ints, d: int, begin: int, end: int) -> Any:
    """Where the index along d is one of begin to end."""
    at = lax.broadcasted_iota(np.int32, shape, d)
    parts = [lax.ge(at, np.int32(begin))] if begin > 0 else []
    parts += [lax.lt(at, np.int32(end))] if end < shape[d] else []
    return functools.reduce(lax.bitwise_and, parts) if parts else lax.full(shape, True, np.bool_)


def _turned(x: Any, sizes: Mapping[int, int], starts: Ints, shape: Ints) -> Any:
    """An array from `starts` on: turned along dimensions that are cut, sliced or padded along others."""
    starts = tuple(s % sizes[d] if d in sizes else s for d, s in enumerate(starts))
    inner = tuple(0 if d in sizes else s for d, s in enumerate(starts))
    x = _placed(x, inner, shape)
    for d in sizes:
        if starts[d]:
            x = rotate_p.bind(x, axis=d, shift=starts[d])
    return x


def _placed(x: Any, starts: Ints, shape: Ints) -> Any:
    """An array from `starts` on, which has all of the elements where these are in it."""
    for d, (start, size) in enumerate(zip(starts, shape)):
        n = x.shape[d]
        if (start, size) == (0, n):
            continue
        shape_now = (*x.shape[:d], size, *x.shape[d + 1 :])
        if n == 0:
            x = lax.full(shape_now, 0, x.dtype)
        elif n == 1:  # wherever that is
            x = lax.broadcast_in_dim(x, shape_now, tuple(range(x.ndim)))
        elif n <= _FEW and size > n:
            x = _lines(x, d, -start, size)
        else:
            config = [(0, 0, 0)] * x.ndim
            config[d] = (-start, size - n + start, 0)
            x = lax.pad(x, lax.full((), 0, x.dtype), config)
    return x


def _lines(x: Any, d: int, at: int, size: int) -> Any:
    """A few lines of a larger array, from `at` on: each is everywhere, and chosen where it belongs."""
    shape = (*x.shape[:d], size, *x.shape[d + 1 :])
    found = None
    for k in range(x.shape[d]):
        line = lax.broadcast_in_dim(lax.slice_in_dim(x, k, k + 1, axis=d), shape, tuple(range(x.ndim)))
        found = line if found is None else lax.select(_between(shape, d, at + k, size), line, found)
    return found


__all__ = ["with_halos"]
