"""What arrays of PyTorch, TensorFlow, NumPy and pandas can do and arrays here cannot: each name says what to write.

The names are attributes of the classes that raise AttributeError, so `hasattr` says no, `dir` does not show them, and
those that are there cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from .tracebacks import api_boundary

# By what is written here, with x the array.
_WRITTEN_HERE = {
    # PyTorch: derivatives
    "jax.lax.stop_gradient(x)": "detach detach_",
    "jax.grad(loss)(x)": "backward grad grad_fn requires_grad requires_grad_ retain_grad is_leaf register_hook",
    # devices and memory
    "numpy.asarray(x)": "numpy to_numpy eval values",
    "jax.device_put(x, device)": "cpu cuda gpu pin_memory",
    "x.devices()": "is_cuda get_device",
    "x.astype(dtype) or jax.device_put(x, device)": "to type type_as cast",
    "x": "contiguous is_contiguous data",
    # dtypes
    "x.astype(jax.numpy.float32)": "float",
    "x.astype(jax.numpy.float64), with jax_enable_x64": "double",
    "x.astype(jax.numpy.float16)": "half",
    "x.astype(jax.numpy.bfloat16)": "bfloat16",
    "x.astype(jax.numpy.int32)": "int",
    "x.astype(jax.numpy.int64), with jax_enable_x64": "long",
    "x.astype(bool)": "bool",
    # shapes
    "x.ndim": "dim ndimension",
    "x.size": "numel nelement",
    "x.shape": "get_shape",
    "x.T": "t",
    "x.transpose(axes)": "permute",
    "x[:, None] or jax.numpy.expand_dims(x, axis)": "unsqueeze expand_dims",
    "jax.numpy.broadcast_to(x, shape)": "expand expand_as broadcast_to",
    "x.reshape(shape)": "view_as reshape_as unflatten",
    "jax.numpy.tile(x, repeats)": "tile",
    "jax.numpy.moveaxis(x, axis, to)": "movedim moveaxis",
    "jax.numpy.flip(x, axis)": "flip",
    "jax.numpy.roll(x, n, axis)": "roll",
    "jax.numpy.split(x, n, axis)": "split chunk tensor_split",
    "list(x)": "unbind",
    "jax.numpy.concatenate([x, y], axis)": "cat",
    "jax.numpy.append(x, value)": "append extend",
    # elements
    "x.at[index].set(value)":
        "fill fill_ zero_ copy_ put itemset index_put_ masked_fill_ scatter_ set_ assign partition",
    "x.at[index].add(value)": "index_add index_add_ scatter_add scatter_add_ assign_add",
    "x + value, with a new array as result":
        "add_ sub_ mul_ div_ pow_ neg_ exp_ log_ sqrt_ clamp_ clip_ relu_ sort_ resize_ assign_sub",
    "jax.numpy.resize(x, shape)": "resize",
    "jax.numpy.where(mask, value, x)": "masked_fill",
    "jax.numpy.take(x, index, axis)": "index_select",
    "jax.numpy.take_along_axis(x, index, axis)": "gather",
    "x[index]": "iloc loc iat",
    "x[:n]": "head",
    "x[mask]": "masked_select",
    "x, with nothing to protect, as arrays do not change": "setflags",
    "jax.numpy.where(mask, x, y)": "where",
    # functions
    "x @ y": "matmul mm bmm mv",
    "x * y": "mul",
    "x + y": "add",
    "x - y": "sub",
    "x / y": "div",
    "x ** y": "pow",
    "x == y": "eq",
    "x > y": "gt",
    "x < y": "lt",
    "jax.numpy.clip(x, low, high)": "clamp",
    "jax.numpy.linalg.norm(x)": "norm",
    "jax.numpy.linalg.det(x)": "det",
    "jax.numpy.linalg.inv(x)": "inverse",
    "jax.nn.logsumexp(x, axis)": "logsumexp",
    "jax.nn.sigmoid(x)": "sigmoid",
    "jax.nn.relu(x)": "relu",
    "jax.nn.softmax(x, axis)": "softmax",
    "jax.nn.log_softmax(x, axis)": "log_softmax",
    "jax.lax.top_k(x, n)": "topk",
    "jax.numpy.isnan(x)": "isnan",
    "jax.numpy.median(x)": "median",
    "jax.numpy.quantile(x, q)": "quantile",
    **{
        f"jax.numpy.{name}(x)": name
        for name in (
            "abs", "ceil", "cos", "diff", "exp", "floor", "log", "log1p", "sign", "sin", "sqrt", "square", "tan",
            "tanh", "tril", "triu", "unique",
        )
    },
}  # fmt: skip

INSTEAD = {name: written for written, names in _WRITTEN_HERE.items() for name in names.split()}


class NotHere:
    """An attribute that arrays do not have: asking for it says what to write."""

    __slots__ = ("instead", "name")

    def __init__(self, name: str, instead: str) -> None:
        self.name, self.instead = name, instead

    @api_boundary
    def __get__(self, array: Any, cls: type) -> NoReturn:
        raise AttributeError(f"'{cls.__name__}' object has no attribute '{self.name}'; here one writes {self.instead}")


def without_those(names: Iterable[str]) -> list[str]:
    """The names of attributes that arrays have."""
    return [name for name in names if name not in INSTEAD]


__all__ = ["INSTEAD", "NotHere", "without_those"]
