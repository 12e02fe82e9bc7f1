"""Exchange of arrays with other libraries through DLPack, without copies where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.dlpack import PAGES as _PAGES
from pullback.numpy import from_dlpack as _from_dlpack
from pullback.util import dtypes
from pullback.util.absent import listed as _listed

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """Array sharing the memory of an object that exports DLPack; arguments and errors as of `numpy.from_dlpack`."""
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this type can be exchanged."""
    found = dtypes.as_dtype(dtype)
    return isinstance(found, np.dtype) and (found.kind in "biufc" or found == dtypes.as_dtype(dtypes.bfloat16))

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
