"""What random programs mean, in NumPy alone: loops are Python's, vmap is a loop, derivatives are differences.

It shares nothing with pullback. The dtype of floats is chosen: with `longdouble` (64 bits of significand) a result is
as good as exact beside float32, with `float32` its error says what rounding costs in this program.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

LONG = np.longdouble


class NotSmooth(Exception):
    """A derivative that differences do not give: there is a kink, they do not settle, or they would take too long."""


MOST_DIFFERENCES = 400  # in one evaluation of a program


class Array(np.ndarray):
    """NumPy's array with `at`."""

    @property
    def at(self) -> Any:
        return _At(self)


class _At:
    def __init__(self, array: np.ndarray, index: Any = None) -> None:
        self.array, self.index = array, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.array, index)

    def _by(self, ufunc: Any, rows: Any) -> Any:
        """Rows one after the other; those at indices that are out of range are dropped."""
        out = np.array(self.array)
        for i, row in zip(np.asarray(self.index), np.broadcast_to(rows, (len(self.index), *out.shape[1:]))):
            if -len(out) <= i < len(out):
                out[i] = ufunc(out[i], row)
        return wrap(out)

    def add(self, rows: Any) -> Any:
        return self._by(np.add, rows)

    def subtract(self, rows: Any) -> Any:
        return self._by(np.subtract, rows)

    def max(self, rows: Any) -> Any:
        return self._by(np.maximum, rows)

    def min(self, rows: Any) -> Any:
        return self._by(np.minimum, rows)


def wrap(x: Any) -> Any:
    """Arrays with `at`, whatever NumPy gave."""
    return np.asarray(x).view(Array)


class Oracle:
    """The library: its parts have the names that programs use."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.differences = np.dtype(dtype), 0
        self.numpy, self.lax, self.nn, self.random = _numpy(self), _lax(self), _nn(self), _random()

    jit = staticmethod(lambda f: f)
    checkpoint = staticmethod(lambda f: f)

    @property
    def wide(self) -> np.dtype:
        return np.dtype(np.clongdouble if self.dtype == LONG else np.complex64)

    @contextlib.contextmanager
    def exactly(self) -> Iterator[None]:
        """Differences need every digit, whatever the program is evaluated in."""
        before, self.dtype = self.dtype, np.dtype(LONG)
        try:
            yield
        finally:
            self.dtype = before

    def vmap(self, f: Callable, in_axes: Any = 0) -> Callable:
        def mapped(*arguments):
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arguments)
            count = next(x.shape[a] for x, a in zip(arguments, axes) if a is not None)
            rows = [
                f(*(x if a is None else wrap(np.take(x, k, a)) for x, a in zip(arguments, axes))) for k in range(count)
            ]
            return wrap(np.stack(rows))

        return mapped

    def derivative(self, f: Callable, x: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The derivative of f at x along t: differences of two widths, each of fourth order, which must agree."""
        self.differences += 1
        if self.differences > MOST_DIFFERENCES:
            raise NotSmooth
        with self.exactly():
            x, t = np.asarray(x, LONG), np.asarray(t, LONG)
            size = float(np.abs(t).max(initial=0.0))
            if not size:
                return np.asarray(f(wrap(x)), LONG) * 0
            h = LONG(1e-3 / size)
            at = {k: np.asarray(f(wrap(x + k * h * t)), LONG) for k in (-4, -2, -1, 0, 1, 2, 4)}
            fine, wide = ((8 * (at[k] - at[-k]) - (at[2 * k] - at[-2 * k])) / (12 * k * h) for k in (1, 2))
            if fine.size:
                scale = max(1.0, float(np.abs(fine).max()))
                bend = (at[1] - 2 * at[0] + at[-1]) / h  # of one side's slope against the other's
                settled = np.abs(fine - wide).max() <= 1e-7 * scale and np.abs(bend).max() <= 0.1 * scale
                if not (settled and np.all(np.isfinite(fine))):
                    raise NotSmooth
            return fine

    def jvp(self, f: Callable, primals: tuple, tangents: tuple) -> tuple:
        (x,), (t,) = primals, tangents
        return f(x), wrap(self.derivative(f, x, t).astype(self.dtype))

    def grad(self, f: Callable) -> Callable:
        return lambda x: self.vjp(f, x)[1](LONG(1))[0]

    def vjp(self, f: Callable, x: Any) -> tuple:
        def back(cotangent):
            out = np.zeros(x.size, LONG)
            for k in range(x.size):
                unit = np.zeros(x.size, LONG)
                unit[k] = 1
                out[k] = np.sum(self.derivative(f, x, unit.reshape(x.shape)) * cotangent)
            return (wrap(out.reshape(x.shape).astype(self.dtype)),)

        return f(x), back

    def jacfwd(self, f: Callable) -> Callable:
        def jacobian(x):
            units = np.eye(x.size, dtype=LONG).reshape((x.size, *x.shape))
            columns = [self.derivative(f, x, u) for u in units]
            shape = np.asarray(f(x)).shape
            found = np.stack(columns, -1) if columns else np.zeros((*shape, 0), LONG)
            return wrap(found.reshape((*shape, *x.shape)).astype(self.dtype))

        return jacobian

    @property
    def jacrev(self) -> Callable:
        return self.jacfwd


def _numpy(o: Oracle) -> Any:
    """jnp: NumPy's functions, with the dtypes that JAX's rules give for what the programs mix."""

    def result_type(x):
        return o.dtype if x is float else np.result_type(x)

    def lifted(f):
        return lambda *a, **k: wrap(f(*a, **k))

    names = [
        "tanh",
        "sin",
        "cos",
        "exp",
        "expm1",
        "arctan",
        "sinh",
        "cosh",
        "arcsinh",
        "log1p",
        "sqrt",
        "add",
        "subtract",
        "multiply",
        "arctan2",
        "hypot",
        "logaddexp",
        "negative",
        "abs",
        "sign",
        "floor",
        "round",
        "clip",
        "where",
        "maximum",
        "minimum",
        "less",
        "less_equal",
        "greater",
        "equal",
        "not_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "max",
        "min",
        "any",
        "all",
        "argmax",
        "argmin",
        "cumsum",
        "transpose",
        "flip",
        "tile",
        "roll",
        "squeeze",
        "repeat",
        "moveaxis",
        "reshape",
        "concatenate",
        "stack",
        "reshape",
        "broadcast_to",
        "sort",
        "argsort",
        "searchsorted",
        "outer",
        "swapaxes",
        "resize",
        "zeros",
        "ones_like",
        "einsum",
        "real",
        "imag",
        "conj",
    ]
    part = {name: lifted(getattr(np, name)) for name in names}

    def total(x, axis=None, keepdims=False):
        x = np.asarray(x)
        return wrap(np.sum(x, axis, dtype=np.int32 if x.dtype.kind in "bi" else x.dtype, keepdims=keepdims))

    def take(x, i, axis, mode="raise"):
        return wrap(np.take(x, i, axis, mode=mode))

    def linalg():
        return SimpleNamespace(
            cholesky=lambda a: wrap(_cholesky(a)), solve=lambda a, b: wrap(_solve(a, b)),
            inv=lambda a: wrap(_solve(a, np.eye(len(a), dtype=a.dtype))),
            slogdet=lambda a: (wrap(1.0), wrap(2 * np.sum(np.log(np.diagonal(_cholesky(a)))))),
            eigvalsh=lambda a: wrap(np.linalg.eigvalsh(np.asarray(a, np.float64)).astype(a.dtype)),
        )  # fmt: skip

    return SimpleNamespace(**{
        **part, "result_type": result_type, "sum": total, "take": take, "linalg": linalg(),
        "mean": lambda x, axis=None, keepdims=False: wrap(np.mean(x, axis, dtype=x.dtype, keepdims=keepdims)),
        "var": lambda x, axis=None, keepdims=False: wrap(np.var(x, axis, dtype=x.dtype, keepdims=keepdims)),
        "asarray": lambda x, dtype=None: wrap(np.asarray(x, dtype)),
        "arange": lambda n: wrap(np.arange(n, dtype=np.int32)),
        "eye": lambda n, dtype: wrap(np.eye(n, dtype=dtype)), "int32": np.int32, "int8": np.int8, "int16": np.int16,
        "uint32": np.uint32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": o.dtype,
        "argsort": lambda x, axis, stable: wrap(np.argsort(x, axis, kind="stable")),
    })  # fmt: skip


def _special(f: Callable) -> Callable:
    """A function of SciPy's, which knows no longdouble: at float64."""
    return lambda x: wrap(f(np.asarray(x, np.float64)).astype(x.dtype))


def _lax(o: Oracle) -> Any:
    def at(x, start, width, axis):
        start = min(max(int(start), 0), x.shape[axis] - width)
        return tuple(slice(start, start + width) if k == axis else slice(None) for k in range(x.ndim))

    def update(x, part, start, axis):
        out = np.array(x)
        out[at(x, start, part.shape[axis], axis)] = part
        return wrap(out)

    def running(ufunc):
        def run(x, axis=0, reverse=False):
            turn = (lambda a: np.flip(a, axis)) if reverse else (lambda a: a)
            return wrap(turn(ufunc.accumulate(turn(np.asarray(x)), axis, dtype=x.dtype)))

        return run

    def pad(x, value, widths):
        for axis, (low, high, inner) in enumerate(widths):
            n = x.shape[axis]
            spread = np.full((*x.shape[:axis], max(0, n + max(0, n - 1) * inner), *x.shape[axis + 1 :]), value, x.dtype)
            spread[(*[slice(None)] * axis, slice(None, None, inner + 1))] = x
            ends = [np.full((*x.shape[:axis], max(0, w), *x.shape[axis + 1 :]), value, x.dtype) for w in (low, high)]
            x = np.concatenate([ends[0], spread, ends[1]], axis)
            cut = slice(max(0, -low), x.shape[axis] - max(0, -high))
            x = x[(*[slice(None)] * axis, cut)]
        return wrap(x)

    def sort(operands, dimension, num_keys):
        first, second = operands
        order = np.argsort(first, dimension, kind="stable")
        return [wrap(np.take_along_axis(x, order, dimension)) for x in (first, second)]

    def scan(step, carry, xs, reverse=False):
        outs = []
        order = range(len(xs))[::-1] if reverse else range(len(xs))
        for k in order:
            carry, out = step(carry, wrap(xs[k]))
            outs.append(out)
        if not outs:
            with np.errstate(all="ignore"):
                _, like = step(carry, wrap(np.zeros(xs.shape[1:], xs.dtype)))
            return carry, tuple(wrap(np.zeros((0, *np.shape(y)), y.dtype)) for y in like)
        outs = outs[::-1] if reverse else outs
        return carry, tuple(wrap(np.stack(ys)) for ys in zip(*outs))

    def fori_loop(low, high, body, carry):
        for i in range(low, high):
            carry = body(np.int32(i), carry)
        return carry

    def while_loop(condition, body, carry):
        while condition(carry):
            carry = body(carry)
        return carry

    def switch(index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    def windows(x, size, stride, padding, value):
        """The windows of a 2-d array along the last two axes, and the number of them along each."""
        widths = []
        for n, w, s in zip(x.shape, size, stride):
            missing = max(0, ((n + s - 1) // s - 1) * s + w - n) if padding == "SAME" else 0
            widths.append((missing // 2, missing - missing // 2))
        x = np.pad(x, widths, constant_values=value)
        view = np.lib.stride_tricks.sliding_window_view(x, size) if min(np.subtract(x.shape, size)) >= 0 else None
        return np.zeros((0, 0, *size), x.dtype) if view is None else view[:: stride[0], :: stride[1]]

    def reduce_window(x, start, op, size, stride, padding):
        found = windows(np.asarray(x)[0, 0], size[2:], stride[2:], padding, start)
        out = found.max((-1, -2)) if op == "max" else found.sum((-1, -2), dtype=x.dtype)
        return wrap(out[None, None])

    def conv(x, kernel, stride, padding, rhs_dilation):
        reach = tuple((n - 1) * d + 1 for n, d in zip(kernel.shape[2:], rhs_dilation))
        found = windows(np.asarray(x)[0, 0], reach, stride, padding, 0)[..., :: rhs_dilation[0], :: rhs_dilation[1]]
        return wrap(np.stack([np.sum(found * k[0], (-1, -2), dtype=x.dtype) for k in np.asarray(kernel)])[None])

    def population_count(x):
        return wrap(np.bitwise_count(np.asarray(x).astype(np.uint32)).astype(x.dtype))

    def logistic(x):
        return wrap(0.5 * (np.tanh(0.5 * x) + 1))

    return SimpleNamespace(
        erf=_special(scipy.special.erf), lgamma=_special(scipy.special.gammaln), logistic=logistic,
        rsqrt=lambda x: wrap(1 / np.sqrt(x)), population_count=population_count,
        complex=lambda a, b: wrap(a.astype(o.wide) + o.wide.type(1j) * b), max="max", add="add",
        cumsum=running(np.add), cummax=running(np.maximum), cummin=running(np.minimum), cumprod=running(np.multiply),
        cumlogsumexp=running(np.logaddexp), pad=pad, sort=sort, scan=scan, fori_loop=fori_loop, while_loop=while_loop,
        cond=lambda p, a, b, *x: a(*x) if p else b(*x), switch=switch, reduce_window=reduce_window,
        conv_general_dilated=conv, slice_in_dim=lambda x, a, b, s, axis: wrap(
            x[(*[slice(None)] * axis, slice(a, b, s))]),
        dynamic_slice_in_dim=lambda x, i, n, axis: wrap(x[at(x, i, n, axis)]), dynamic_update_slice_in_dim=update,
        dynamic_index_in_dim=lambda x, i, axis, keepdims: wrap(np.squeeze(x[at(x, i, 1, axis)], axis)),
        top_k=lambda x, k: (wrap(-np.sort(-x, -1)[..., :k]), None),
    )  # fmt: skip


def _nn(o: Oracle) -> Any:
    def logsumexp(x, axis=None, keepdims=False):
        top = np.max(x, axis, keepdims=True)
        out = np.log(np.sum(np.exp(x - top), axis, keepdims=True)) + top
        return wrap(out if keepdims else np.squeeze(out, axis))

    def log_softmax(x, axis):
        return wrap(x - logsumexp(x, axis, True))

    def gelu(x):
        inner = np.sqrt(2 / np.asarray(np.pi, x.dtype)).astype(x.dtype) * (x + np.asarray(0.044715, x.dtype) * x**3)
        return wrap(np.asarray(0.5, x.dtype) * x * (1 + np.tanh(inner)))

    return SimpleNamespace(
        logsumexp=logsumexp, log_softmax=log_softmax, softmax=lambda x, axis: wrap(np.exp(log_softmax(x, axis))),
        gelu=gelu, softplus=lambda x: wrap(np.logaddexp(x, np.zeros((), x.dtype))),
    )  # fmt: skip


def _random() -> Any:
    return SimpleNamespace(key=lambda seed: (np.uint32(0), np.uint32(seed)), bits=_bits)


def _bits(key: tuple, shape: tuple[int, ...], dtype: Any) -> Any:
    """Threefry 2x32 of a counter of 64 bits, both halves of the result mixed, as the partitionable generator of JAX."""
    count = np.arange(math.prod(shape), dtype=np.uint64)
    x, y = (count >> np.uint64(32)).astype(np.uint32), count.astype(np.uint32)
    ks = (key[0], key[1], np.uint32(key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)))
    with np.errstate(over="ignore"):
        x, y = x + ks[0], y + ks[1]
        for group in range(5):
            for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
                x = x + y
                y = (y << np.uint32(r)) | (y >> np.uint32(32 - r))
                y = x ^ y
            x, y = x + ks[(group + 1) % 3], y + ks[(group + 2) % 3] + np.uint32(group + 1)
    return wrap((x ^ y).reshape(shape).astype(dtype))


def _cholesky(a: np.ndarray) -> np.ndarray:
    low = np.zeros_like(a)
    for j in range(len(a)):
        low[j, j] = np.sqrt(a[j, j] - np.sum(low[j, :j] ** 2))
        low[j + 1 :, j] = (a[j + 1 :, j] - low[j + 1 :, :j] @ low[j, :j]) / low[j, j]
    return low


def _solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x of a x = b for a positive definite a."""
    low, x = _cholesky(a), np.array(b)
    for i in range(len(a)):
        x[i] = (x[i] - low[i, :i] @ x[:i]) / low[i, i]
    for i in reversed(range(len(a))):
        x[i] = (x[i] - low[i + 1 :, i] @ x[i + 1 :]) / low[i, i]
    return x
