"""What `vjp` gives: the function from cotangents of a result to those of the primals, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pullback._ext import _core
from pullback.api._arguments import as_array
from pullback.core import Jaxpr, Tracer, Zero, hooks
from pullback.core.references import Reference
from pullback.core.types import in_use, lie_alike, type_of, vma_of
from pullback.transforms.remembered import Tape
from pullback.transforms.transpose import backward_pass
from pullback.transforms.zeros import instantiate, strong_as
from pullback.util import dtypes
from pullback.util.pytree import register_pytree_node, tree_flatten, tree_unflatten
from pullback.util.tracebacks import api_boundary


class _Marker:
    """A leafless tree that stands for an array that is not there."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NotNeeded(_Marker):
    """In `args_res`: an argument that the backward pass does not read."""


class GradRef(_Marker):
    """Among cotangents: it was added to a reference."""


class GradValue(_Marker):
    """To `with_refs`: the cotangent is wanted as a value."""


class DontWant(_Marker):
    """To `with_refs`: the cotangent is not wanted."""


class DidntWant(_Marker):
    """Among cotangents: it was not wanted."""


def _register(kind: type[_Marker]) -> None:
    register_pytree_node(kind, lambda _: ((), ()), lambda _, __: kind())


for _kind in (NotNeeded, GradRef, GradValue, DontWant, DidntWant):
    _register(_kind)

ad = SimpleNamespace(DidntWant=DidntWant, DontWant=DontWant, GradRef=GradRef, GradValue=GradValue)


class VJP:
    """The pullback of `vjp`: `pullback(out_bar)` gives a tuple of cotangents. A pytree of the arrays that it keeps.

    args_res: for each primal the array, or a tuple of its leaves, `NotNeeded()` for what is not read; opaque_residuals:
    the other arrays. Both are lists whose entries may be replaced, by arrays of the same types.
    """

    def __init__(self, static: Pullback, places: tuple[int, ...], args_res: list[Any], opaque_residuals: list[Any]):
        self.fun, self._places = static, places
        self.args_res, self.opaque_residuals = args_res, opaque_residuals

    @classmethod
    def of(cls, static: Pullback, consts: Sequence[Any], leaves: Sequence[Any]) -> VJP:
        """Tell the primals among the residuals from the others."""
        numbers = {id(leaf): n for n, leaf in enumerate(leaves)}
        kept: list[Any] = [NotNeeded()] * len(leaves)
        places: list[int] = []
        opaque: list[Any] = []
        for const in consts:
            n = numbers.get(id(const))
            if n is None:
                places.append(~len(opaque))
                opaque.append(const)
            else:
                places.append(n)
                kept[n] = const
        if static.in_tree.num_nodes == len(leaves) + 1:
            return cls(static, tuple(places), kept, opaque)
        rest, args_res = iter(kept), []
        for child in static.in_tree.children():
            part = tuple(next(rest) for _ in range(child.num_leaves))
            args_res.append(part[0] if child.num_leaves == child.num_nodes == 1 else part)
        return cls(static, tuple(places), args_res, opaque)

    in_tree = property(lambda self: self.fun.in_tree, doc="The structure of the tuple of primals.")
    out_tree = property(lambda self: self.fun.out_tree, doc="The structure of the result.")

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear program that is run in reverse."""
        jaxpr = self.fun.jaxpr
        return jaxpr.spelled_out()[0] if type(jaxpr) is Tape else jaxpr

    def _consts(self) -> list[Any]:
        flat: list[Any] = []
        for part in self.args_res:
            flat.extend(part) if isinstance(part, tuple) else flat.append(part)
        found = [flat[k] if k >= 0 else self.opaque_residuals[~k] for k in self._places]
        if any(x is None or isinstance(x, NotNeeded) for x in found):
            raise ValueError("vjp: an array of args_res that the backward pass reads was taken out; put it back before")
        return found

    @api_boundary
    def __call__(self, *out_bar: Any) -> Any:
        if len(out_bar) != 1:
            raise TypeError(
                "The function returned by `jax.vjp` takes one argument, the cotangent of the result (a tuple where the "
                f"result is one); it was called with {len(out_bar)} arguments."
            )
        return self.fun(self._consts(), *out_bar)

    def _pulled(self, out_bar: Any, wanted: Sequence[bool]) -> list[Any]:
        """The cotangents of the leaves; those that are not wanted may be anything."""
        return tree_flatten(self.fun(self._consts(), out_bar, None if all(wanted) else wanted))[0]

    def with_refs(self, *refs: Any) -> Callable[[Any], Any]:
        """The pullback that adds cotangents to references, and has `GradRef()` in their places.

        refs: for each primal a tree of its structure, with a Ref for each leaf, `DontWant()` (the result has
        `DidntWant()`), or anything else, for a cotangent as a value. ValueError for another structure.
        """

        wanted = _wanted(refs, self.in_tree)

        def pull(out_bar: Any) -> Any:
            bars = self._pulled(out_bar, [not isinstance(want, DontWant) for want in wanted])
            return _answered(wanted, bars, self.in_tree)

        return pull

    def __repr__(self) -> str:
        return f"VJP(args_res={self.args_res}, opaque_residuals={self.opaque_residuals})"


def _wanted(refs: tuple[Any, ...], in_tree: Any) -> list[Any]:
    """What `with_refs` was given for each leaf of the primals."""
    wanted, tree = tree_flatten(refs, is_leaf=lambda x: x is None or isinstance(x, (DontWant, GradValue)))
    if tree != in_tree:
        raise ValueError(f"vjp: with_refs got arguments of structure {tree}, but the primals have {in_tree}")
    return wanted


def _answered(wanted: list[Any], bars: list[Any], in_tree: Any, places: tuple[int, ...] = ()) -> Any:
    """What the pullback of `with_refs` gives; references have cotangents added, those at `places` become them."""
    found: list[Any] = []
    for n, (want, bar) in enumerate(zip(wanted, bars, strict=True)):
        if isinstance(want, Reference):
            hooks.write_reference(want, bar if n in places else hooks.read_reference(want) + bar)
            found.append(GradRef())
        else:
            found.append(DidntWant() if isinstance(want, DontWant) else bar)
    return tree_unflatten(in_tree, found)


class VJPOfReferences:
    """The pullback of `vjp` of a function of arrays and references; `with_refs` takes references of cotangents."""

    def __init__(self, inner: VJP, in_tree: Any, places: tuple[int, ...]) -> None:
        self._inner, self.in_tree, self._places = inner, in_tree, places

    args_res = property(lambda self: self._inner.args_res, doc="As that of other pullbacks, with values of references.")
    opaque_residuals = property(lambda self: self._inner.opaque_residuals, doc="The other arrays that it keeps.")
    out_tree = property(lambda self: self._inner.out_tree.children()[0], doc="The structure of the result.")

    @api_boundary
    def __call__(self, *out_bar: Any) -> Any:
        """ValueError: cotangents of references are added to references."""
        raise ValueError(
            f"vjp: leaf {self._places[0]} of the primals is a Ref, whose gradient must be accumulated into a Ref; give "
            "that to `with_refs`, and call what it returns"
        )

    @api_boundary
    def with_refs(self, *refs: Any) -> Callable[[Any], Any]:
        """The pullback with references of cotangents: as `VJP.with_refs`.

        In the place of a reference is one that has the cotangent of its array after the function, zeros as a rule, and
        then that of the array before; or `DontWant()`. ValueError for another.
        """
        wanted = _wanted(refs, self.in_tree)
        for n in self._places:
            if not isinstance(wanted[n], (Reference, DontWant)):
                raise ValueError(
                    f"vjp: with_refs has no Ref for leaf {n} of the primals, which is a Ref: got {wanted[n]!r}"
                )

        def pull(out_bar: Any) -> Any:
            kinds = self._inner.fun.in_avals
            after = [
                instantiate(Zero(kinds[n].to_cotangent_aval()))
                if isinstance(wanted[n], DontWant)
                else hooks.read_reference(wanted[n])
                for n in self._places
            ]
            is_wanted = [not isinstance(want, DontWant) for want in wanted]
            bars = self._inner._pulled((out_bar, after), is_wanted)
            return _answered(wanted, bars, self.in_tree, self._places)

        return pull

    def __repr__(self) -> str:
        return f"VJP(args_res={self.args_res}, opaque_residuals={self.opaque_residuals})"


register_pytree_node(
    VJPOfReferences,
    lambda v: ((v._inner,), (v.in_tree, v._places)),
    lambda static, parts: VJPOfReferences(*parts, *static),
)

register_pytree_node(
    VJP,
    lambda v: ((v.args_res, v.opaque_residuals), (v.fun, v._places)),
    lambda static, parts: VJP(*static, *parts),
)


class Pullback:
    """The static part of what `vjp` gives."""

    def __init__(self, jaxpr, zeros, out_avals, in_avals, in_tree, out_tree, name):
        self.jaxpr, self.zeros, self.out_avals, self.in_avals = jaxpr, zeros, out_avals, in_avals
        self.in_tree, self.out_tree, self.__name__ = in_tree, out_tree, name

    def __call__(self, consts, x_bar, wanted=None):
        bars, tree = tree_flatten(x_bar)
        if tree != self.out_tree:
            raise ValueError(
                f"unexpected tree structure of cotangents: {tree}; the results of {self.__name__}, and so what its vjp "
                f"function takes, have the structure {self.out_tree}"
            )
        for bar, aval in zip(bars, self.out_avals):
            want, have = aval.to_cotangent_aval(), type_of(bar)
            unused = want.dtype == dtypes.float0  # of an output of integers
            lies = in_use() and not unused and isinstance(bar, (_core.Array, Tracer))
            lies = lies and not (lie_alike(want, have) and vma_of(want) == vma_of(have))
            if lies or want.shape != have.shape or (want.dtype != have.dtype and not unused):
                raise ValueError(
                    f"unexpected JAX type of a cotangent: {have.short()}; for a result of type {aval.short()} the "
                    f"vjp function of {self.__name__} takes {want.short()}"
                )
        bars = [
            hooks.convert(bar, a.dtype, a.weak_type) if isinstance(bar, (float, complex)) else as_array(bar)
            for bar, a in zip(bars, self.out_avals)
        ]
        live = [bar for bar, zero in zip(bars, self.zeros) if zero is None]
        found = backward_pass(self.jaxpr, consts, None, live, wanted)
        found = [bar if bar is None else strong_as(bar, v) for bar, v in zip(found, self.jaxpr.invars, strict=True)]
        if wanted is not None:
            found = [bar if want else 0 for bar, want in zip(found, wanted, strict=True)]
        return tree_unflatten(self.in_tree, list(map(instantiate, found)))
