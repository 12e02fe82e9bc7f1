"""What jit traces, as files in a folder: the options jax_dump_ir_to and jax_dump_ir_modes.

Mode `jaxpr` writes the program's text, `eqn_count_pprof` how many equations each line of the user's code makes, in the
format of pprof: `pprof -top FILE` shows the lines that unroll loops.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from pullback.core.source import UNKNOWN, SourceInfo, located
from pullback.util import config
from pullback.util.logs import TRACING, warn
from pullback.util.protobuf import Strings, field, packed
from pullback.util.protobuf import number as number_of

_numbers = itertools.count()
_refused: set[str] = set()  # modes that were warned of


def dump(name: str, fun: Any, closed: ClosedJaxpr) -> None:
    """Write a traced function's files, if a folder is set."""
    folder = config.value_of("jax_dump_ir_to")
    if not folder:
        return
    os.makedirs(folder, exist_ok=True)
    start = os.path.join(folder, f"jax_{next(_numbers):06d}_{name.replace(os.sep, '_')}")
    for mode in config.value_of("jax_dump_ir_modes").split(","):
        if mode == "jaxpr":
            with open(start + ".jaxpr.txt", "w", encoding="utf-8") as text:
                text.write(str(closed))
        elif mode == "eqn_count_pprof":
            with open(start + ".eqn_count_pprof", "wb") as profile:
                profile.write(equation_counts(closed.jaxpr, located(fun)))
        elif mode and mode not in _refused:
            _refused.add(mode)
            warn(
                TRACING,
                f"jax_dump_ir_modes: {mode!r} is not written, as there is no such text here; 'jaxpr' and "
                "'eqn_count_pprof' are, and lower(...).as_text(...) gives our own stages",
            )


def _places(jaxpr: Jaxpr, around: Sequence[SourceInfo]) -> Iterator[tuple[str, tuple[SourceInfo, ...]]]:
    """Each equation's primitive and lines, innermost first; those of a called program come before the call's."""
    for eqn in jaxpr.eqns:
        own = (eqn.source or UNKNOWN).as_line
        lines = (*([] if around and around[0] == own else [own]), *around)
        inner = jaxprs_in_params(eqn.params)
        if not inner:
            yield eqn.primitive.name, lines
        for called in inner:
            yield from _places(called, lines)


def equation_counts(jaxpr: Jaxpr, comment: str = "") -> bytes:
    """A profile of pprof's (profile.proto) whose samples are numbers of equations, by lines and primitives."""
    strings = Strings()
    functions: dict[tuple[str, str], int] = {}
    lines: dict[SourceInfo, int] = {}
    out = bytearray(field(1, number_of(1, strings["equations"]) + number_of(2, strings["count"])))
    for (primitive, places), count in Counter(_places(jaxpr, ())).items():
        ids = [lines.setdefault(place, len(lines) + 1) for place in places]
        label = number_of(1, strings["primitive"]) + number_of(2, strings[primitive])
        out += field(2, packed(1, ids) + packed(2, [count]) + field(3, label))
    for place, number in lines.items():
        function = functions.setdefault((place.function, place.file), len(functions) + 1)
        out += field(4, number_of(1, number) + field(4, number_of(1, function) + number_of(2, place.line)))
    for (name, file), number in functions.items():
        named = number_of(2, strings[name]) + number_of(3, strings[name])
        out += field(5, number_of(1, number) + named + number_of(4, strings[file]))
    comments = packed(13, [strings[comment]])
    for text in strings:
        out += field(6, text.encode())
    return bytes(out + comments)


__all__ = ["dump", "equation_counts"]
