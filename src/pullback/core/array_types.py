"""Classes of other libraries whose objects are to be taken as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


class ArrayTypes(dict):
    """A table of classes; objects of those entered are arrays by what NumPy makes of them.

    JAX keeps functions in such tables, which libraries copy from one class to another; here the entry is what counts.
    """

    def __setitem__(self, cls: type, handler: Any) -> None:
        super().__setitem__(cls, handler)
        if not hasattr(cls, "__jax_array__"):
            cls.__jax_array__ = lambda self: np.asarray(self)  # type: ignore[attr-defined]


pytype_aval_mappings = ArrayTypes({np.ndarray: np.asarray})
