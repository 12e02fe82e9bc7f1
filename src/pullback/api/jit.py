"""jit: functions that are traced once per types of their arguments, compiled, and found again in C.

A call goes to `_core.JitFunction`, which looks its arguments' types up and runs the program. What it does not know
comes to `Jit.miss`: new types, tracers, an active transformation, wrong arguments.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.api import donation
from pullback.api._places import (
    Wanted,
    check_arguments,
    check_devices_said,
    check_layouts,
    compile_partitioned,
    constrained,
    held_to,
    layout_of_call,
    layout_said,
    places_of_leaves,
    tell_inspectors,
)
from pullback.api._shared_caches import shared_caches
from pullback.api.cache_misses import explain
from pullback.api.compiler_options import autotunes, check_options
from pullback.api.dumps import dump
from pullback.api.shapes import ShapeDtypeStruct, struct_of_type
from pullback.api.stages import Lowered, Traced
from pullback.core import (
    ClosedJaxpr,
    DebugInfo,
    current_interpreter,
    eval_interpreter,
    extended,
    high,
    hoist_tracers,
    hooks,
    trace,
)
from pullback.core.avals import ShapedArray, placed, type_of_operand
from pullback.core.explain import type_shown
from pullback.core.references import Reference, check_apart
from pullback.core.source import Origin, at_any_callers, located, named_at, result_names
from pullback.core.staging import StagingInterpreter, raise_leak, raise_no_execution
from pullback.core.tracer import Tracer
from pullback.runtime.arrays.devices import Device
from pullback.runtime.arrays.layouts import laid_out
from pullback.runtime.arrays.placement import watch_moves
from pullback.runtime.programs import spans
from pullback.sharding import Mesh
from pullback.sharding._current import mesh_in_force
from pullback.transforms.call import jit_p, places_said
from pullback.transforms.discharge import discharged, note, values_of
from pullback.util import config
from pullback.util.logs import STAGES, logs_compilations, warn
from pullback.util.memory import forgetful, make_room
from pullback.util.monitoring import record_event, record_event_duration_secs
from pullback.util.pytree import Unspecified, tree_flatten, tree_unflatten
from pullback.util.room import with_room
from pullback.util.static import check_flags
from pullback.util.switches import switches
from pullback.util.tracebacks import api_boundary
from pullback.util.warning import warn_user

_trace = with_room(trace)
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
J = TypeVar("J", bound="Jit")
_unspecified: Any = Unspecified()


def _is_traced(x: Any) -> bool:
    """Whether an argument is a traced value, or an array or keys of several processes."""
    return isinstance(getattr(x, "_base_array", x), Tracer)


class Jitted(Protocol, Generic[P, R]):
    """What `jit` gives, for those who read types: called as the function is, with its result."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it."""

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced:
        """The function traced for arguments of these types."""

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """The same, lowered."""

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The types of the result."""

    def clear_cache(self) -> None:
        """Forget what was compiled."""


@overload
def jit(fun: Callable[P, R], /, **options: Any) -> Jitted[P, R]: ...
@overload
def jit(**options: Any) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(  # type: ignore[misc]
    fun: Callable = _unspecified,
    /,
    *,
    in_shardings=None,
    out_shardings=None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused: bool = False,
    device=None,
    backend=None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile `fun` with one trace for each new combination of argument structure, shapes, dtypes and static values.

    static_argnums / static_argnames: arguments that are compile-time constants (hashable; ValueError otherwise).
    donate_*: arguments whose memory the results may take over; they can't be used afterwards.
    in_shardings, out_shardings: Shardings, or PartitionSpecs over the mesh in force, or tree prefixes of them, for the
    positional arguments that are not static and the result; None: as they come. device, backend: where all is to lie.
    compiler_options: {"autotune": True} measures forms of the program's loop nests once, on made-up arguments, and
        keeps the answer on disk; options of XLA change nothing; others are a JaxRuntimeError.
    Without `fun`, a decorator. The function must be pure: Python side effects happen while it is traced only. TypeError
    for arguments that are neither arrays nor trees of arrays; ValueError for arguments on incompatible devices.
    """
    options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "inline": inline,
    }
    check_flags("jit", keep_unused=keep_unused, inline=inline)
    places = {"in_shardings": in_shardings, "out_shardings": out_shardings, "device": device, "backend": backend}
    if fun is _unspecified:
        Wanted(**places)  # says what is wrong
        return functools.partial(jit, **options, **places, compiler_options=compiler_options)
    return jitted(Jit, fun, options, places, compiler_options).function


def jitted(kind: type[J], fun: Callable, options: dict[str, Any], places: dict[str, Any], compiler_options) -> J:
    """`fun` jitted as one of a kind, with the arguments of `jit`; users call its `function`."""
    wanted = Wanted(**places, api=kind.api)
    arguments.check_callable(kind.api, fun)
    made = kind(fun, **options, wanted=wanted, compiler_options=compiler_options)
    if wanted.device is not None or wanted.backend is not None:
        warn_user(
            "backend and device argument on jit is deprecated. Put the arguments on the device, with jax.device_put(x, "
            "device), and the result is there, too.",
            DeprecationWarning,
        )
    made.asked = {**options, **places, "compiler_options": compiler_options}
    return made


def _jit_again(fun: Callable, asked: dict[str, Any]) -> Any:
    return jit(fun, **asked)


class Jit:
    """One jitted function: its options, its traces, and the C object that users call."""

    api = "jit"  # what users called
    again: Any = staticmethod(_jit_again)  # how it is made from a pickle

    def __init__(
        self,
        fun,
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        inline,
        wanted,
        compiler_options,
    ):
        self.fun = fun
        self.wanted = wanted
        self.compiler_options = compiler_options
        self.name = arguments.function_name(fun)
        self.static_nums, self.static_names = arguments.resolve_argnums(
            "jit", fun, "static", static_argnums, static_argnames
        )
        self.donate_nums, self.donate_names = arguments.resolve_argnums(
            "jit", fun, "donate", donate_argnums, donate_argnames
        )
        if set(self.static_nums) & set(self.donate_nums):
            raise ValueError(
                f"jit: arguments {sorted(set(self.static_nums) & set(self.donate_nums))} of {self.name} are static and "
                "donated, which cannot intersect; take them out of static_argnums or donate_argnums"
            )
        self.keep_unused = keep_unused
        self.inline = inline
        tuned = isinstance(compiler_options, dict) and compiler_options.get("autotune") is True
        # What is traced does not hang on the other options: a key says which arguments are static.
        self.traces = shared_caches(fun, "traces", (wanted,))
        options = (self.static_nums, self.static_names, self.donate_nums, self.donate_names, keep_unused, inline)
        self.programs = shared_caches(fun, "programs", (*options, wanted, tuned))
        self.asked: dict[str, Any] = {}  # of `jit`
        most = max(1, switches.cache_calls)
        function = _core.JitFunction(fun, self.miss, self.static_nums, self.static_names, most)
        if not hasattr(function, "__name__"):  # that of a partial is its function's
            function.__name__ = arguments.function_name(fun)
        function._reduce = self.reduce
        function.lower = self.lower
        function.trace = self.trace
        function.eval_shape = self.eval_shape
        function._out_shardings = wanted.outs
        function.clear_cache = self.clear_cache
        function._cache_size = lambda: self.function.cache_size()
        self.function = function
        forgetful(self)

    def reduce(self) -> Any:
        """How it is pickled: by name where that is its name, else as the function and what was asked for it."""
        module, name = getattr(self.fun, "__module__", None), getattr(self.fun, "__qualname__", "")
        found: Any = sys.modules.get(module or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        # What cloudpickle finds in __main__ is to go by value: the name means something else where it is read.
        by_value = module == "__main__" and "cloudpickle" in str(sys._getframe(1).f_globals.get("__name__"))
        return name if found is self.function and not by_value else (self.again, (self.fun, self.asked))

    # calls

    @api_boundary
    def miss(self, args: tuple, kwargs: dict) -> tuple[Any, _core.CacheEntry | None]:
        """The call in full: (result, what C shall remember for arguments of these types)."""
        if config.config.jax_disable_jit:
            return self.fun(*args, **kwargs), None
        try:
            leaves, in_tree, avals, statics = self.flatten(args, kwargs)
        except _HighArgumentError:
            return high.call(self.function_on_arrays, args, kwargs), None
        closed, consts, out_tree = self.traced(in_tree, avals, statics, args, kwargs)
        refers = any([isinstance(x, Reference) for x in leaves])
        if refers:
            self.check_references(leaves, consts, args, kwargs, statics)
        traced = refers or current_interpreter() is not eval_interpreter() or any(map(_is_traced, leaves))
        if self.compiler_options is not None:
            self.check_options()
        if (refers or consts) and self.runs_on_cells(leaves, consts):
            return tree_unflatten(out_tree, run_on_cells(closed, [*consts, *leaves])), None
        if traced or consts:
            if self.inline and not closed.consts:
                outs = closed(*consts, *leaves)
            else:
                outs = jit_p.bind(
                    *consts,
                    *leaves,
                    jaxpr=closed,
                    name=self.name,
                    inline=self.inline,
                    donated_invars=self.donated_flags(args, kwargs, len(consts), len(leaves)),
                    keep_unused=self.keep_unused,
                    compiler_options_kvs=(),
                    **self.places_said(args, kwargs, statics, consts, closed, out_tree),
                )
            return tree_unflatten(out_tree, outs), None
        donated = self.donated(args, kwargs)
        wanted = None if self.wanted.is_open else self.places_of_arguments(args, kwargs, statics)
        layouts = None
        if wanted is not None:
            check_devices_said(self.name, wanted)
            check_arguments(leaves, wanted)
            layouts = self.layouts(args, kwargs, statics, leaves, closed.out_avals, out_tree)
        watched = None
        if config.config.jax_debug_key_reuse and extended.reuse is not None:
            watched = extended.reuse.called(self.name, closed, leaves)
        if config.config.jax_no_execution:
            raise_no_execution(f"jit({self.name})")
        entry, program = self.program(closed, donated, out_tree, wanted, leaves)
        if layouts is not None:
            program = laid_out(program, layouts[1])
        arrays = [hooks.asarray(leaf) for leaf in leaves]
        kept = [arrays[i] for i in entry.kept] if entry.kept is not None else arrays
        if hooks.transfers is not None:
            watch_moves(arrays, wanted)
            with hooks.transfers.unwatched():
                outs = program(kept)
        else:
            outs = program(kept)
        if watched is not None:  # C is not to remember the call
            extended.reuse.note_results(outs, watched)
            return tree_unflatten(out_tree, outs), None
        return tree_unflatten(out_tree, outs), entry if layouts is None else None  # C knows nothing of layouts

    def layouts(self, args, kwargs, statics, leaves, outs, out_tree) -> tuple[list[Any], list[Any]] | None:
        """The layouts of arguments and results, as in_shardings and out_shardings say; None where they say none.

        ValueError for arguments that have others.
        """
        if self.wanted.formats is None:
            return None
        numbers = [w for w, _ in statics if isinstance(w, int)]
        dynamic = tuple(a for i, a in enumerate(args) if i not in numbers)
        names = functools.partial(self.leaf_paths, args, kwargs, statics)
        ins = self.wanted.layouts_of_arguments(dynamic, names) if not kwargs else [None] * len(leaves)
        check_layouts(leaves, ins)
        return ins, self.wanted.layouts_of_results(outs, out_tree)

    def runs_on_cells(self, leaves, consts) -> bool:
        """Whether a call with references is to run now, with nothing else to heed."""
        return (
            current_interpreter() is eval_interpreter()
            and not any([isinstance(x, Tracer) for x in (*leaves, *consts)])
            and self.wanted.is_open
            and not self.compiler_options
        )

    def check_references(self, leaves, consts, args, kwargs, statics) -> None:
        """ValueError if one reference is two of the arguments, or closed over, too."""
        check_apart(leaves, consts, located(self.fun), lambda: self.leaf_paths(args, kwargs, statics))

    def leaf_paths(self, args, kwargs, statics) -> list[str]:
        """What errors call the leaves of the arguments that are not static."""
        fixed = [w for w, _ in statics]
        dynamic = {k: v for k, v in kwargs.items() if k not in fixed}
        return arguments.leaf_paths(self.fun, args, dynamic, [w for w in fixed if isinstance(w, int)])

    @functools.cached_property
    def function_on_arrays(self) -> Any:
        """The jitted function on arguments whose objects of types above arrays are lowered."""
        return jit(
            high.through(self.fun),
            static_argnums=self.static_nums,
            static_argnames=self.static_names,
            donate_argnums=self.donate_nums,
            donate_argnames=self.donate_names,
            keep_unused=self.keep_unused,
            inline=self.inline,
            compiler_options=self.compiler_options,
            **self.wanted.of_pair(),
        )

    def check_options(self) -> None:
        """JaxRuntimeError for unknown compiler options; ValueError for any inside of another jitted function."""
        if isinstance(current_interpreter(), StagingInterpreter):
            raise ValueError(
                f"jit: {self.name} has compiler_options={self.compiler_options}, but is called inside of another "
                "jitted function, which is compiled as one program; give the options to the top-level jit"
            )
        check_options(self.compiler_options)

    def places_of_arguments(self, args, kwargs, statics) -> list[Any]:
        """A sharding or None for each leaf, as in_shardings, device or backend say."""
        fixed = [w for w, _ in statics]
        dynamic = {k: v for k, v in kwargs.items() if k not in fixed}
        numbers = [w for w in fixed if isinstance(w, int)]
        if self.wanted.ins is not None and kwargs:
            raise ValueError(
                "jit does not support kwargs beside in_shardings, which go by position; give the arguments so"
            )
        return self.wanted.arguments(
            tuple(a for i, a in enumerate(args) if i not in numbers),
            dynamic,
            lambda: self.leaf_paths(args, kwargs, statics),
        )

    def places_said(self, args, kwargs, statics, consts, closed, out_tree) -> dict[str, Any]:
        """Where arguments and results are to lie, as parameters of a call in a program."""
        ins, outs = len(closed.in_avals), len(closed.out_avals)
        if self.wanted.is_open:
            return places_said((None,) * ins, (None,) * outs, mesh_in_force())
        wanted = self.places_of_arguments(args, kwargs, statics)
        return places_said(
            [*[None] * len(consts), *wanted], self.wanted.results(closed.out_avals, out_tree), mesh_in_force()
        )

    def flatten(self, args, kwargs, ahead: bool = False):
        """(leaves, tree, avals, static values) of a call, or ahead of one: then types stand for values; errors name
        the argument.
        """
        statics: list[tuple[Any, Any]] = []  # (position or name, value)
        for n in self.static_nums:
            if -len(args) <= n < len(args):
                statics.append((n % len(args), self.hashable(args[n], f"at position {n}")))
        for name in self.static_names:
            if name in kwargs:
                statics.append((name, self.hashable(kwargs[name], f"'{name}'")))
        fixed = {where for where, _ in statics}
        dynamic_args = tuple(a for i, a in enumerate(args) if i not in fixed)
        dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in fixed}
        leaves, in_tree = tree_flatten((dynamic_args, dynamic_kwargs))
        if ahead:
            leaves = [struct_of_type(x) if type(x) is ShapedArray else x for x in leaves]
        avals = []
        for i, leaf in enumerate(leaves):
            if high.is_high(leaf):
                raise _HighArgumentError(
                    f"{self.name}: an argument is an object of {type(leaf).__name__}, with which functions are called, "
                    "but not traced or lowered ahead of time"
                )
            try:
                if type(leaf) is ShapeDtypeStruct and not ahead:
                    raise TypeError
                aval = getattr(leaf, "aval", None)
                aval = type_of_operand(leaf) if aval is None else aval
            except TypeError:
                raise arguments.no_array(leaf, self.name, self.leaf_paths(args, kwargs, statics)[i]) from None
            place = getattr(getattr(leaf, "_base_array", leaf), "_device", None)
            avals.append(aval if place is None or type(place) is Device else placed(aval, place))
        return leaves, in_tree, tuple(avals), tuple(statics)

    def hashable(self, value, where: str):
        """The static value; ValueError if it has no hash."""
        try:
            hash(value)
        except TypeError:
            raise ValueError(
                f"Non-hashable static arguments are used in a jit function: argument {where} of {self.name} is of type "
                f"{type_shown(value)}, which is not hashable: {str(value)[:80]}. As it is static, a new value means a "
                "new compilation, so it must be hashable and have __eq__; make it a tuple, or do not mark it static."
            ) from None
        return value

    def traced(self, in_tree, avals, statics, args, kwargs):
        """(closed jaxpr, closed-over tracers, out_tree), from the cache or by running the function on tracers."""
        key = (in_tree, avals, tuple((w, type(v), _core.static_form(v)) for w, v in statics), config.epoch())
        found = self.traces.get(key)
        if found is not None:
            return found
        fixed = dict(statics)
        n_args = len(args)
        out_tree: list[Any] = []
        wanted = None if self.wanted.is_open else self.places_of_arguments(args, kwargs, statics)

        def flat(*leaves):
            if wanted is not None:
                leaves = tuple(constrained(leaves, wanted, "in_shardings"))
            dynamic_args, dynamic_kwargs = tree_unflatten(in_tree, leaves)
            values = iter(dynamic_args)
            full = [fixed[i] if i in fixed else next(values) for i in range(n_args)]
            names = {k: v for k, v in fixed.items() if isinstance(k, str)}
            out_leaves, tree = arguments.flatten_result(self.fun(*full, **dynamic_kwargs, **names), self.fun, "jit")
            out_tree[:] = [tree]
            if wanted is not None:
                out_leaves = constrained(out_leaves, self.wanted.results(out_leaves, tree), "out_shardings")
            return out_leaves

        paths = functools.partial(self.leaf_paths, args, kwargs, statics)
        arguments.check_tracing(self.fun)
        if config.config.jax_explain_cache_misses:
            explain(self.name, self.fun, key, self.traces, paths)
        names = arguments.lasting_names(self.fun, in_tree, n_args, list(fixed))
        info = DebugInfo("jit", named_at(self.name, self.fun), names, result_names(out_tree))
        started = time.perf_counter()
        with spans.span(f"trace {self.name}", "compile"), at_any_callers(self.fun):
            closed = _trace(flat, avals, info, Origin(self.fun, "jit", paths))
        took = time.perf_counter() - started
        record_event_duration_secs("/jax/core/compile/jaxpr_trace_duration", took, fun_name=self.name)
        if logs_compilations():
            warn(STAGES, f"Finished tracing {self.name} for jit in {took:.9f} sec")
        dump(self.name, self.fun, closed)
        closed, consts = hoist_tracers(closed)
        found = (closed, consts, out_tree[0])
        if not any([isinstance(c, Tracer) for c in consts]):  # closed-over tracers belong to one call
            make_room(self.traces, max(1, switches.cache_calls))
            self.traces[key] = found
        return found

    def donated(self, args, kwargs) -> tuple[int, ...]:
        """Numbers of the leaves that are donated."""
        if not self.donate_nums and not self.donate_names:
            return ()
        fixed = {n % len(args) for n in self.static_nums if -len(args) <= n < len(args)}
        numbers: list[int] = []
        position = 0
        for i, arg in enumerate(args):
            if i in fixed:
                continue
            count = len(tree_flatten(arg)[0])
            if i in self.donate_nums:
                numbers.extend(range(position, position + count))
            position += count
        for name in sorted(k for k in kwargs if k not in self.static_names):
            count = len(tree_flatten(kwargs[name])[0])
            if name in self.donate_names:
                numbers.extend(range(position, position + count))
            position += count
        return tuple(numbers)

    def donated_flags(self, args, kwargs, n_consts: int, n_leaves: int) -> tuple[bool, ...]:
        """For each operand of the call whether it is donated."""
        numbers = self.donated(args, kwargs)
        if not numbers:
            return (False,) * (n_consts + n_leaves)
        return (False,) * n_consts + tuple(i in numbers for i in range(n_leaves))

    def program(self, closed: ClosedJaxpr, donated: tuple[int, ...], out_tree, wanted, leaves):
        """(cache entry, callable on the kept arrays) of a traced function."""
        layout = layout_of_call(closed, leaves, wanted, self.keep_unused)
        key = (closed, donated, out_tree, layout, spans.is_recording())
        found = self.programs.get(key)
        if found is None:
            record_event("/pullback/jit/program_wanted", fun_name=self.name)
            for const in closed.consts:
                if isinstance(const, Tracer):
                    raise_leak(const)
            tell_inspectors(closed, layout, leaves)
            autotune = autotunes(self.compiler_options)
            donated = donation.usable(closed, donated, self.keep_unused)
            if layout is not None:
                run, kept = compile_partitioned(closed, layout, self.name, donated)
            else:
                run, kept = hooks.compile(closed, donated=donated, keep_unused=self.keep_unused, autotune=autotune)
                if wanted is not None:
                    run = held_to(run, wanted, kept)
            entry = _core.CacheEntry(run, out_tree, kept)
            make_room(self.programs, max(1, switches.cache_calls))
            found = self.programs[key] = (entry, run)
        return found

    # ahead of time

    @api_boundary
    def trace(self, *args, **kwargs) -> Traced:
        """The function traced for arguments of these types (arrays, ShapeDtypeStructs or ShapedArrays)."""
        leaves, in_tree, avals, statics = self.flatten(args, kwargs, ahead=True)
        closed, consts, out_tree = self.traced(in_tree, avals, statics, args, kwargs)
        if any([isinstance(c, Reference) for c in consts]):
            raise TypeError(
                f"{self.name}: can't be traced ahead of time while it closes over a Ref; make it an argument"
            )
        if consts:
            raise TypeError(
                f"{self.name}: can't be traced ahead of time while it closes over values of an enclosing transformation"
            )
        fixed = {w for w, _ in statics}
        names = self.leaf_paths(args, kwargs, statics)
        donated = self.donated(args, kwargs)
        said = self.places_of_arguments(args, kwargs, statics)
        check_arguments(leaves, said)
        places = list(zip(places_of_leaves(leaves), said))
        layouts = self.layouts(args, kwargs, statics, leaves, closed.out_avals, out_tree)
        ins, outs = layouts or ([None] * len(leaves), [None] * len(closed.out_avals))
        ins = [layout or layout_said(x) for layout, x in zip(ins, leaves, strict=True)]
        return Traced(
            closed, in_tree, out_tree, self.name, donated, self.keep_unused, fixed, names, places,
            self.compiler_options, (ins, outs),
        )  # fmt: skip

    @api_boundary
    def lower(self, *args, **kwargs) -> Lowered:
        """The function traced and optimized for arguments of these types, ready to be compiled."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args, **kwargs):
        """The types of the result, without running anything."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget all traces and programs."""
        self.traces.clear()
        self.programs.clear()
        self.function.clear()


def run_on_cells(closed: ClosedJaxpr, args: Sequence[Any]) -> Sequence[Any]:
    """The results of a program on references and arrays, as a call that C remembers of one on their values."""
    of_values, written = discharged(closed)
    run = closed.cached("run_on_cells", lambda: jit(lambda *values: of_values(*values)))
    outs = run(*values_of(args))
    count = len(outs) - len(written)
    note(args, written, outs[count:])
    return outs[:count]


class _HighArgumentError(TypeError):
    """An argument is an object of a type above arrays."""


def _tell_context() -> None:
    """Keep the call caches' view of the configuration up to date."""
    process_wide, own = config.context_tokens()
    _core.set_trace_context_token((*process_wide, spans.is_recording()))
    _core.set_thread_context_token(own)
    if hooks.transfers is None and any(map(config.value_of, config.transfer_guard.parts)):
        from pullback.core import transfers  # which few processes guard

        hooks.transfers = transfers
    mesh = config.mesh_in_force.value
    _core.set_has_mesh(isinstance(mesh, Mesh) and not mesh.empty)


config.add_listener(_tell_context)
spans.add_listener(_tell_context)
_tell_context()
