"""Inputs of single precision."""

from __future__ import annotations

import numpy as np


def f32(*arrays: np.ndarray) -> tuple:
    return tuple(np.asarray(a, np.float32) for a in arrays)


def normal(*shape: int):
    return lambda rng: f32(rng.standard_normal(shape))
