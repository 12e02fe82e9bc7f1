"""The older place and spelling of shard_map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.api.shard_map import shard_map as _shard_map
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.shard_map import PAGES as _PAGES
from pullback.util.absent import listed as _listed


def shard_map(f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True) -> Callable:
    """As `pullback.shard_map`, with check_rep for check_vma."""
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


__all__ = ["shard_map"]

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
