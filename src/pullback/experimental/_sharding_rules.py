"""Rules that say, of functions that are called as a whole, along which factors their arrays may be cut.

As text: dimensions of an array side by side, arrays with commas between, operands -> results.

    "b (h w) c -> b c"    two factors make one dimension; the size of the second, w, must be said
    "... i -> ... i"      any number of leading dimensions; ...1 and ...2 are others
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.util.tracebacks import api_boundary

BATCHING = "…"  # leading dimensions, as many as there are; digits may follow
_TOKEN = re.compile(r"(?:(?P<ellipsis>\.\.\.\d*)|(?P<name>\w+)|(?P<sign>[()])|(?P<wrong>\S))")
_KINDS = ("reduction_factors", "need_replication_factors", "permutation_factors")


def _check_name(name: str) -> None:
    if not name or not name[0].isalpha():
        raise ValueError(f"'{name[:1]}' begins the name of a factor, '{name}'; expected a letter there")
    for letter in name:
        if not letter.isalnum() and letter != "_":
            raise ValueError(f"Unknown character '{letter}' in the name of a factor, '{name}'")


class CompoundFactor(tuple):
    """One dimension that two or more factors make, the first of which changes slowest."""

    __slots__ = ()

    @api_boundary
    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(f"CompoundFactor: expected the names of two factors or more, got {factors}")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"CompoundFactor: the name of a factor is a str, got {factor!r}")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """What each dimension of an array is: a factor's name, a CompoundFactor, or BATCHING in front."""

    __slots__ = ()

    @api_boundary
    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for k, dim in enumerate(dim_mappings):
            if not isinstance(dim, (str, CompoundFactor)):
                raise ValueError(f"ArrayMapping: a dimension is a factor's name or a CompoundFactor, got {dim!r}")
            if isinstance(dim, CompoundFactor):
                continue
            if not dim.startswith(BATCHING):
                _check_name(dim)
            elif k:
                raise ValueError(
                    f"ArrayMapping: {BATCHING!r} stands for the leading dimensions, so it is first; it came at {k}"
                )
        return super().__new__(cls, dim_mappings)


def _said_of(mapping: ArrayMapping, x: Any) -> Iterator[tuple[Any, int]]:
    """(what a dimension is, its size), from the last on; without leading ones of any number."""
    for dim, n in zip(reversed(mapping), reversed(x.shape), strict=False):
        if not isinstance(dim, str) or not dim.startswith(BATCHING):
            yield dim, n


class SdyShardingRule:
    """The ArrayMappings of operands and results; sizes of factors that are found in compound ones only.

    reduction_factors are summed over, need_replication_factors must be whole, permutation_factors need exchange. Raises
    ValueError for sizes that are missing or known already, and for factors that no array has.

    >>> SdyShardingRule((ArrayMapping(CompoundFactor("i", "j")),), (ArrayMapping("i"),), j=2).factor_sizes
    {'j': 2}
    """

    @api_boundary
    def __init__(
        self,
        operand_mappings: Sequence[ArrayMapping],
        result_mappings: Sequence[ArrayMapping],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings, self.result_mappings = operand_mappings, result_mappings
        self.factor_sizes = factor_sizes
        kinds = (reduction_factors, need_replication_factors, permutation_factors)
        self.reduction_factors, self.need_replication_factors, self.permutation_factors = kinds
        dims = [dim for mapping in (*operand_mappings, *result_mappings) for dim in mapping]
        whole = {dim for dim in dims if isinstance(dim, str)}
        parts = {factor for dim in dims if not isinstance(dim, str) for factor in dim}
        for name in factor_sizes:
            if name not in whole | parts:
                raise ValueError(f"a size is given for {name}, which no dimension of the rule names")
            if name in whole:
                raise ValueError(
                    f"Factor {name} is a whole dimension of an array, which says its size: leave it out of the sizes"
                )
        for name in sorted(parts - whole - set(factor_sizes)):
            raise ValueError(f"the size of factor {name} is missing: no dimension of an array is {name} alone")
        seen: set[str] = set()
        for kind, names in zip(_KINDS, kinds, strict=True):
            if not isinstance(names, tuple):
                raise ValueError(f"{kind} must be a tuple of factors, got {names!r}")
            if len(set(names)) < len(names):
                raise ValueError(f"{kind} contains duplicated factors: {names}")
            for name in names:
                if name not in whole | parts:
                    raise ValueError(f"Factor {name} in {kind} is not used in the rule")
                if name in seen:
                    raise ValueError(
                        f"Factor {name} is named twice, the second time in {kind}; no factor is in two of "
                        f"{', '.join(_KINDS)}"
                    )
            seen.update(names)

    def check_arrays(self, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """ValueError for arrays of which it does not say what each dimension is."""
        sizes = dict(self.factor_sizes)
        both = (("operand", self.operand_mappings, operands), ("result", self.result_mappings, results))
        for what, mappings, arrays in both:
            if len(mappings) != len(arrays):
                raise ValueError(
                    f"Sharding rule has {len(mappings)} {what}s, but the operation has {len(arrays)} {what}s"
                )
            for k, (mapping, x) in enumerate(zip(mappings, arrays, strict=True)):
                leading = bool(mapping) and isinstance(mapping[0], str) and mapping[0].startswith(BATCHING)
                rank = len(mapping) - leading
                if len(x.shape) < rank or (len(x.shape) > rank and not leading):
                    raise ValueError(
                        f"Sharding rule {k}th {what} has rank {rank}, but the operation {k}th {what} has rank "
                        f"{len(x.shape)}"
                    )
                sizes |= {dim: n for dim, n in _said_of(mapping, x) if isinstance(dim, str)}
        for what, mappings, arrays in both:
            for k, (mapping, x) in enumerate(zip(mappings, arrays, strict=True)):
                for dim, n in _said_of(mapping, x):
                    if not isinstance(dim, str) and math.prod(sizes[factor] for factor in dim) != n:
                        raise ValueError(
                            f"{what} {k} has a dimension of size {n}, but its factors {dim} make "
                            f"{math.prod(sizes[factor] for factor in dim)}"
                        )
        for dim in (dim for mapping in self.result_mappings for dim in mapping):
            for factor in (dim,) if isinstance(dim, str) else dim:
                if factor in self.reduction_factors:
                    raise ValueError(f"reduction factor cannot be in result mappings: {factor} of {self}")

    def __str__(self) -> str:
        said = "".join(f" {kind}={getattr(self, kind)}" for kind in _KINDS if getattr(self, kind))
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{said})"


def _dimensions(text: str) -> Iterator[Any]:
    """The dimensions of one array."""
    inside: list[str] | None = None
    for found in _TOKEN.finditer(text):
        word = found[0]
        if found["wrong"]:
            why = "Character '.' must be used inside ellipsis '...'" if word == "." else f"Unknown character '{word}'"
            raise ValueError(f"{why}: '{text}'")
        if word == "(":
            if inside is not None:
                raise ValueError(f"a bracket opens within another: '{text}'")
            inside = []
        elif word == ")":
            if inside is None:
                raise ValueError(f"Brackets are not balanced: '{text}'")
            if len(inside) < 2:
                raise ValueError(f"Brackets hold at least two factors; got '{text}'")
            yield CompoundFactor(*inside)
            inside = None
        elif inside is not None:
            inside.append(word)
        else:
            yield BATCHING + (word[3:] or "0") if found["ellipsis"] else word
    if inside is not None:
        raise ValueError(f"Brackets are not balanced in rule: '{text}'")


def parsed(rule: str, **more: Any) -> SdyShardingRule:
    """The rule that a text says, with the keyword arguments of SdyShardingRule. TypeError for what is no text,
    ValueError for one that is no rule.
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}")
    sides = rule.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: '{rule}', or several")
    ins, outs = (tuple(ArrayMapping(*_dimensions(array)) for array in side.split(",")) for side in sides)
    return SdyShardingRule(ins, outs, **more)


__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule"]
