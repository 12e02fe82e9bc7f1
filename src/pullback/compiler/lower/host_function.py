"""What programs call in Python: the references of primitives for which no loops are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.lowering import HostCall
from pullback.util.record import frozen_record


@frozen_record
class Reference:
    """A primitive's reference with its parameters."""

    primitive: Any
    params: dict[str, Any]

    def __call__(self, *arrays: np.ndarray) -> Any:
        return self.primitive.reference(*arrays, **self.params)


@frozen_record
class HostFunction:
    """A Python function that a program calls, with the shapes and types of the arrays it gets and fills."""

    function: Callable[..., Any]
    name: str
    operands: tuple[tuple[tuple[int, ...], np.dtype], ...]
    results: tuple[tuple[tuple[int, ...], np.dtype], ...]

    @property
    def is_users(self) -> bool:
        """Whether it runs a function of the user's, which may go by the thread that it is called on."""
        return self.name.endswith("callback") or self._maker is not None

    @property
    def _maker(self) -> Any:
        kind = self.function.primitive.lower if isinstance(self.function, Reference) else None
        return kind.native if isinstance(kind, HostCall) else None

    def native(self) -> Any:
        """The foreign function that is called in place of the Python one, or None."""
        maker = self._maker
        return None if maker is None else maker(self.function.params, self.operands, self.results)  # type: ignore[attr-defined]

    def run_flat(self, arrays: Sequence[np.ndarray]) -> None:
        """`run` on flat arrays, which may be longer than need be."""
        described = self.operands + self.results
        self.run([a[: math.prod(shape)].reshape(shape) for a, (shape, _) in zip(arrays, described)])

    def run(self, arrays: Sequence[np.ndarray]) -> None:
        """Call it on arrays, operands then results, and write the results."""
        n = len(self.operands)
        outs = self.function(*arrays[:n])
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        if len(outs) != len(self.results):
            raise RuntimeError(
                f"{self.name}: the Python function gave {len(outs)} result(s), expected {len(self.results)}"
            )
        for destination, value in zip(arrays[n:], outs):
            value = np.asarray(value)
            if value.shape != destination.shape:
                raise RuntimeError(
                    f"{self.name}: the Python function gave shape {value.shape}, expected {destination.shape}"
                )
            destination[...] = value


__all__ = ["HostFunction", "Reference"]
