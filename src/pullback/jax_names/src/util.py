"""Stands for jax._src.util: small functions on lists, which libraries' transformations and tests are written with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from pullback.api_util import safe_map
from pullback.numpy._arguments import canonical_axis
from pullback.transforms.partial_eval import split_list


def safe_zip(*lists: Iterable[Any]) -> list[tuple[Any, ...]]:
    """zip as a list; ValueError unless all are of one length."""
    return list(zip(*lists, strict=True))


def unzip2(pairs: Iterable[Sequence[Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first elements of pairs, and the second ones."""
    found = [(a, b) for a, b in pairs]
    return tuple(a for a, _ in found), tuple(b for _, b in found)


def unzip3(triples: Iterable[Sequence[Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The first, second and third elements of triples."""
    found = [(a, b, c) for a, b, c in triples]
    return tuple(a for a, _, _ in found), tuple(b for _, b, _ in found), tuple(c for _, _, c in found)


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """An axis counted from the front (torchax); ValueError for one that there is not."""
    return canonical_axis("canonicalize_axis", axis, num_dims, error=ValueError)


class HashableFunction:
    """A function that is compared by its code and by what it closes over (ejkernel)."""

    def __init__(self, f: Callable[..., Any], closure: Hashable) -> None:
        self.f, self.closure = f, closure

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return type(other) is HashableFunction and self.f.__code__ == other.f.__code__ and self.closure == other.closure

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __repr__(self) -> str:
        return f"<hashable {self.f.__name__} with closure={self.closure}>"


__all__ = ["HashableFunction", "canonicalize_axis", "safe_map", "safe_zip", "split_list", "unzip2", "unzip3"]
