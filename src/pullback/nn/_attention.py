"""Scaled dot-product attention, and products of block-scaled low-precision matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core.explain import check
from pullback.core.kinds import ARRAY, DTYPE
from pullback.nn._normalizing import logsumexp, softmax
from pullback.util import dtypes
from pullback.util.errors import ArgumentError
from pullback.util.record import frozen_record


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(scale q k^T + bias, where mask) v, for each head.

    query: f[(b,) t, n, h], key and value: f[(b,) s, k, h], where k divides n (each key head serves n/k query heads),
    or f[n, h] and f[k, h] of one position; bias and mask: [(b,) n, t, s], broadcast.
    scale is 1/sqrt(h) by default. `is_causal`: position i sees j <= i;
    `local_window_size` (left, right): those with i - left <= j <= i + right; sequence lengths i32[b] cut the rest off.
    `return_residual`: also the log-sum-exp of the logits, f[(b,) t, n].
    Raises ValueError for shapes and dtypes that do not fit, a mask that is not bool, and an unknown implementation.
    """
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    if implementation == "cudnn":
        raise NotImplementedError(
            "dot_product_attention: implementation='cudnn' needs an NVIDIA GPU, which is not there"
        )
    query, key, value = (jnp.asarray(x) for x in (query, key, value))
    ranks = {query.ndim, key.ndim, value.ndim}
    if not (ranks <= {3, 4} or ranks == {2}):
        shapes = ", ".join(x.aval.short() for x in (query, key, value))
        raise ValueError(
            f"dot_product_attention: query, key and value must have 3 or 4 dimensions, or 2 each, got {shapes}"
        )
    for name, x in (("key", key), ("value", value)):
        if x.dtype != query.dtype:
            raise ValueError(f"dot_product_attention: {name} dtype should be {query.dtype}, but got {x.dtype}")
    for name, x in (("query_seq_lengths", query_seq_lengths), ("key_value_seq_lengths", key_value_seq_lengths)):
        if x is not None and (jnp.asarray(x).dtype != np.int32 or jnp.asarray(x).ndim != 1):
            raise ValueError(f"dot_product_attention: {name} should be int32[batch], got {jnp.asarray(x).aval.short()}")
    leading = 4 - query.ndim
    query, key, value = (x.reshape((1,) * (4 - x.ndim) + x.shape) for x in (query, key, value))
    b, t, n, h = query.shape
    s, k = key.shape[1:3]
    if key.shape != (b, s, k, h) or value.shape[:3] != (b, s, k):
        raise ValueError(
            f"dot_product_attention: query has shape {query.shape}, so key and value must be [{b}, s, k, {h}]; "
            f"got {key.shape} and {value.shape}"
        )
    if n % k:
        raise ValueError(
            f"dot_product_attention: the {n} heads of query must be a multiple of the {k} of key and value"
        )
    if mask is not None and jnp.asarray(mask).dtype != bool:
        raise ValueError(f"dot_product_attention: argument 'mask' must be of dtype bool, got {jnp.asarray(mask).dtype}")

    scale = 1.0 / math.sqrt(h) if scale is None else scale
    if isinstance(scale, complex):
        raise ArgumentError(f"dot_product_attention: argument 'scale' must be a real number, got {scale!r}")
    wide = dtypes.promote_types(query.dtype, np.float32)
    grouped = query.reshape(b, t, k, n // k, h)
    logits = jnp.einsum("btkgh,bskh->bkgts", grouped, key, preferred_element_type=wide).reshape(b, n, t, s) * scale
    if bias is not None:
        logits = logits + _four("bias", bias)
    allowed = _allowed(t, s, mask, is_causal, local_window_size, query_seq_lengths, key_value_seq_lengths)
    if allowed is not None:
        logits = jnp.where(allowed, logits, -0.7 * float(np.finfo(np.float32).max))
    weights = softmax(logits, axis=-1).astype(key.dtype)
    out = jnp.einsum("bkgts,bskh->btkgh", weights.reshape(b, k, n // k, t, s), value).reshape(b, t, n, value.shape[-1])
    if query_seq_lengths is not None:
        inside = jnp.arange(t)[None, :] < jnp.asarray(query_seq_lengths)[:, None]
        out = out * inside[:, :, None, None].astype(out.dtype)
    residual = jnp.swapaxes(logsumexp(logits, axis=-1), 1, 2).astype(key.dtype) if return_residual else None
    out = out.reshape(out.shape[leading:])
    return (out, residual.reshape(residual.shape[leading:])) if residual is not None else out


def _four(name: str, x: Any) -> Any:
    x = jnp.asarray(x)
    if x.ndim > 4:
        raise ValueError(
            f"dot_product_attention: argument '{name}' must have at most 4 dimensions, got {x.aval.short()}"
        )
    return x.reshape((1,) * (4 - x.ndim) + x.shape)


def _allowed(t: int, s: int, mask: Any, causal: bool, window: Any, q_len: Any, kv_len: Any) -> Any:
    """bool[1 or b, 1 or n, t, s], or None where everything is allowed."""
    parts = []
    if mask is not None:
        parts.append(_four("mask", mask))
    row, column = jnp.arange(t)[:, None], jnp.arange(s)[None, :]
    if causal:
        parts.append((row >= column)[None, None])
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        parts.append(((column >= row - left) & (column <= row + right))[None, None])
    if q_len is not None:
        parts.append((row[None] < jnp.asarray(q_len)[:, None, None])[:, None])
    if kv_len is not None:
        parts.append((column[None] < jnp.asarray(kv_len)[:, None, None])[:, None])
    out = None
    for part in parts:
        out = part if out is None else out & part
    return out


def _dequantized(name: str, x: Any, scales: Any) -> Any:
    """Blocks of x[b, m, k] times their scales[b, m, k / block]."""
    x, scales = jnp.asarray(x), jnp.asarray(scales)
    if x.ndim != 3 or scales.ndim != 3 or x.shape[:2] != scales.shape[:2] or x.shape[2] % scales.shape[2]:
        raise ValueError(
            f"scaled_matmul: {name} must be [b, m, k] with scales [b, m, k / block], got {x.aval.short()} "
            f"and {scales.aval.short()}"
        )
    block = x.shape[2] // scales.shape[2]
    return x.astype(np.float32) * jnp.repeat(scales.astype(np.float32), block, axis=2)


def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = np.float32
) -> Any:
    """The products of lhs[b, m, k] and rhs[b, n, k] over k, both in blocks along k with a scale each: [b, m, n].

    Raises ValueError for shapes that do not fit.
    """
    check("scaled_matmul", ARRAY, lhs=lhs, rhs=rhs, lhs_scales=lhs_scales, rhs_scales=rhs_scales)
    check("scaled_matmul", DTYPE, preferred_element_type=preferred_element_type)
    a, b = _dequantized("lhs", lhs, lhs_scales), _dequantized("rhs", rhs, rhs_scales)
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[2]:
        raise ValueError(f"scaled_matmul: lhs has shape {a.shape} and rhs {b.shape}; batch and k must agree")
    dtype = dtypes.check_user_dtype_supported(preferred_element_type, "scaled_matmul")
    return jnp.einsum("bmk,bnk->bmn", a, b).astype(dtype)


@frozen_record
class BlockScaleConfig:
    """How an operand of `scaled_dot_general` is quantized: along the contracted axis, in blocks with a scale each."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """The block format of that name, "mxfp8" or "nvfp4"; ValueError for others."""
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, dtypes.float8_e4m3fn, dtypes.float8_e8m0fnu)
    if mode == "nvfp4":
        scale = jnp.ones(1, np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, dtypes.float4_e2m1fn, dtypes.float8_e4m3fn, scale)
    raise ValueError(f"get_scaled_dot_general_config: argument 'mode' must be 'mxfp8' or 'nvfp4', got {mode!r}")


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Any:
    """`lax.dot_general` of operands that are quantized by `configs`, if any: those for lhs, rhs and gradients.

    With `configs`, NotImplementedError: the block formats run on GPUs alone, in JAX, too, which ignores
    `implementation`.
    """
    if configs is not None:
        raise NotImplementedError("scaled_dot_general: block-scaled dot products need a GPU, which is not there")
    return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
