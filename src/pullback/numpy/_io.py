"""Reading, writing and printing arrays, by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.numpy._creation import asarray

save, savez = np.save, np.savez
array_repr, array_str = np.array_repr, np.array_str
set_printoptions, get_printoptions, printoptions = np.set_printoptions, np.get_printoptions, np.printoptions


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Array from a file in NumPy's format; of an .npz file the object that holds its arrays."""
    found = np.load(file, *args, **kwargs)
    if isinstance(found, np.ndarray):
        # Types that NumPy's format does not know are written as raw bytes of their size.
        if found.dtype.kind == "V" and found.dtype.itemsize == 2 and found.dtype.names is None:
            import ml_dtypes

            found = found.view(ml_dtypes.bfloat16)
        return asarray(found)
    return found
