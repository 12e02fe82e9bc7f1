"""Random loop nests: affine and not quite affine indices, reductions, Lets, branches, several types."""

from __future__ import annotations

import math

import numpy as np

from pullback.loops.ir import NP_DTYPE, Buffer, Builder, Expr, Function

EXTENTS = (1, 2, 3, 5, 7, 8, 9, 16, 17, 33)
TYPES = ("f32", "f32", "f64", "i32", "bool", "f16", "i64", "c64", "u8")


class RandomNest:
    """Writes a random function of a few nests; every index is inside its buffer."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.b = Builder()
        self.sources: list[Buffer] = []
        for k in range(3):
            self.sources.append(self.b.input(f"x{k}", self.pick(TYPES), int(self.rng.integers(1, 400))))

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def function(self) -> Function:
        for k in range(int(self.rng.integers(1, 4))):
            self.nest(k)
        return self.b.function("random")

    def nest(self, number: int) -> None:
        """One nest of parallel loops, with a reduction inside at times, writing a buffer of its own."""
        b = self.b
        depth = int(self.rng.integers(1, 4))
        extents = [int(self.pick(EXTENTS)) for _ in range(depth)]
        while math.prod(extents) > 3000:
            extents[int(np.argmax(extents))] = 2
        dtype = self.pick(TYPES)
        last = number == 2 or self.chance(0.6)
        out = (b.output if last else b.temporary)(f"y{number}", dtype, math.prod(extents))
        order = list(self.rng.permutation(depth)) if self.chance(0.5) else list(range(depth))

        def loops(k: int, index: list) -> None:
            if k < depth:
                with b.loop(extents[k]) as i:
                    loops(k + 1, [*index, i])
                return
            flat = b.index(0)
            for axis in order:
                flat = flat * extents[axis] + index[axis]
            value = self.reduction(index, extents, dtype) if self.chance(0.3) else self.value(index, extents, dtype, 3)
            if self.chance(0.3):
                value = b.let(value)
            if self.chance(0.2):
                b.store(out, flat, value)
                with b.if_(self.value(index, extents, "bool", 2)):
                    b.store(out, flat, self.value(index, extents, dtype, 2))
            else:
                b.store(out, flat, value)

        loops(0, [])
        self.sources.append(out)

    def reduction(self, index: list, extents: list[int], dtype: str) -> Expr:
        """A reduce loop, which also sees its own index."""
        b = self.b
        n = int(self.pick(EXTENTS))
        combine = "or" if dtype == "bool" else self.pick(("add", "max", "min") if dtype[0] != "c" else ("add",))
        init = b.const(dtype, 0)
        with b.carried_loop(n, [((init,), combine)], "reduce", "r") as r:
            element = self.value([*index, r.i], [*extents, n], dtype, 2)
            r.update(b.op(combine, r.var, element))
        return r.result

    def index(self, index: list, extents: list[int], size: int) -> Expr:
        """Some index into a buffer of `size` elements."""
        b = self.b
        flat, span = b.index(0), 1
        for axis in self.rng.permutation(len(index)):
            if self.chance(0.7) and span * extents[axis] <= max(size, 1) * 4:
                flat = flat + index[axis] * span
                span *= extents[axis]
        if self.chance(0.2):
            flat = (flat // 3) * 2 + flat % 3
            span *= 2
        if span > size:
            flat = b.floormod(flat, b.index(size))
        elif self.chance(0.3):
            flat = b.index(size - 1) - flat
        elif size > span:
            flat = flat + int(self.rng.integers(0, size - span + 1))
        return flat

    def value(self, index: list, extents: list[int], dtype: str, depth: int) -> Expr:
        """A random expression."""
        b = self.b
        if depth == 0 or self.chance(0.25):
            buffer = self.pick(self.sources)
            at = self.index(index, extents, buffer.size)
            if self.chance(0.2):  # outside the buffer where it is not wanted
                shifted = at + int(self.rng.integers(1, 5))
                loaded = b.select(b.lt(shifted, buffer.size), b.load(buffer, shifted), b.const(buffer.dtype, 1))
            else:
                loaded = b.load(buffer, at)
            return self.converted(loaded, dtype)
        if self.chance(0.15):
            return self.converted(self.pick(index), dtype)
        x, y = (self.value(index, extents, dtype, depth - 1) for _ in range(2))
        if self.chance(0.2):
            y = x
        if dtype == "bool":
            return b.op(self.pick(("and", "or", "xor", "eq")), x, y)
        if self.chance(0.2):
            return b.select(self.value(index, extents, "bool", depth - 1), x, y)
        if dtype[0] == "c":
            return b.op(self.pick(("add", "sub", "mul")), x, y)
        return b.op(self.pick(("add", "sub", "mul", "min", "max")), x, y)

    def converted(self, x: Expr, dtype: str) -> Expr:
        b = self.b
        if dtype == "bool" and x.dtype != "bool":
            zero = b.const(x.dtype, 0)
            return b.ne(x, zero)
        return b.convert(x, dtype)

    def inputs(self) -> list[np.ndarray]:
        """Small numbers, so that sums and products are exact in every type that is wide enough."""
        return [
            self.rng.integers(0, 4, buffer.size).astype(NP_DTYPE[buffer.dtype])
            for buffer in self.b.buffers
            if buffer.space == "input"
        ]
