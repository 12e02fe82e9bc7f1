"""A whole program as HLO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pullback.compiler.hlo.exchanges import write
from pullback.compiler.hlo.text import Computation, Module, plain, shape_text
from pullback.core.jaxpr import ClosedJaxpr


class HloModule:
    """A traced program as HLO: `as_hlo_text()`, `name()`. Of one device's program, `mesh` has the sizes of axes."""

    def __init__(
        self, closed: ClosedJaxpr, name: str, arg_names: Sequence[str] = (), mesh: Mapping[Any, int] | None = None
    ):
        self._mesh = mesh or {}
        self._closed, self._name, self._arg_names = closed, f"jit_{plain(name)}", tuple(arg_names)

    def name(self) -> str:
        """The module's name."""
        return self._name

    def as_hlo_text(self) -> str:
        """The text: a line of what the module takes and gives, then computations, the last of which is the entry."""
        closed, module = self._closed, Module(write, self._mesh)
        results = list(closed.out_avals)
        entry = Computation(module)
        outs = entry.run(closed, entry.parameters(closed.in_avals, self._arg_names))
        single = len(outs) == 1
        entry.finish("ENTRY main", outs[0] if single else entry.tuple(outs, results))
        taken = ", ".join(map(shape_text, closed.in_avals))
        layout = f"{{({taken})->{shape_text(results[0] if single else results)}}}"
        head = f"HloModule {self._name}, entry_computation_layout={layout}"
        return "\n\n".join([head, *module.computations, ""])

    __str__ = as_hlo_text
