"""Fusion does not depend on where objects lie in memory, which differs from process to process."""

import functools
import operator

import numpy as np

import pullback
import pullback.numpy as jnp


def lowered(count):
    """A program in which one group reads more arrays than are remembered, and others read some of these."""

    def f(*xs):
        return functools.reduce(operator.add, xs), [jnp.sin(x) for x in xs[::3]]

    args = [pullback.ShapeDtypeStruct((300, 1000), np.float32)] * count
    return pullback.jit(f).lower(*args).compile().as_text("loops")


def test_equal_programs_have_equal_nests():
    texts, between = [], []
    for k in range(4):
        between.append([object() for _ in range(1000 + 37 * k)])  # so that variables lie elsewhere
        texts.append(lowered(30))
        pullback.clear_caches()
    assert len(set(texts)) == 1
