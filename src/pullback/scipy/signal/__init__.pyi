# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

def convolve(in1: Any, in2: Any, mode: Any = ..., method: Any = ..., precision: Any = ...) -> Array: ...
def convolve2d(
    in1: Any, in2: Any, mode: Any = ..., boundary: Any = ..., fillvalue: Any = ..., precision: Any = ...
) -> Array: ...
def correlate(in1: Any, in2: Any, mode: Any = ..., method: Any = ..., precision: Any = ...) -> Array: ...
def correlate2d(
    in1: Any, in2: Any, mode: Any = ..., boundary: Any = ..., fillvalue: Any = ..., precision: Any = ...
) -> Array: ...
def csd(
    x: Any,
    y: Any,
    fs: Any = ...,
    window: Any = ...,
    nperseg: Any = ...,
    noverlap: Any = ...,
    nfft: Any = ...,
    detrend: Any = ...,
    return_onesided: Any = ...,
    scaling: Any = ...,
    axis: Any = ...,
    average: Any = ...,
) -> Any: ...
def detrend(data: Any, axis: Any = ..., type: Any = ..., bp: Any = ..., overwrite_data: Any = ...) -> Array: ...
def fftconvolve(in1: Any, in2: Any, mode: Any = ..., axes: Any = ...) -> Array: ...
def istft(
    Zxx: Any,
    fs: Any = ...,
    window: Any = ...,
    nperseg: Any = ...,
    noverlap: Any = ...,
    nfft: Any = ...,
    input_onesided: Any = ...,
    boundary: Any = ...,
    time_axis: Any = ...,
    freq_axis: Any = ...,
) -> Any: ...
def stft(
    x: Any,
    fs: Any = ...,
    window: Any = ...,
    nperseg: Any = ...,
    noverlap: Any = ...,
    nfft: Any = ...,
    detrend: Any = ...,
    return_onesided: Any = ...,
    boundary: Any = ...,
    padded: Any = ...,
    axis: Any = ...,
) -> Any: ...
def welch(
    x: Any,
    fs: Any = ...,
    window: Any = ...,
    nperseg: Any = ...,
    noverlap: Any = ...,
    nfft: Any = ...,
    detrend: Any = ...,
    return_onesided: Any = ...,
    scaling: Any = ...,
    axis: Any = ...,
    average: Any = ...,
) -> Any: ...
def __getattr__(name: str) -> Any: ...
