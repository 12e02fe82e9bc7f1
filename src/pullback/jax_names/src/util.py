"""Stands for jax._src.util: small functions on lists, which libraries' transformations and tests are written with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pullback.api_util import safe_map
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


__all__ = ["safe_map", "safe_zip", "split_list", "unzip2", "unzip3"]
