"""Machine code of a program and what belongs to it, whether it was made here or found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pullback._ext import _core
from pullback.core.jaxpr import ClosedJaxpr
from pullback.runtime.programs.libraries import is_library
from pullback.runtime.programs.stored import Facts
from pullback.util.switches import switches

if TYPE_CHECKING:
    pass


@dataclass(slots=True, weakref_slot=True)
class Native:
    """What calls need to know of a program; `compiled` is None where programs are interpreted."""

    facts: Facts
    arena_bytes: int
    compiled: Any
    seconds: dict[str, float]
    named_by: ClosedJaxpr | None = None  # whose parts are in the key under which the code is found

    @property
    def calls_libraries(self) -> bool:
        """Whether BLAS or LAPACK run, by themselves or inside of NumPy's functions."""
        return any(is_library(name) for name in self.compiled.slots) or any(
            not host.is_users for host in self.facts.host_calls
        )


def ready(native: Native) -> Native:
    """The program, which may be called from now on."""
    if native.facts.host_calls:
        native.compiled.set_host_call(_core.symbol_addresses()["pb_host_call_index"])
    return native


def variant() -> tuple[Any, ...]:
    """What makes other code of a program, for looking at it, or checks each pass: such code is not kept on disk."""
    return bool(switches.interpret), switches.skip, switches.form, switches.check > 1


def among(numbers: tuple[int, ...], kept: tuple[int, ...] | None) -> tuple[int, ...]:
    """Numbers of arguments, counted among the kept ones."""
    return numbers if kept is None else tuple(kept.index(k) for k in numbers if k in kept)
