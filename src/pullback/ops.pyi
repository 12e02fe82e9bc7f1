# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

ARRAY: Any
INTEGER: Any
def segment_max(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Array: ...
def segment_min(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Array: ...
def segment_prod(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Array: ...
def segment_sum(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Array: ...

def __getattr__(name: str) -> Any: ...
