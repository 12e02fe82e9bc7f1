"""What arrays of PyTorch, TensorFlow, NumPy and pandas can do and arrays here cannot: each name with what to write."""

from __future__ import annotations

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

# What PyTorch's users call, and arrays here have as attributes.
CALLED_BY_TORCH = {
    "size": "a number; the length of an axis is x.shape[axis]",
    "shape": "a tuple; the length of an axis is x.shape[axis]",
    "ndim": "a number",
    "dtype": "the type of the elements; x.astype(dtype) converts them",
    "T": "the transposed array",
    "mT": "the array with its last two axes exchanged",
    "real": "an array",
    "imag": "an array",
    "nbytes": "a number",
}

# Names of arguments in PyTorch, and here.
ARGUMENTS_OF_TORCH = {"dim": "axis", "dims": "axis", "dim0": "axis1", "dim1": "axis2", "repeats": "reps"}

INSTEAD = {name: written for written, names in _WRITTEN_HERE.items() for name in names.split()}

__all__ = ["ARGUMENTS_OF_TORCH", "CALLED_BY_TORCH", "INSTEAD"]
