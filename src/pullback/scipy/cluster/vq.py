"""Vector quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.cluster.vq import PAGES as _PAGES
from pullback.numpy._arguments import check_arraylike
from pullback.scipy import _parameters
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.promoting import promoting_freely
from pullback.util.static import check_flags

__all__ = ["vq"]


@promoting_freely
def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """(code, distance): for each observation the nearest code, and how far it is (Euclid).

    obs: f[m, n] or f[m]; code_book: f[k, n] or f[k]. `check_finite` is accepted and has no effect. ValueError for
    other ranks or different n.
    """
    check_flags("vq", check_finite=check_finite)
    check_arraylike("vq", obs, code_book)
    obs, code_book = jnp.asarray(obs), jnp.asarray(code_book)
    dtype = dtypes.to_inexact_dtype(jnp.result_type(obs, code_book))
    obs, code_book = obs.astype(dtype), code_book.astype(dtype)
    if obs.ndim != code_book.ndim:
        raise ValueError(
            f"vq: obs has shape {obs.shape} and code_book {code_book.shape}; expected as many axes in both"
        )
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.ndim != 2:
        raise ValueError(f"vq: observations of shape {obs.shape}; expected a vector or a matrix")
    if obs.shape[1] != code_book.shape[1]:
        raise ValueError(f"vq: observations have {obs.shape[1]} features, but codes have {code_book.shape[1]}")
    apart = obs[:, None, :] - code_book[None, :, :]
    apart = jnp.abs(apart) if dtypes.issubdtype(dtype, np.complexfloating) else apart
    distances = jnp.sqrt(jnp.sum(jnp.square(apart), -1))
    code = jnp.argmin(distances, -1)
    return code, jnp.take_along_axis(distances, code[:, None], -1)[:, 0]


_explain_all(globals(), _parameters.CLUSTER, {})

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
