"""A family: one computation in several spellings, which should take the same time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import SPELLING, Program


def family(name: str, inputs: Callable[[np.random.Generator], tuple], *spellings: Callable, **options: Any) -> list:
    """A program for each spelling, a function of (jax, *inputs) whose name says how it spells the computation."""
    return [
        Program(
            f"{name}{SPELLING}{spelling.__name__.strip('_').replace('_', ' ')}",
            inputs=inputs,
            jax=functools.partial(functools.partial, spelling),
            **options,
        )
        for spelling in spellings
    ]


def normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], tuple]:
    """Inputs: an array of normal float32 for each shape."""
    return lambda rng: tuple(rng.standard_normal(shape).astype("f4") for shape in shapes)
