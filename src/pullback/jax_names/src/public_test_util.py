"""Stands for jax._src.public_test_util: comparisons with tolerances that go by the dtype."""

from typing import Any

import numpy as np

from pullback.test_util import check_grads, check_jvp, check_vjp
from pullback.util import dtypes
from pullback.util.pytree import tree_flatten

_TOLERANCES = {
    "float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6, "float64": 1e-15, "complex128": 1e-15,
    "float8_e8m0fnu": 1.0, "float4_e2m1fn": 1.0,
}  # fmt: skip


def _tolerance(dtype: Any, given: Any) -> float:
    """What is given for a dtype, or for all of them; by default JAX's tolerance."""
    if isinstance(given, dict):
        given = {np.dtype(key): value for key, value in given.items()}.get(dtype)
    if given is not None:
        return given
    return 0.0 if dtype.kind in "biu" else _TOLERANCES.get(dtype.name, 0.1)  # other floats have 8 bits and fewer


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """AssertionError unless two trees of arrays are of one structure, and close.

    atol, rtol: a number, or a dict by dtype; by default the larger of what is usual for the two dtypes.
    """
    left, tree = tree_flatten(xs)
    right, other = tree_flatten(ys)
    assert tree == other, f"{tree} is not {other}"
    for x, y in zip(left, right):
        kinds = [np.dtype(dtypes.dtype_of(v)) for v in (x, y)]
        absolute, relative = (max(_tolerance(kind, given) for kind in kinds) for given in (atol, rtol))
        one, two = (np.asarray(v) if k.kind in "biufc" else np.asarray(v, np.float32) for v, k in zip((x, y), kinds))
        np.testing.assert_allclose(one, two, atol=absolute, rtol=relative, err_msg=err_msg)


__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp"]
