"""What a pass adds to a function: variables and buffers with names of their own."""

from __future__ import annotations

from pullback.loops.ir.ir import Buffer, Function, Space, Var


class Fresh:
    """New variables, told apart by `mark` and a number, and new buffers, whose names `function` does not have."""

    def __init__(self, mark: str, function: Function | None = None) -> None:
        self.buffers: list[Buffer] = []
        self._mark = mark
        self._count = 0
        self._taken = set() if function is None else {buffer.name for buffer in function.buffers}

    def var(self, var: Var) -> Var:
        """A variable named after another, of its type."""
        self._count += 1
        return Var(f"{var.name}_{self._mark}{self._count}", var.dtype)

    def buffer(self, name: str, dtype: str, size: int, space: Space = "temporary") -> Buffer:
        """A buffer of `size` elements, which is kept in `buffers`."""
        name = f"{name}{len(self.buffers)}"
        while name in self._taken:
            name += "_"
        self.buffers.append(Buffer(name, dtype, size, space))
        return self.buffers[-1]
