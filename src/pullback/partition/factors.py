"""How an operation's dimensions belong together: what its record says of cutting it into parts.

A *factor* is a loop of the operation. Every dimension of an operand or result is the product of some factors, the
slowest first, or of none, and is then whole on every device. Cutting a factor cuts every dimension that it is in.

    c[i, k] = dot(a[i, j], b[j, k])       factors i, j, k; a: (i)(j), b: (j)(k), c: (i)(k); over j parts are summed
    reshape [6, 4] -> [24]                factors 6 and 4; operand: (6)(4), result: (6 4)

A *cut* says along which mesh axes each dimension of an array is cut: a tuple of axes for each, the slowest first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pullback.util.record import NamedTuple

Axes = tuple[Any, ...]
Cut = tuple[Axes, ...]
Dims = tuple[tuple[int, ...], ...]  # the factors of each dimension
Sizes = Mapping[Any, int]  # of mesh axes
LocalSize = Callable[[int], int]  # factor -> its size on one device


def same_params(params: dict[str, Any], _: LocalSize) -> dict[str, Any]:
    """The parameters of operations that say no sizes."""
    return params


class Factors(NamedTuple):
    """What the field `partition` of a primitive's record gives for an equation."""

    sizes: tuple[int, ...]  # of the factors
    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    combined: Mapping[int, str] = {}  # factors that results are reduced over -> "sum", "max" or "min"
    local: Callable[[dict[str, Any], LocalSize], dict[str, Any]] = same_params  # parameters for one device's part
    # (dimension of the first operand, of results): what is computed whole there is then cut as the operand was.
    follows: tuple[tuple[int, int], ...] = ()

    def of_cut(self, cut: Cut | None, dims: Dims, mesh: Sizes) -> dict[int, Axes]:
        """The axes that each factor is cut along where an array of these dimensions is cut so; what does not fit is
        left out.
        """
        found: dict[int, Axes] = {}
        for axes, factors in zip(cut or (), dims, strict=False):
            rest = list(axes)
            for factor in factors:
                left, taken = self.sizes[factor], []
                while rest and left % mesh[rest[0]] == 0 and (left != 1 or mesh[rest[0]] == 1):
                    left //= mesh[rest[0]]
                    taken.append(rest.pop(0))
                if taken:
                    found[factor] = tuple(taken)
                if left > 1:
                    break
        return found

    def cut_of(self, axes: Mapping[int, Axes], dims: Dims) -> Cut:
        """How an array of these dimensions is cut where factors are cut so."""
        return tuple(tuple(a for f in factors for a in axes.get(f, ())) for factors in dims)

    def fits(self, axes: Mapping[int, Axes], mesh: Sizes) -> bool:
        """Whether every dimension is cut into runs of consecutive elements."""
        return self._misfit(axes, mesh) is None

    def _misfit(self, axes: Mapping[int, Axes], mesh: Sizes) -> int | None:
        """A cut factor, where one that is slower in the same dimension is not cut to single elements."""
        for dims in (*self.operands, *self.results):
            for factors in dims:
                for slower, faster in itertools.pairwise(factors):
                    if axes.get(faster) and extent(axes.get(slower, ()), mesh) != self.sizes[slower]:
                        return faster
        return None

    def merged(self, parts: Sequence[Mapping[int, Axes]], mesh: Sizes) -> dict[int, Axes]:
        """One answer of several: the first that cuts a factor decides, if none cuts its parts further, and an axis cuts
        one factor.
        """
        found: dict[int, Axes] = {}
        used: set[Any] = set()
        for part in parts:
            for factor, axes in part.items():
                before = found.get(factor, ())
                if axes[: len(before)] == before and not used & set(axes[len(before) :]):
                    found[factor] = axes
                    used |= set(axes)
        while (misfit := self._misfit(found, mesh)) is not None:
            del found[misfit]
        return found


def in_place(ndim: int) -> tuple[tuple[int, int], ...]:
    """For `Factors.follows`: every dimension is the operand's."""
    return tuple((d, d) for d in range(ndim))


def extent(axes: Axes, mesh: Sizes) -> int:
    """How many parts axes make."""
    return math.prod(mesh[a] for a in axes)


def whole(ndim: int) -> Cut:
    """The cut of an array that every device has all of."""
    return ((),) * ndim


def local_shape(shape: Sequence[int], cut: Cut, mesh: Sizes) -> tuple[int, ...]:
    """The shape of one device's part."""
    return tuple(n // extent(axes, mesh) for n, axes in zip(shape, cut, strict=True))


def fitting(cut: Sequence[Axes] | None, shape: Sequence[int], mesh: Sizes) -> Cut:
    """The cut without axes that the mesh has not, that come twice, or whose parts would not be equal."""
    found: list[Axes] = []
    used: set[Any] = set()
    for n, axes in zip(shape, [*(cut or ()), *[()] * len(shape)]):
        kept: list[Any] = []
        for a in axes:
            if a not in mesh or a in used or n == 0 or n % (extent(tuple(kept), mesh) * mesh[a]):
                break
            kept.append(a)
            used.add(a)
        found.append(tuple(kept))
    return tuple(found)
