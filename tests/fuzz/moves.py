"""The steps that random programs are made of.

A program keeps a pool of values and adds to it by moves, each chosen by a generator of random numbers that sees shapes
and kinds but never numbers, so that the same program can be traced in float32 and in float64. A value is *exact* if
it holds integers small enough for any arithmetic on them to be without rounding: only such values meet operations that
jump (floor, comparisons, sorting, indices), and results made of them alone must agree to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.library import jnp, lax, nn

DIMENSIONS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257)
MOST_ELEMENTS, MOST_LARGE = 20_000, 600_000
LARGEST_EXACT = 2.0**20


@dataclass(frozen=True)
class Value:
    """An array of a program."""

    array: Any
    exact: bool
    bound: float  # of the magnitude of its elements, roughly where it is not exact

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def kind(self) -> str:
        return {"b": "b", "i": "i", "u": "i", "f": "f"}[np.dtype(self.array.dtype).kind]


class NotHere(Exception):
    """A move does not apply to the values that it was given."""


def need(condition: bool) -> None:
    if not condition:
        raise NotHere


class Generator:
    """The choices and the pool of one program."""

    def __init__(self, rng: np.random.Generator, pool: list[Value], depth: int = 0, most: int = MOST_ELEMENTS) -> None:
        self.rng, self.pool, self.depth, self.most = rng, pool, depth, most  # elements in an array

    def choose(self, options):
        return options[int(self.rng.integers(len(options)))]

    def value(self, kinds: str = "f", exact: bool | None = None, least_rank: int = 0, most: int | None = None) -> Value:
        """A value of the pool, late ones preferred."""
        fits = [
            v
            for v in self.pool
            if v.kind in kinds
            and (exact is None or v.exact is exact)
            and v.ndim >= least_rank
            and v.size <= (self.most if most is None else most)
        ]
        need(bool(fits))
        late = fits[-4:]
        return self.choose(late) if self.rng.random() < 0.6 else self.choose(fits)

    def axis(self, v: Value) -> int:
        need(v.ndim > 0)
        return int(self.rng.integers(v.ndim))

    def fitting(self, v: Value, kinds: str = "f", exact: bool | None = None) -> Value:
        """Another value made to broadcast with v: one of its shape, or one cut or spread to it along some axes."""
        other = self.value(kinds, exact)
        for candidate in (other, *reversed(self.pool)):
            if candidate.kind in kinds and (exact is None or candidate.exact is exact):
                try:
                    if np.broadcast_shapes(candidate.shape, v.shape) == v.shape:
                        return candidate
                except ValueError:
                    continue
        if other.size == 0:
            raise NotHere
        return Value(other.array.reshape(-1)[0], other.exact, other.bound)


def tame(v: Value) -> Any:
    """Its elements within about -2 to 2."""
    return v.array if v.bound <= 2 else jnp.tanh(v.array.astype(float_of(v)))


def float_of(v: Value) -> Any:
    """The dtype of inexact numbers in this program."""
    return v.array.dtype if v.kind == "f" else jnp.result_type(float)


UNARY_SMOOTH = (
    lambda x: jnp.tanh(x), lambda x: jnp.sin(x), lambda x: jnp.cos(x), lambda x: jnp.exp(x), lambda x: jnp.expm1(x),
    lambda x: jnp.arctan(x), lambda x: lax.erf(x), lambda x: lax.logistic(x), lambda x: jnp.sinh(x),
    lambda x: jnp.cosh(x), lambda x: jnp.arcsinh(x), lambda x: jnp.log1p(x * x), lambda x: jnp.sqrt(x * x + 1),
    lambda x: lax.rsqrt(x * x + 1), lambda x: x**3, lambda x: lax.lgamma(x * x + 0.5), lambda x: nn.gelu(x),
    lambda x: nn.softplus(x), lambda x: 1 / (2 + x * x), lambda x: x * x,
)  # fmt: skip


def smooth(g: Generator) -> Value:
    v = g.value("f")
    return Value(g.choose(UNARY_SMOOTH)(tame(v)), False, 8.0)


def arithmetic(g: Generator) -> Value:
    v = g.value("f")
    w = g.fitting(v, "f")
    exact = v.exact and w.exact
    a, b = (v.array, w.array) if exact else (tame(v), tame(w))
    va, wb = (v.bound, w.bound) if exact else (min(v.bound, 2), min(w.bound, 2))
    if g.rng.random() < 0.5:
        a, b = b, a
    op, bound = g.choose([(jnp.add, va + wb), (jnp.subtract, va + wb), (jnp.multiply, va * wb)])
    need(not exact or bound <= LARGEST_EXACT)
    return Value(op(a, b), exact, bound)


def two_smooth(g: Generator) -> Value:
    v = g.value("f")
    w = g.fitting(v, "f")
    a, b = tame(v), tame(w)
    op = g.choose([
        lambda: a / (1.5 + b * b), lambda: jnp.arctan2(a, 2.5 + b), lambda: jnp.hypot(a, b + 3),
        lambda: (1.5 + a * a) ** b, lambda: jnp.logaddexp(a, b), lambda: a * 0.25 + b * 1.75,
    ])  # fmt: skip
    return Value(op(), False, 16.0)


def exact_unary(g: Generator) -> Value:
    v = g.value("fi", exact=True)
    x = v.array
    op, bound = g.choose([
        (jnp.negative, v.bound), (jnp.abs, v.bound), (jnp.sign, 1.0), (jnp.floor, v.bound), (jnp.round, v.bound),
        (lambda x: x * 3 - 1, 3 * v.bound + 1), (lambda x: jnp.clip(x, -5, 7), 7.0), (lambda x: x**2, v.bound**2),
        (lambda x: jnp.where(x > 2, x, -x), v.bound), (lambda x: x % 7, 7.0), (lambda x: x // 3, v.bound),
    ])  # fmt: skip
    need(bound <= LARGEST_EXACT)
    out = op(x)
    return Value(out.astype(x.dtype), True, bound)


def exact_binary(g: Generator) -> Value:
    v = g.value("fi", exact=True)
    w = g.fitting(v, v.kind, exact=True)
    return Value(g.choose([jnp.maximum, jnp.minimum])(v.array, w.array), True, max(v.bound, w.bound))


def integers(g: Generator) -> Value:
    v = g.value("i", exact=True)
    w = g.fitting(v, "i", exact=True)
    op, bound = g.choose([
        (lambda a, b: (a & b) & 1023, 1024.0), (lambda a, b: (a | b) & 255, 256.0), (lambda a, b: (a ^ b) & 511, 512.0),
        (lambda a, b: (a << 2) & 255, 256.0), (lambda a, b: a >> 1, v.bound), (lambda a, b: a + b, v.bound + w.bound),
        (lambda a, b: a - b, v.bound + w.bound), (lambda a, b: a % (jnp.abs(b) + 1), v.bound + w.bound + 1),
        (lambda a, b: a // (jnp.abs(b) + 1), v.bound), (lambda a, b: lax.population_count(a), 64.0),
    ])  # fmt: skip
    need(bound <= LARGEST_EXACT)
    return Value(op(v.array, w.array).astype(v.array.dtype), True, bound)


def compare(g: Generator) -> Value:
    v = g.value("fi", exact=True)
    w = g.fitting(v, v.kind, exact=True)
    op = g.choose([jnp.less, jnp.less_equal, jnp.greater, jnp.equal, jnp.not_equal])
    return Value(op(v.array, w.array), True, 1.0)


def logic(g: Generator) -> Value:
    v = g.value("b")
    w = g.fitting(v, "b")
    op = g.choose([jnp.logical_and, jnp.logical_or, jnp.logical_xor, lambda a, b: jnp.logical_not(a)])
    return Value(op(v.array, w.array), True, 1.0)


def select(g: Generator) -> Value:
    v = g.value("fi")
    w, mask = g.fitting(v, v.kind), g.fitting(v, "b")
    return Value(jnp.where(mask.array, v.array, w.array), v.exact and w.exact, max(v.bound, w.bound))


def convert(g: Generator) -> Value:
    v = g.value("fib", exact=True)
    targets = [jnp.int32, jnp.result_type(float)] + ([jnp.bfloat16, jnp.float16] if v.bound <= 16 else [])
    if v.bound <= 100:
        targets += [jnp.int8, jnp.int16]
    narrow = v.array.astype(g.choose(targets))
    # Narrow numbers are computed with at once and come back wide: their results would be rounded differently.
    if np.dtype(narrow.dtype).itemsize < 4:
        small = jnp.clip(narrow, -8, 8)
        return Value((small * 2 + 1).astype(g.choose([jnp.int32, jnp.result_type(float)])), True, 17.0)
    return Value(narrow, True, v.bound)


def reduction(g: Generator) -> Value:
    v = g.value("f")
    axes = tuple(k for k in range(v.ndim) if g.rng.random() < 0.6)
    count = int(np.prod([v.shape[k] for k in axes], dtype=np.int64))
    keep = bool(g.rng.random() < 0.3)
    if v.exact:
        need(v.bound * max(count, 1) <= LARGEST_EXACT)
        return Value(jnp.sum(v.array, axes, keepdims=keep), True, v.bound * max(count, 1))
    need(count > 0)
    x = tame(v)
    op = g.choose([
        jnp.sum, jnp.mean, jnp.var, jnp.max, jnp.min, nn.logsumexp,
        lambda x, a, keepdims: jnp.sum(x * x, a, keepdims=keepdims),
        lambda x, a, keepdims: jnp.sqrt(jnp.sum(x * x, a, keepdims=keepdims) + 1),
    ])  # fmt: skip
    return Value(op(x, axes, keepdims=keep), False, 2.0 * max(count, 1))


def exact_reduction(g: Generator) -> Value:
    v = g.value("fib", exact=True, least_rank=1)
    axis = g.axis(v)
    need(v.shape[axis] > 0)
    if v.kind == "b":
        return Value(g.choose([jnp.any, jnp.all])(v.array, axis), True, 1.0)
    op = g.choose([jnp.max, jnp.min, jnp.argmax, jnp.argmin, lambda x, a: jnp.sum(x > 1, a)])
    out = op(v.array, axis)
    if out.dtype != v.array.dtype:
        out = out.astype(jnp.int32)
    return Value(out, True, max(v.bound, v.shape[axis]))


def cumulative(g: Generator) -> Value:
    v = g.value("f", least_rank=1)
    axis = g.axis(v)
    reverse = bool(g.rng.random() < 0.3)
    if v.exact:
        need(v.bound * max(v.shape[axis], 1) <= LARGEST_EXACT)
        op = g.choose([lax.cumsum, lax.cummax, lax.cummin])
        return Value(op(v.array, axis, reverse), True, v.bound * max(v.shape[axis], 1))
    x = tame(v)
    op = g.choose([
        lambda: lax.cumsum(x, axis, reverse), lambda: lax.cumlogsumexp(x, axis, reverse),
        lambda: lax.cumprod(1 + 0.01 * x, axis, reverse), lambda: lax.cummax(x, axis, reverse),
    ])  # fmt: skip
    return Value(op(), False, 2.0 * max(v.shape[axis], 1))


def movement(g: Generator) -> Value:
    v = g.value("fib", least_rank=1)
    x, axis = v.array, g.axis(v)
    n = v.shape[axis]

    def sliced():
        start, step = int(g.rng.integers(0, n + 1)), int(g.rng.integers(1, 4))
        return lax.slice_in_dim(x, start, int(g.rng.integers(start, n + 1)), step, axis)

    def padded():
        widths = [(int(g.rng.integers(-1, 3)), int(g.rng.integers(-1, 3)), int(g.rng.integers(0, 2))) for _ in v.shape]
        sizes = [max(0, s + max(0, s - 1) * i + lo + hi) for s, (lo, hi, i) in zip(v.shape, widths)]
        need(all(s + max(0, s - 1) * i + lo + hi >= 0 for s, (lo, hi, i) in zip(v.shape, widths)))
        need(int(np.prod(sizes)) <= g.most)
        return lax.pad(x, jnp.zeros((), x.dtype), widths)

    def reshaped():
        return x.reshape(g.choose([(-1,), (v.size, 1), (1, *v.shape), v.shape[::-1]])) if v.size else x.reshape(-1)

    def tiled():
        need(2 * v.size <= g.most)
        return jnp.tile(x, tuple(2 if k == axis else 1 for k in range(v.ndim)))

    op = g.choose([
        lambda: jnp.transpose(x, tuple(int(k) for k in g.rng.permutation(v.ndim))), lambda: jnp.flip(x, axis), sliced,
        padded, reshaped, tiled, lambda: jnp.roll(x, int(g.rng.integers(-3, 4)), axis), lambda: x[None],
        lambda: jnp.squeeze(x), lambda: jnp.repeat(x, 2, axis) if 2 * v.size <= g.most else x,
        lambda: jnp.moveaxis(x, axis, 0)[..., None],
    ])  # fmt: skip
    return Value(op(), v.exact, v.bound)


def joining(g: Generator) -> Value:
    v = g.value("fi", least_rank=1)
    w = g.fitting(v, v.kind)
    need(2 * v.size <= g.most)
    b = jnp.broadcast_to(w.array, v.shape).astype(v.array.dtype)
    op = g.choose([jnp.concatenate, jnp.stack])
    parts = [v.array, b, v.array][: 2 if v.size > 5000 else 3]
    return Value(op(parts, g.axis(v)), v.exact and w.exact, max(v.bound, w.bound))


def spreading(g: Generator) -> Value:
    v = g.value("fi", most=300)
    n = g.choose(DIMENSIONS)
    need(n * v.size <= g.most and v.ndim < 4)
    return Value(jnp.broadcast_to(v.array, (n, *v.shape)), v.exact, v.bound)


def indexing(g: Generator) -> Value:
    v = g.value("fi", least_rank=1)
    axis = g.axis(v)
    n = v.shape[axis]
    need(n > 0)
    index = g.value("i", exact=True, most=300)
    need(index.size * (v.size // n) <= g.most and v.ndim - 1 + index.ndim <= 4)
    i = jnp.abs(index.array) % n
    first = i.reshape(-1)[0] if index.size else jnp.int32(0)
    width = int(g.rng.integers(1, n + 1))

    def updated():
        update = lax.slice_in_dim(v.array, 0, width, 1, axis)
        return lax.dynamic_update_slice_in_dim(jnp.flip(v.array, axis), update, first, axis)

    op = g.choose([
        lambda: jnp.take(v.array, i, axis), lambda: jnp.take(v.array, index.array, axis, mode="clip"),
        lambda: jnp.take(v.array, index.array, axis, mode="wrap"),
        lambda: lax.dynamic_slice_in_dim(v.array, first, width, axis), updated,
        lambda: lax.dynamic_index_in_dim(v.array, first, axis, keepdims=False),
    ])  # fmt: skip
    return Value(op(), v.exact, v.bound)


def scattering(g: Generator) -> Value:
    v = g.value("f", least_rank=1)
    index = g.value("i", exact=True, most=200)
    n = v.shape[0]
    need(n > 0 and index.ndim == 1 and index.size * (v.size // n) <= g.most)
    i = jnp.abs(index.array) % (n + 1)  # the last one lies outside and is dropped
    rows = jnp.take(v.array, i % n, 0)
    if v.exact:
        need(v.bound * (index.size + 1) <= LARGEST_EXACT)
        op = g.choose(["add", "max", "min", "subtract"])
        return Value(getattr(v.array.at[i], op)(rows), True, v.bound * (index.size + 1))
    return Value(v.array.at[i].add(rows * 0.5), False, v.bound * (index.size + 1))


def ordering(g: Generator) -> Value:
    v = g.value("fi", exact=True, least_rank=1)
    axis = g.axis(v)
    n = v.shape[axis]
    op = g.choose([
        lambda: jnp.sort(v.array, axis), lambda: jnp.argsort(v.array, axis, stable=True).astype(jnp.int32),
        lambda: -jnp.sort(-v.array, axis),
        lambda: jnp.searchsorted(jnp.sort(v.array.reshape(-1), 0), v.array).astype(jnp.int32),
        lambda: lax.top_k(jnp.moveaxis(v.array, axis, -1), min(n, 3))[0],
        lambda: lax.sort((v.array, jnp.flip(v.array, axis)), dimension=axis, num_keys=1)[1],
    ])  # fmt: skip
    return Value(op(), True, max(v.bound, v.size))


def products(g: Generator) -> Value:
    v = g.value("f", least_rank=1, most=6000)
    x = v.array if v.exact else tame(v)
    w = g.value("f", least_rank=1, most=6000)
    y = w.array if w.exact else tame(w)
    x, y = x.astype(jnp.result_type(float)), y.astype(jnp.result_type(float))
    depth = v.shape[-1]
    exact = v.exact and w.exact

    def gram():
        need(v.size // max(depth, 1) * v.shape[-2 if v.ndim > 1 else -1] <= g.most)
        return x @ jnp.swapaxes(x, -1, -2) if v.ndim > 1 else jnp.outer(x, x), v.bound * v.bound * depth, v.exact

    def product():
        need(v.ndim <= 2 and w.ndim <= 2)
        b = y if w.shape[0] == depth else jnp.resize(y, (depth, 3)) if w.size else jnp.zeros((depth, 3), x.dtype)
        return x @ b, v.bound * w.bound * depth, exact

    def vectors():
        return jnp.einsum("...i,...i->...", x, jnp.flip(x, -1)), v.bound**2 * depth, v.exact

    out, bound, exact = g.choose([gram, product, vectors])()
    need(out.size <= g.most and (not exact or bound <= LARGEST_EXACT))
    return Value(out, exact, bound if exact else 4.0 * depth)


def windows(g: Generator) -> Value:
    v = g.value("f", least_rank=2, most=3000)
    need(v.ndim == 2 and min(v.shape) >= 3)
    x = v.array if v.exact else tame(v)
    x = x.astype(jnp.result_type(float))[None, None]
    stride = (int(g.rng.integers(1, 3)), int(g.rng.integers(1, 3)))
    padding = g.choose(["SAME", "VALID"])

    def conv():
        kernel = jnp.asarray(g.rng.integers(-2, 3, (2, 1, 3, 2)), x.dtype)
        dilation = (1, int(g.rng.integers(1, 3)))
        return lax.conv_general_dilated(x, kernel, stride, padding, rhs_dilation=dilation), v.bound * 12

    def pool():
        return lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3, 2), (1, 1, *stride), padding), v.bound

    def add():
        return lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 3), (1, 1, *stride), padding), v.bound * 6

    out, bound = g.choose([conv, pool, add])()
    need(bound <= LARGEST_EXACT)
    return Value(out[0], v.exact, bound)


def row_wise(g: Generator) -> Value:
    v = g.value("f", least_rank=1)
    axis = g.axis(v)
    need(v.shape[axis] > 0)
    x = tame(v)
    op = g.choose([
        lambda: nn.softmax(x, axis), lambda: nn.log_softmax(x, axis),
        lambda: (x - jnp.mean(x, axis, keepdims=True)) / jnp.sqrt(jnp.var(x, axis, keepdims=True) + 1),
        lambda: x / (1 + jnp.max(jnp.abs(x), axis, keepdims=True)),
    ])  # fmt: skip
    return Value(op(), False, 8.0)


def algebra(g: Generator) -> Value:
    v = g.value("f", least_rank=2, most=400)
    need(v.ndim == 2 and 0 < v.shape[0] <= 20)
    x = tame(v).astype(jnp.result_type(float))
    square = x @ x.T + (1.0 + v.shape[1]) * jnp.eye(v.shape[0], dtype=x.dtype)
    op = g.choose([
        lambda: jnp.linalg.cholesky(square), lambda: jnp.linalg.solve(square, x), lambda: jnp.linalg.inv(square),
        lambda: jnp.linalg.slogdet(square)[1], lambda: jnp.linalg.eigvalsh(square),
    ])  # fmt: skip
    return Value(op(), False, 8.0)


def complexes(g: Generator) -> Value:
    v = g.value("f")
    w = g.fitting(v, "f")
    wide = jnp.result_type(float)
    z = lax.complex(tame(v).astype(wide), jnp.broadcast_to(tame(w).astype(wide), v.shape))
    op = g.choose([
        lambda: jnp.real(z * jnp.conj(z) + z), lambda: jnp.abs(z + 3), lambda: jnp.imag(jnp.exp(z)),
        lambda: jnp.real(z / (z + 4)), lambda: jnp.real(jnp.sqrt(z + 4)), lambda: jnp.imag(jnp.sin(z)),
    ])  # fmt: skip
    return Value(op(), False, 16.0)
