"""A timed program: one record that says what it computes, on which inputs, in the terms of each library.

A file or folder of `benchmarks/programs/` has a list PROGRAMS of these; its name is the group. The text for JAX's API
is one function of the module (`jax` is pullback or the original), so both sides run the same source.

    Program(
        "tanh(x) exp(-x^2) + sin(x), 1e5",
        inputs=lambda rng: (rng.standard_normal(100_000).astype("f4"),),
        jax=lambda jax: lambda x: jax.numpy.tanh(x) * jax.numpy.exp(-(x**2)) + jax.numpy.sin(x),
        numpy=lambda x: np.tanh(x) * np.exp(-(x**2)) + np.sin(x),
        torch=lambda torch: lambda x: torch.tanh(x) * torch.exp(-(x**2)) + torch.sin(x),
    )
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SPELLING = ": "  # in the name of a program, after what it computes: how that is written


@dataclass(frozen=True)
class Program:
    """What is computed, and how each library says it; a side that is None is not timed."""

    name: str
    inputs: Callable[[np.random.Generator], tuple]  # positional: NumPy arrays, trees of them, Python values
    jax: Callable[[Any], Callable]  # jax -> function of the inputs, jitted by the harness
    numpy: Callable | None = None  # function of the inputs
    torch: Callable[[Any], Callable] | None = None  # torch -> function of the inputs as tensors
    autograd: Callable[[Any, Any], Callable] | None = None  # (autograd, autograd.numpy) -> function of the inputs
    jit: bool = True  # False: the function jits what it wants itself, or nothing
    static: tuple[int, ...] = ()  # static_argnums
    as_numpy: bool = False  # True: JAX's API gets NumPy's arrays, not its own
    x64: bool = False  # under jax_enable_x64
    tolerance: float | None = 2e-3  # of the comparison of results, relative to their largest; None: not compared
    operations: float = 0  # additions and multiplications at least needed
    bytes: float | None = None  # to be moved at least; None: inputs and outputs once
    limit: float | None = None  # seconds that a call may take, where that is asked for
    thread: int | None = None  # of jax-ml/jax, whose complaint the program repeats
