"""Ahead of time: a function traced, lowered, compiled, each stage an object that can be looked at."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from pullback._ext import _core
from pullback.api import donation
from pullback.api._compiled_calls import check_layouts, check_shardings, check_tree, check_types
from pullback.api._places import (
    check_places,
    collective_bytes,
    compile_partitioned,
    devices_said,
    held_to,
    input_shardings,
    is_abstract,
    layout_at,
    on_devices,
    output_shardings,
    partitioned_arguments,
    partitioned_results,
    partitioned_text,
    program_of_one,
)
from pullback.api.compiler_options import CompilerOptions, autotunes, check_options
from pullback.api.shapes import ShapeDtypeStruct, said_of_results
from pullback.core import ClosedJaxpr, Tracer, eval_interpreter, hooks
from pullback.core.avals import AbstractRef, Reference
from pullback.runtime.arrays.devices import default_device
from pullback.runtime.arrays.layouts import laid_out, rows
from pullback.runtime.programs.canonical import without_rules
from pullback.runtime.programs.compiler import admit
from pullback.sharding._current import current_mesh
from pullback.sharding._layout import Format, Layout
from pullback.transforms.discharge import discharged, note, values_of
from pullback.transforms.partial_eval import dce_jaxpr, used_inputs
from pullback.transforms.places import as_shown
from pullback.util import config
from pullback.util.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from pullback.util.record import frozen_record
from pullback.util.tracebacks import api_boundary, shorten

DIALECTS = ("jaxpr", "hlo", "partitioned", "fused", "loops", "nests", "schedule", "llvm", "asm")
_OF_XLA = ("stablehlo", "mhlo")


def _check_dialect(what: str, dialect: str) -> None:
    if dialect in DIALECTS:
        return
    why = ": pullback compiles through loop nests, without MLIR" if dialect in _OF_XLA else ""
    names = ", ".join(map(repr, DIALECTS))
    raise ValueError(f"{what}: unknown dialect: {dialect}{why}; expected one of {names}")


@runtime_checkable
class Wrapped(Protocol):
    """What `jit` gives: a function that can also be traced and lowered without a call."""

    def __call__(self, *args, **kwargs):
        """Run it."""

    def trace(self, *args, **kwargs) -> Traced:
        """The function traced for arguments of these types."""

    def lower(self, *args, **kwargs) -> Lowered:
        """The same, lowered."""


@frozen_record
class ArgInfo:
    """What a traced function knows of one leaf of its arguments."""

    _aval: Any
    donated: bool

    @property
    def shape(self):
        """Shape of the argument."""
        return self._aval.shape

    @property
    def dtype(self):
        """Dtype of the argument."""
        return self._aval.dtype


class Traced:
    """A traced function: `.jaxpr`, `.out_info`, `.lower()`."""

    def __init__(
        self,
        closed: ClosedJaxpr,
        in_tree,
        out_tree,
        name: str,
        donated: tuple[int, ...],
        keep_unused: bool,
        fixed=(),
        arg_names: Sequence[str] = (),
        places: Sequence[tuple[Any, Any]] = (),
        compiler_options: CompilerOptions | None = None,
        layouts: tuple[Sequence[Any], Sequence[Any]] = ((), ()),
    ):
        self._program = closed
        self.in_tree, self.out_tree = in_tree, out_tree
        self.fun_name = name
        self.arg_names = tuple(arg_names)
        self.static_args = frozenset(fixed)  # positions and names of arguments that the program does not have
        self._donated, self._keep_unused = donated, keep_unused
        self._taken: tuple[int, ...] | None = None
        self._places = list(places) or [(None, None)] * in_tree.num_leaves  # (the argument's, what in_shardings says)
        self._options = compiler_options
        self._mesh = current_mesh()  # the one in force, on which results lie that nothing else says anything of
        ins, outs = layouts  # of arguments and results, as was said: a Layout, AUTO or None
        self._layouts = list(ins) or [None] * in_tree.num_leaves, list(outs) or [None] * len(closed.out_avals)

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        from pullback.lax.control.closed_over import with_operands  # with jaxprs that are shown, not at start-up

        return with_operands(as_shown(self._program))

    @property
    def out_info(self):
        """The types of the result, as a tree of ShapeDtypeStruct."""
        return tree_unflatten(
            self.out_tree,
            [
                ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=sharding or a.placing)
                for a, sharding in zip(self._program.out_avals, said_of_results(self._program.jaxpr, of_jit=True))
            ],
        )

    @property
    def in_avals(self):
        """The types of the arguments, as (args, kwargs)."""
        return tree_unflatten(self.in_tree, self._program.in_avals)

    @property
    def args_info(self):
        """Type of each argument, and whether it is donated, as (args, kwargs)."""
        return self._args_info()

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Numbers of the leaves that are donated."""
        return self._donated

    def taken(self) -> tuple[int, ...]:
        """Numbers of the leaves that a call deletes; a warning the first time if others were to be."""
        if self._taken is None:
            self._taken = donation.usable(self._program, self._donated, self._keep_unused)
        return self._taken

    def reads(self) -> list[bool]:
        """For each leaf whether the program takes it."""
        return [True] * self.in_tree.num_leaves if self._keep_unused else used_inputs(dce_jaxpr(self._program.jaxpr))

    @property
    def out_avals(self):
        """The types of the result, as a tree of avals."""
        return tree_unflatten(self.out_tree, self._program.out_avals)

    def _args_info(self):
        infos = [ArgInfo(a, i in self._donated) for i, a in enumerate(self._program.in_avals)]
        return tree_unflatten(self.in_tree, infos)

    def lower(self, *, lowering_platforms=None, _private_parameters=None) -> Lowered:
        """The program after the graph passes and lowering to loops; NotImplementedError unless it is for CPUs.

        ValueError for arguments over meshes without devices only, unless lowering_platforms is given, for those that do
        not fit the sharding that their types say, and for those on incompatible devices.
        """
        if lowering_platforms is not None and "cpu" not in lowering_platforms:
            raise NotImplementedError(f"lower: lowering_platforms is {tuple(lowering_platforms)}; there is only 'cpu'")
        for aval, (place, _) in zip(self._program.in_avals, self._places):
            if place is not None:
                place.check(getattr(aval, "shape", ()), "pjit arguments")
        self.taken()  # warns
        if not self._is_abstract:
            with config.mesh_in_force(self._mesh):
                check_places(self._program, [a or b for a, b in self._places], self._keep_unused)
            return Lowered(self)
        if self._devices is not None:
            return Lowered(self._on(self._devices))
        if lowering_platforms is None:
            raise ValueError(
                f"lower: arguments of {self.fun_name} lie over an AbstractMesh, whose devices are not known; say for "
                "what to lower it, such as by lowering_platforms=('cpu',)"
            )
        return Lowered(self)

    @property
    def _is_abstract(self) -> bool:
        """Whether arguments lie over meshes without devices."""
        return any(is_abstract(p) for pair in self._places for p in pair)

    @property
    def _devices(self) -> tuple[Any, ...] | None:
        """The devices that arguments, or the mesh in force, name; None if nothing does."""
        return devices_said([a or b for a, b in self._places], self._mesh)

    def _on(self, devices: Sequence[Any]) -> Traced:
        """The same, with devices for the meshes that have none."""
        traced = copy.copy(self)
        traced._places = [(on_devices(a, devices), on_devices(b, devices)) for a, b in self._places]
        return traced

    @functools.cached_property
    def _layout(self) -> Any:
        """How the program is partitioned over a mesh; None if it is not."""
        with config.mesh_in_force(self._mesh):
            committed, said = [a for a, _ in self._places], [b for _, b in self._places]
            return layout_at(self._program, committed, said, self._keep_unused)

    def _hlo(self, of_one_device: bool = False) -> Any:
        """The program as it was traced, or that of one device where it is partitioned, written as HLO."""
        from pullback.compiler.hlo import HloModule  # few ask

        if of_one_device and self._layout is not None:
            return HloModule(
                program_of_one(self._program, self._layout), self.fun_name, self.arg_names, self._layout.sizes
            )
        return HloModule(discharged(self._program)[0], self.fun_name, self.arg_names)

    def _partitioned_text(self) -> str:
        """One device's program, with the bytes of each collective."""
        if self._layout is None:
            return "not partitioned: nothing is cut over a mesh of several devices\n"
        return partitioned_text(self._program, self._layout)

    def _costs(self, of_whole: dict[str, float]) -> dict[str, float]:
        """The costs of the whole program, with the bytes that each device receives from others."""
        if self._layout is None:
            return of_whole
        return {**of_whole, "collective bytes": float(collective_bytes(self._program, self._layout))}

    def without_rules(self) -> Traced:
        """The same without custom rules of differentiation, which a lowered program has no more use for."""
        traced = copy.copy(self)
        traced._program = without_rules(self._program)
        return traced

    @api_boundary
    def __call__(self, *args, **kwargs):
        """Compile, and run on arguments of exactly these types."""
        return self.lower().compile()(*args, **kwargs)


class _Stage:
    """What a lowered and a compiled function both say of their types."""

    _traced: Traced
    out_tree: Any

    @property
    def out_info(self):
        """The types of the result, as a tree of ShapeDtypeStruct; whether they are weak is not said. Meshes are of the
        devices on which the arguments lie.
        """
        devices = self._traced._devices

        def lowered(a: ShapeDtypeStruct) -> ShapeDtypeStruct:
            if devices is None or not is_abstract(a.sharding) or a.sharding.mesh.size != len(devices):
                return a.update(weak_type=False)
            return a.update(weak_type=False, sharding=on_devices(a.sharding, devices))

        return tree_map(lowered, self._traced.out_info)

    @property
    def in_avals(self):
        """The types of the arguments, as (args, kwargs)."""
        return self._traced.in_avals

    @property
    def args_info(self):
        """Type of each argument, and whether it is donated, as (args, kwargs)."""
        return self._traced._args_info()

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Numbers of the leaves that are donated."""
        return self._traced._donated

    @property
    def out_avals(self):
        """The types of the result, as a tree of avals."""
        return tree_unflatten(self.out_tree, self._traced._program.out_avals)


class Lowered(_Stage):
    """A function lowered to loops: `.as_text()`, `.cost_analysis()`, `.compile()`."""

    def __init__(self, traced: Traced):
        self._traced = traced
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self._program: Any = None

    def _compiled(self):
        if self._program is None:
            self._program = self._made(autotunes(self._traced._options))
        return self._program

    def _made(self, autotune: bool) -> Any:
        traced = self._traced
        closed, _ = discharged(traced._program)
        return hooks.program(closed, donated=traced.taken(), keep_unused=traced._keep_unused, autotune=autotune)

    def __reduce__(self):
        return Lowered, (self._traced.without_rules(),)

    @api_boundary
    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: 'jaxpr' (after the graph passes), 'hlo' (as it was traced, for tools that read HLO;
        nothing is compiled from it), 'partitioned' (one device's program, where arrays are cut over a mesh, and the
        bytes of each collective), 'fused' (a table of its loop nests), 'loops' (the default), 'nests' (after the loop
        passes), 'schedule' (the form of each nest, what it is expected to take, and what in its other forms), 'llvm'
        or 'asm'; ValueError for another name. With `debug_info`, the equations of a 'jaxpr' say from which lines
        and scopes they came; the other texts have no such remarks.
        """
        _check_dialect("as_text", dialect or "loops")
        if dialect == "jaxpr" and debug_info:
            return self._compiled().flat.pretty_print(source_info=True, name_stack=True)
        if dialect == "partitioned":
            return self._traced._partitioned_text()
        if dialect == "hlo":
            return self._traced._hlo().as_hlo_text()
        return self._compiled().as_text(dialect or "loops")

    @api_boundary
    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as an object: the 'jaxpr' after the graph passes, the loop IR function ('loops', the default),
        or one whose `as_hlo_text()` is the program as it was traced ('hlo').

        Texts for the other dialects of `as_text`; ValueError for another name.
        """
        _check_dialect("compiler_ir", dialect or "loops")
        if dialect == "hlo":
            return self._traced._hlo()
        program = self._compiled()
        if dialect == "jaxpr":
            return program.flat
        return program.lowered.function if dialect in (None, "loops") else program.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        """Counts over the program as it is written, operation by operation; nothing is compiled for them.

        'flops', 'transcendentals' (values of exp, sin, ..., which are not among the flops), and 'bytes accessed', the
        sum of 'bytes read' and 'bytes written'. What is left after fusion is in that of the compiled program.
        'collective bytes' that each device receives from others, where the program is partitioned over a mesh.
        """
        from pullback.compiler.graph.costs import cost_of  # few ask: the compiler is not imported for it
        from pullback.compiler.graph.simplify.dead_code import eliminate_dead_code

        closed, _ = discharged(self._traced._program)
        cost = cost_of(eliminate_dead_code(closed).jaxpr)
        found = {
            "flops": cost.flops,
            "transcendentals": cost.transcendentals,
            "bytes accessed": cost.bytes_read + cost.bytes_written,
            "bytes read": cost.bytes_read,
            "bytes written": cost.bytes_written,
        }
        return self._traced._costs(found)

    @api_boundary
    def compile(self, compiler_options: CompilerOptions | None = None, *, device_assignment=None) -> Compiled:
        """Native code, as a callable; device_assignment: the devices, in order, of meshes that have none.

        JaxRuntimeError for unknown options, RuntimeError for such meshes without device_assignment, ValueError for
        other devices than those that are known.
        """
        traced = self._assigned(device_assignment)
        check_options(self._traced._options)
        check_options(compiler_options)
        program = self._made(True) if autotunes(compiler_options) else self._compiled()
        program.executable  # noqa: B018  made now, not at the first call
        return Compiled(traced, program)

    def _assigned(self, devices: Sequence[Any] | None) -> Traced:
        traced = self._traced
        if traced._is_abstract:
            if devices is None:
                raise RuntimeError(
                    "compile: device_assignment cannot be `None` where arguments lie over an AbstractMesh; give the "
                    "devices that are to take its place, as a tuple"
                )
            return traced._on(devices)
        known = traced._devices or (default_device(),)
        if devices is not None and tuple(devices) != known:
            raise ValueError(
                f"compile: device_assignment has devices {[d.id for d in devices]}, but by where arguments and results "
                f"lie it is {[d.id for d in known]}; leave it out"
            )
        return traced


def _compiled(traced: Traced, stored: Any) -> Compiled:
    """A compiled function that was pickled: its code is used where the machine and the version are the same."""
    admit(stored)
    return Lowered(traced).compile()


class Compiled(_Stage):
    """A compiled function; called with arguments of exactly the types that it was compiled for."""

    def __init__(self, traced: Traced, program):
        self._traced, self._program = traced, program
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self._entry: Any = None
        self._function = _core.JitFunction(self._checked_call, self._checked_call)

    def __reduce__(self):
        return _compiled, (self._traced.without_rules(), self._program.stored())

    @api_boundary
    def as_text(self, dialect: str | None = None) -> str:
        """The program as text, as that of Lowered says; 'asm' is the default. ValueError for another name.

        Where arrays are cut over a mesh, 'hlo' is one device's program with its collectives, and the default.
        """
        dialect = dialect or ("asm" if self._traced._layout is None else "hlo")
        _check_dialect("as_text", dialect)
        if dialect == "partitioned":
            return self._traced._partitioned_text()
        if dialect == "hlo":
            return self._traced._hlo(of_one_device=True).as_hlo_text()
        return self._program.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        """The counts of Lowered's, but of what is left after fusion, with math functions among the flops; and
        'kernels' (loop nests and calls).
        """
        return self._traced._costs(self._program.cost_analysis())

    def memory_analysis(self):
        """Bytes of arguments, results, temporaries and code."""
        return self._program.memory_analysis()

    @api_boundary
    def runtime_executable(self):
        """There is no XLA executable; raises NotImplementedError that says so."""
        raise NotImplementedError(
            "runtime_executable: pullback has no XLA executable; use as_text(), cost_analysis() and "
            "memory_analysis(), or call the compiled function"
        )

    @property
    def out_info(self):
        """The types of the result, as a tree of ShapeDtypeStruct, with where they lie, and how."""
        traced = self._traced
        if any(isinstance(a, AbstractRef) for a in traced._program.in_avals):
            return super().out_info
        return tree_map(lambda a, f: a.update(weak_type=False, sharding=f), traced.out_info, self.output_formats)

    @property
    def input_shardings(self):
        """Where the arguments are taken to be, as (args, kwargs); None for those that the program does not take."""
        return tree_unflatten(self.in_tree, self._taken_inputs)

    @property
    def _taken_inputs(self) -> list[Any]:
        return [s if read else None for s, read in zip(self._inputs, self._traced.reads(), strict=True)]

    @functools.cached_property
    def _inputs(self) -> list[Any]:
        committed, said = zip(*self._traced._places) if self._traced._places else ((), ())
        if self._traced._layout is not None:
            cut = partitioned_arguments(self._traced._program, self._traced._layout)
            return [a or b or c for a, b, c in zip(committed, said, cut, strict=True)]
        with config.mesh_in_force(self._traced._mesh):
            return input_shardings(committed, default_device(), said)

    @property
    def output_shardings(self):
        """Where the results are."""
        places = [a or b for a, b in self._traced._places]
        if self._traced._layout is not None:
            return tree_unflatten(self.out_tree, partitioned_results(self._traced._program, self._traced._layout))
        with config.mesh_in_force(self._traced._mesh):
            found = output_shardings(self._traced._program, places, self._traced.fun_name, default_device())
        return tree_unflatten(self.out_tree, found)

    @property
    def input_formats(self):
        """How the arguments lie in memory, and where, as (args, kwargs)."""
        traced = self._traced
        return self._formats(self.in_tree, traced._program.in_avals, self._taken_inputs, traced._layouts[0])

    @property
    def output_formats(self):
        """How the results lie in memory, and where."""
        traced = self._traced
        return self._formats(
            self.out_tree, traced._program.out_avals, tree_leaves(self.output_shardings), traced._layouts[1]
        )

    def _formats(self, tree, avals, places, layouts):
        found = [
            Format() if s is None else Format(said.in_full() if isinstance(said, Layout) else rows(a.ndim), s)
            for a, s, said in zip(avals, places, layouts)
        ]
        return tree_unflatten(tree, found)

    @api_boundary
    def call(self, *args, **kwargs):
        """The same as calling the object."""
        return self(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        try:
            mesh = self._traced._mesh
            if mesh is None or mesh is current_mesh():
                return self._function(*args, **kwargs)
            with config.mesh_in_force(mesh):
                return self._function(*args, **kwargs)
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    def _checked_call(self, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        """(result, what the call cache in C shall remember for arguments of these types)."""
        leaves, tree = tree_flatten((args, kwargs))
        for leaf in leaves:
            if isinstance(leaf, Tracer) and leaf.interpreter is not eval_interpreter():
                raise TypeError(
                    f"Cannot apply JAX transformations to {self._traced.fun_name} once it is compiled, but it was "
                    f"given a {type(leaf)}: {leaf.describe()}; call the jitted function itself"
                )
            if getattr(leaf, "is_only_a_type", False):
                raise TypeError(f"a {type(leaf)} is not a valid JAX type to run with: it has no value")
        names = self._traced.arg_names
        check_tree(self.in_tree, tree, bool(self._traced.static_args))
        check_types(names, self._traced._program.in_avals, leaves)
        given, leaves = leaves, values_of(leaves)
        check_shardings(names, self._taken_inputs, leaves)
        check_layouts(names, self._traced._layouts[0], leaves)
        if any(isinstance(leaf, Tracer) for leaf in leaves):  # arrays of several processes
            traced = self._traced
            outs = hooks.run_between(traced._program, leaves, traced.taken(), traced.fun_name)
            return tree_unflatten(self.out_tree, outs), None
        if self._entry is None:
            traced, kept = self._traced, self._program.kept
            if traced._layout is not None:
                run, kept = compile_partitioned(traced._program, traced._layout, traced.fun_name, traced.taken())
            else:
                run = held_to(self._program.executable, [a or b for a, b in traced._places], kept)
            run = laid_out(run, traced._layouts[1])
            self._entry = _core.CacheEntry(run, self.out_tree, kept)
        kept, arrays = self._entry.kept, [hooks.asarray(leaf) for leaf in leaves]
        outs = self._entry.run(arrays if kept is None else [arrays[k] for k in kept])
        if any([isinstance(leaf, Reference) for leaf in given]):
            count = len(self._traced._program.out_avals)
            note(given, discharged(self._traced._program)[1], outs[count:])
            return tree_unflatten(self.out_tree, outs[:count]), None
        checked = any(isinstance(layout, Layout) for layout in self._traced._layouts[0])  # of which C knows nothing
        return tree_unflatten(self.out_tree, outs), None if checked else self._entry
