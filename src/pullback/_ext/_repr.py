"""The text of arrays, given to the extension as its hook `repr`."""

from __future__ import annotations

import numpy as np

PREFIX = "Array("


def array_repr(x: np.ndarray, weak_type: bool) -> str:
    """`Array([1., 2.], dtype=float32)`, following NumPy's print options.

    The dtype comes after a wider gap where NumPy would begin a new line, as JAX users' doctests have it.
    """
    ending = f"dtype={x.dtype.name}"
    if weak_type:
        ending += ", weak_type=True"
    if x.size == 0:
        return f"{PREFIX}[], shape={x.shape}, {ending})"
    text = np.array2string(x, prefix=PREFIX, suffix=",", separator=", ")
    last_line = len(text) - (text.rfind("\n") + 1)
    wide = last_line + len(ending) + len(", )") + 1 > np.get_printoptions()["linewidth"]
    return f"{PREFIX}{text},{' ' * len(PREFIX) if wide else ' '}{ending})"
