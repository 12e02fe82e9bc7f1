"""`report`: a function is run, its kernels are measured, and what was found becomes a page."""

from __future__ import annotations

import html
import linecache
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pullback.api import block_until_ready, jit
from pullback.api._places import layout_of_call
from pullback.core import Array, Tracer
from pullback.core.jaxpr import ClosedJaxpr, jaxprs_in_params
from pullback.core.source import SourceInfo
from pullback.loops.schedule.machine import host
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.partition.report import Collective
from pullback.reports.page import page
from pullback.runtime.programs.measured import Kernel, Measured, instructions, measure
from pullback.transforms.discharge import discharged
from pullback.util.clock import time_of
from pullback.util.errors import ArgumentError
from pullback.util.pytree import tree_leaves
from pullback.util.tracebacks import api_boundary

ROUNDS, SECONDS = 50, 1.0  # of timing the whole: the most calls, and about the most time
AROUND = 2  # lines of source shown around those that compute something
MOST_TEXT = 20_000  # characters of a kernel's loops or instructions that a page holds


class Report:
    """What `report` found. `facts` has it as plain lists and numbers, `html` the page; `save` writes the page."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.path: str | None = None

    @property
    def html(self) -> str:
        """The page."""
        return page(self.facts)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the page; gives its path."""
        Path(path).write_text(self.html, encoding="utf-8")
        self.path = os.fspath(path)
        return self.path

    def _repr_html_(self) -> str:
        content = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{content}" style="width:100%;height:720px;border:0" title="pullback report"></iframe>'

    def __repr__(self) -> str:
        facts = self.facts
        lines = [f"{facts['name']}: {time_of(facts['ns'])} a call, {len(facts['kernels'])} kernels"]
        ordered = sorted(facts["kernels"], key=lambda kernel: -kernel["ns"])
        for kernel in ordered[:10]:
            where = ", ".join(f"{os.path.basename(line['file'])}:{line['line']}" for line in kernel["lines"][:2])
            lines.append(f"  {kernel['share']:6.1%}  {time_of(kernel['ns']):>9}  {kernel['name'][:40]:<40} {where}")
        if len(ordered) > 10:
            lines.append(f"  and {len(ordered) - 10} more")
        if self.path is not None:
            lines.append(f"page: {self.path}")
        return "\n".join(lines)


@api_boundary
def report(fun: Callable[..., Any], *args: Any, path: str | os.PathLike[str] | None = "report.html", **kwargs: Any):
    """Run `fun(*args, **kwargs)`, measure its kernels, and write one HTML page that says where the time goes.

    fun: a function that `jit` takes, or a jitted one, or what `pmap` gives; args, kwargs: its arguments, arrays of any
    shapes and dtypes, and what a jitted function takes as static (give others with `functools.partial`). path: the file
    to write, or None for none (a function with an argument of that name is given with `functools.partial`). Gives a
    `Report`. The function is run some dozen times, by itself and with clocks between its kernels; donated arguments are
    kept. ArgumentError (a TypeError) if `fun` cannot be called, or inside of another transformation; FileNotFoundError
    for a path in a folder that is not there.

    >>> import pullback as jax, pullback.numpy as jnp
    >>> found = jax.report(lambda x: jnp.sin(x).sum(), jnp.ones(1000), path=None)
    >>> found.facts["kernels"][0]["name"]
    'reduce_sum'
    """
    if not callable(fun):
        raise ArgumentError(f"report: argument 'fun' must be a function, got {fun!r} of type {type(fun).__name__}")
    if any(isinstance(x, Tracer) for x in tree_leaves((args, kwargs))):
        raise ArgumentError("report: an argument is traced; call report outside of jit, grad and vmap")
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"report: argument 'path' is {os.fspath(path)!r}, in a folder that is not there")
    jitted = fun if hasattr(fun, "trace") else jit(fun)
    traced = jitted.trace(*args, **kwargs)
    name = getattr(traced, "fun_name", "program")
    closed, _ = discharged(traced._program)
    static = getattr(traced, "static_args", ())
    inputs = _inputs(
        closed,
        tuple(x for n, x in enumerate(args) if n not in static),
        {name: x for name, x in kwargs.items() if name not in static},
    )
    found = measure(closed, name, inputs, layout_of_call(closed, inputs, None))
    plain = jit(lambda *leaves: _evaluated(closed, leaves))
    found.ns = _call_ns(lambda: plain(*inputs))
    made = Report(_facts(found, closed))
    if path is not None:
        made.save(path)
    return made


def _evaluated(closed: ClosedJaxpr, leaves: tuple[Any, ...]) -> Any:
    from pullback.core.jaxpr import eval_jaxpr

    return eval_jaxpr(closed.jaxpr, closed.consts, *leaves)


def _inputs(closed: ClosedJaxpr, args: Any, kwargs: Any) -> list[Any]:
    """The leaves of the arguments as arrays of the program's types."""
    from pullback.numpy import asarray

    leaves = tree_leaves((args, kwargs))
    if len(leaves) != len(closed.in_avals):
        raise ArgumentError(
            f"report: the program takes {len(closed.in_avals)} arrays, and {len(leaves)} were given; bind mutable "
            "arrays with functools.partial"
        )
    return [x if isinstance(x, Array) else asarray(x, dtype=a.dtype) for x, a in zip(leaves, closed.in_avals)]


def _call_ns(call: Callable[[], Any]) -> float:
    """The median time of a call that is waited for."""
    block_until_ready(call())
    found: list[int] = []
    started = time.perf_counter()
    while len(found) < ROUNDS and (len(found) < 3 or time.perf_counter() - started < SECONDS):
        began = time.perf_counter_ns()
        block_until_ready(call())
        found.append(time.perf_counter_ns() - began)
    return float(sorted(found)[len(found) // 2])


# ---- plain facts


def _facts(found: Measured, closed: ClosedJaxpr) -> dict[str, Any]:
    total = sum(kernel.ns for kernel in found.kernels) or 1.0
    text, line_of = _jaxpr_lines(found.flat)
    kernels = [_kernel(kernel, total, line_of, found) for kernel in found.kernels]
    machine = host()
    return {
        "name": found.name,
        "ns": found.ns,
        "kernel_ns": total,
        "kernels": kernels,
        "jaxpr": text,
        "sources": _sources(found),
        "argument_bytes": found.argument_bytes,
        "result_bytes": found.result_bytes,
        "arena_bytes": found.arena_bytes,
        "passes": dict(found.passes),
        "stages": dict(found.stages),
        "notes": found.notes,
        "machine": {
            "name": machine.name, "cores": machine.cores, "vector_bits": machine.vector_bytes * 8,
            "caches": [machine.first.bytes, machine.second.bytes, machine.last.bytes],
        },
        "version": _version(),
        "equations": len(closed.eqns),
        "devices": found.devices,
        "collectives": [_collective(each) for each in found.collectives],
    }  # fmt: skip


def _collective(found: Collective) -> dict[str, Any]:
    where = found.source
    return {
        "name": found.name, "axes": [str(axis) for axis in found.axes], "operands": found.operands,
        "results": found.results, "bytes": found.bytes, "repeats": found.repeats,
        "lines": [] if where is None else [{"file": where.file, "line": where.line, "text": _line(where)}],
    }  # fmt: skip


def _version() -> str:
    from pullback.version import __version__

    return __version__


def _kernel(kernel: Kernel, total: float, line_of: dict[int, int], found: Measured) -> dict[str, Any]:
    equations = sorted({line_of[id(e)] for e in kernel.equations if id(e) in line_of})
    limit = kernel.limit_ns or None
    return {
        "number": kernel.number, "name": kernel.name, "kind": kernel.kind, "ns": kernel.ns, "runs": kernel.runs,
        "share": kernel.ns / total, "expected_ns": kernel.expected_ns, "limit_ns": limit,
        "of_limit": min(limit * max(kernel.runs, 1) / kernel.ns, 1.0) if limit and kernel.ns else None,
        "least_bytes": kernel.least_bytes, "moved_bytes": kernel.moved_bytes, "threads": kernel.threads,
        "form": kernel.form, "shape": kernel.shape, "runner_up": kernel.runner_up,
        "runner_up_expected_ns": kernel.runner_up_expected_ns, "runner_up_ns": kernel.runner_up_ns,
        "lines": [{"file": x.file, "line": x.line, "text": _line(x)} for x in kernel.lines],
        "equations": equations, "fused": [e.primitive.name for e in kernel.equations],
        "stored": [{"value": s.value, "reader": s.reader, "why": s.why} for s in kernel.stored],
        "text": kernel.text[:MOST_TEXT], "asm": _asm(kernel, found), "temporaries": kernel.temporaries,
    }  # fmt: skip


def _asm(kernel: Kernel, found: Measured) -> str:
    try:
        text = instructions(kernel, found.buffers, found.before.get(kernel.number, ()))
    except Exception as error:  # a kernel that cannot stand alone is shown without its instructions
        return f"; not shown: {error}"
    lines = [line for line in text.splitlines() if line.strip() and not _is_directive(line)]
    return "\n".join(lines)[:MOST_TEXT]


def _is_directive(line: str) -> bool:
    return (line.strip().startswith((".", "#")) and not line.strip().startswith(".L")) or line.startswith(".LCPI")


def _line(source: SourceInfo) -> str:
    return linecache.getline(source.file, source.line).rstrip("\n")


def _sources(found: Measured) -> list[dict[str, Any]]:
    """The user's lines that compute something, with those around them, by file."""
    wanted: dict[str, set[int]] = {}
    for kernel in found.kernels:
        for line in kernel.lines:
            wanted.setdefault(line.file, set()).add(line.line)
    result = []
    for file, numbers in wanted.items():
        shown = sorted({n for each in numbers for n in range(max(1, each - AROUND), each + AROUND + 1)})
        text = [(n, linecache.getline(file, n).rstrip("\n")) for n in shown if linecache.getline(file, n)]
        result.append({"file": file, "lines": text})
    return result


def _equations(jaxpr: Any, outer: int | None, line_of: dict[int, int], number: Iterator[int]) -> None:
    for eqn in jaxpr.eqns:
        line_of[id(eqn)] = next(number) if outer is None else outer
        for inner in jaxprs_in_params(eqn.params):
            _equations(inner, line_of[id(eqn)], line_of, number)


def _jaxpr_lines(flat: ClosedJaxpr) -> tuple[list[list[Any]], dict[int, int]]:
    """The text of a jaxpr as [number of the equation or None, line], and the number of each equation."""
    from itertools import count

    line_of: dict[int, int] = {}
    _equations(flat.jaxpr, None, line_of, count())
    lines: list[list[Any]] = []
    current = -1
    for line in str(flat).splitlines():
        indent = len(line) - len(line.lstrip())
        if indent == 4 and " = " in line and not line.lstrip().startswith(("]", "}")):
            current += 1
            lines.append([current, line])
        else:
            is_inside = indent >= 4 and current >= 0 and not line.startswith("  in ")
            lines.append([current if is_inside else None, line])
    if current + 1 != len(flat.eqns):  # a short program stands in one line
        lines = [[0 if len(flat.eqns) == 1 else None, line] for _, line in lines]
    return lines, line_of


__all__ = ["Report", "report"]

add_pages(globals(), PAGES)
