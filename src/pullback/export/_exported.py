"""Functions that are traced once: `export(jit(f))(x)` is called, differentiated and stored without f.

An exported function is its program. Its derivative is a program, too: that of the pullback, made when it is asked for,
or stored beside it. Where it was exported for symbolic shapes, each call finds the values of their variables from its
arguments' shapes, and runs the program that has these in their place; programs are kept by values.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import api
from pullback.api import stages
from pullback.api.shapes import said_of_results
from pullback.compiler.graph.simplify.inline import inline, with_barriers
from pullback.core import ClosedJaxpr, ShapedArray, eval_jaxpr, tangent_aval, typeof
from pullback.core.dimensions import is_symbolic
from pullback.core.explain import shown
from pullback.core.specialize import specialize
from pullback.lax.collectives.sharding import put
from pullback.lax.records.operands import as_array
from pullback.transforms.discharge import discharged
from pullback.transforms.partial_eval import dce_jaxpr, used_inputs
from pullback.util import dtypes
from pullback.util.pytree import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from pullback.util.record import frozen_record
from pullback.util.tracebacks import api_boundary

from . import _format, _meshes
from ._solving import Solver

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10
_PLATFORMS = ("tpu", "cpu", "cuda", "rocm")


@frozen_record
class DisabledSafetyCheck:
    """A check of exported functions that is left out."""

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """That the function was exported for the platform that it runs on."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """That calls of this target are stable; ours have none."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the target, None for other checks."""
        return self._impl[len("custom_call:") :] if self._impl.startswith("custom_call:") else None

    def __repr__(self) -> str:
        return self._impl


@frozen_record
class Exported:
    """A function that was traced for arguments of some types. `call` runs it, `serialize` gives it as bytes.

    in_avals and out_avals: the types of the leaves of arguments and results, whose structures are in_tree, of
    (args, kwargs), and out_tree. platforms: the names of platforms for which it was exported.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    calling_convention_version: int
    _jaxpr: ClosedJaxpr = dataclasses.field(repr=False)
    _get_vjp: Callable[[Exported], Exported] | None = dataclasses.field(repr=False)
    _in_shardings: tuple[Any, ...] | None = dataclasses.field(default=None, repr=False)  # over meshes without devices
    _out_shardings: tuple[Any, ...] | None = dataclasses.field(default=None, repr=False)
    _keep_unused: bool = dataclasses.field(default=False, repr=False)

    _in_named_shardings = property(
        lambda self: self._in_shardings or (None,) * len(self.in_avals),
        doc="For each argument how it lies over a mesh without devices; None: it does not say.",
    )
    _out_named_shardings = property(
        lambda self: self._out_shardings or (None,) * len(self.out_avals),
        doc="For each result how it lies over a mesh without devices; None: it does not say.",
    )
    in_shardings_hlo = property(
        lambda self: (None,) * len(self.in_avals), doc="Nothing: meshes say how arguments lie, see in_shardings_jax."
    )
    out_shardings_hlo = property(
        lambda self: (None,) * len(self.out_avals), doc="Nothing: meshes say how results lie, see out_shardings_jax."
    )
    ordered_effects = property(lambda self: (), doc="Effects in order: none can be exported.")
    unordered_effects = property(lambda self: (), doc="Effects without order: none can be exported.")
    uses_global_constants = property(
        lambda self: any(is_symbolic(d) for aval in self.in_avals for d in aval.shape),
        doc="Whether what it computes depends on symbolic dimensions.",
    )

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """The numbers of the arguments that the program reads, or of all if it was jitted with `keep_unused`."""
        read = used_inputs(dce_jaxpr(self._jaxpr.jaxpr))
        return tuple(i for i, is_read in enumerate(read) if is_read or self._keep_unused)

    mlir_module_serialized = property(
        lambda self: _format.write_program(self._jaxpr, self.fun_name), doc="The program as bytes, of our own format."
    )

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    __repr__ = __str__

    def mlir_module(self) -> str:
        """Not there: programs do not go through MLIR. Raises NotImplementedError."""
        raise NotImplementedError("Exported.mlir_module: pullback does not compile through MLIR or StableHLO")

    def in_shardings_jax(self, mesh: Any) -> Sequence[Any]:
        """How each argument lies over this mesh; None: it does not say. ValueError if its axes have other sizes."""
        return tuple(_meshes.over(s, mesh) for s in self._in_named_shardings)

    def out_shardings_jax(self, mesh: Any) -> Sequence[Any]:
        """How each result lies over this mesh; None: it does not say. ValueError if its axes have other sizes."""
        return tuple(_meshes.over(s, mesh) for s in self._out_named_shardings)

    def has_vjp(self) -> bool:
        """Whether the function can be differentiated."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The function from arguments and cotangents of the results, all flat, to cotangents of the arguments.

        ValueError if the function was stored without its derivative.
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        return self._get_vjp(self)

    @api_boundary
    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, with its derivatives up to an order. ValueError for trees of unregistered nodes."""
        return bytearray(_format.MAGIC + _format.write(self._fields(vjp_order), self.fun_name))

    def _fields(self, vjp_order: int) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in _PLAIN}
        checks = tuple(map(str, self.disabled_safety_checks))
        trees = {"in_tree": _format.write_tree(self.in_tree), "out_tree": _format.write_tree(self.out_tree)}
        vjp = self.vjp()._fields(vjp_order - 1) if vjp_order > 0 else None
        return {**fields, **trees, "disabled_safety_checks": checks, "program": self._jaxpr, "vjp": vjp}

    @classmethod
    def _of_fields(cls, fields: dict[str, Any]) -> Exported:
        vjp = fields.pop("vjp")
        found = None if vjp is None else cls._of_fields(vjp)
        checks = tuple(map(DisabledSafetyCheck, fields.pop("disabled_safety_checks")))
        return cls(
            in_tree=_format.read_tree(fields.pop("in_tree")),
            out_tree=_format.read_tree(fields.pop("out_tree")),
            disabled_safety_checks=checks,
            _jaxpr=fields.pop("program"),
            _get_vjp=None if found is None else lambda _: found,
            **fields,
        )

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function for arguments of the types that it was exported for.

        Differentiable in reverse where `has_vjp`. ValueError for arguments of another structure, shape or dtype, if it
        was exported for other platforms, or for several devices and there are not as many.
        """
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(
                f"call of the exported '{self.fun_name}': its arguments have the structure {tree}, but it takes "
                f"{self.in_tree}"
            )
        unchecked = DisabledSafetyCheck.platform() in self.disabled_safety_checks
        if "cpu" not in self.platforms and not unchecked:
            raise ValueError(
                f"call of the exported '{self.fun_name}': it is for {self.platforms}, and this computer has 'cpu'; "
                "export it anew with platforms=['cpu', ...]"
            )
        types = [typeof(leaf) for leaf in leaves]
        for have, aval, where in zip(types, self.in_avals, _leaf_names(self.in_tree), strict=True):
            if have.ndim != aval.ndim:
                raise ValueError(
                    f"Rank mismatch for {where}: it has shape {have.shape}, where {aval.shape} was exported"
                )
            if have.dtype != aval.dtype:
                raise ValueError(f"Dtype mismatch for {where}: it is of {have.dtype}, where {aval.dtype} was exported")
            for axis, (size, expected) in enumerate(zip(have.shape, aval.shape)):
                if size != expected and not is_symbolic(expected):
                    place = (
                        f".shape[{axis}], a size that is always {expected}" if any(map(is_symbolic, aval.shape)) else ""
                    )
                    raise ValueError(
                        f"Shape mismatch for {where}{place}: it has shape {have.shape}, where {aval.shape} was exported"
                    )
        values = self._solver.solve([have.shape for have in types])
        several = self.nr_devices > 1
        devices = _meshes.devices_for(self.fun_name, self.nr_devices, leaves) if several else None
        ins = [_meshes.on_devices(s, devices) for s in self._in_named_shardings]
        leaves = [x if s is None else put(as_array(x, self.fun_name), s) for x, s in zip(leaves, ins, strict=True)]
        return tree_unflatten(self.out_tree, self._flat(values, devices)(*leaves))

    @functools.cached_property
    def _solver(self) -> Solver:
        return Solver(self.in_avals, _leaf_names(self.in_tree))

    @functools.cached_property
    def _functions(self) -> dict[tuple[Any, ...], Callable[..., list[Any]]]:
        return {}

    def _flat(self, values: dict[str, Any], devices: Any) -> Callable[..., list[Any]]:
        """The function of leaves for these values of the dimension variables, on these devices: a program for each."""
        key = *values.values(), devices
        found = self._functions.get(key)
        if found is None:
            jaxpr = specialize(self._jaxpr, values) if values else self._jaxpr
            found = self._functions[key] = self._function_of(_meshes.on_devices(jaxpr, devices))
        return found

    def _function_of(self, jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
        def run(*leaves: Any) -> list[Any]:
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *leaves)

        def fwd(*leaves: Any) -> Any:
            return f(*leaves), leaves

        def bwd(leaves: Any, bars: Any) -> Any:
            found = self.vjp().call(*leaves, *bars)
            return tuple(None if typeof(bar).dtype == dtypes.float0 else bar for bar in found)

        f = api.custom_vjp(api.jit(run))
        f.defvjp(fwd, bwd)
        return f


def _check_scopes(name: str, arguments: Any) -> None:
    """ValueError unless all symbolic dimensions of the arguments are of one scope."""
    sizes = [d for leaf in tree_flatten(arguments)[0] for d in getattr(leaf, "shape", ()) if is_symbolic(d)]
    for d in sizes[1:]:
        if d.scope is not sizes[0].scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes when exporting {name}: '{sizes[0]}' is of the scope "
                f"{sizes[0].scope}, and '{d}' of the scope {d.scope}. Make the shapes with one `scope=`, or together "
                "by `symbolic_args_specs`."
            )


def _leaf_names(in_tree: PyTreeDef) -> list[str]:
    """What messages call the arguments: args[0]['x'], kwargs['y']."""
    tree = tree_unflatten(in_tree, range(in_tree.num_leaves))
    paths = [keystr(path) for path, _ in tree_flatten_with_path(tree)[0]]
    return [("args" if path.startswith("[0]") else "kwargs") + path[3:] for path in paths]


_PLAIN = (
    *("fun_name", "in_avals", "out_avals", "nr_devices", "platforms", "calling_convention_version"),
    *("_in_shardings", "_out_shardings", "_keep_unused"),
)


def default_export_platform() -> str:
    """The platform that functions are exported for where none is named."""
    return "cpu"


def export(
    fun_jit: stages.Wrapped,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """A function of arguments, or of their ShapeDtypeStructs, that gives `fun_jit` exported for their types.

    fun_jit: what `jit` gives (ValueError for others). platforms: of tpu, cpu, cuda and rocm; it runs here where cpu is
    among them. NotImplementedError for functions with callbacks or other effects, and for lowering rules.

    >>> f = export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((), jnp.float32))
    >>> float(deserialize(f.serialize()).call(0.0))
    0.0
    """
    if not isinstance(fun_jit, stages.Wrapped):
        raise ValueError(f"export: argument 'fun_jit' must come from jax.jit, got {fun_jit!r}")
    if _override_lowering_rules:
        raise NotImplementedError("export: argument '_override_lowering_rules' needs MLIR, which is not here")
    if isinstance(platforms, str) or not all(isinstance(p, str) for p in platforms or ()):
        raise TypeError(f"export: argument 'platforms' must be a sequence of names, got {platforms!r}")
    names = (default_export_platform(),) if platforms is None else tuple(platforms)
    for name in names:
        if name not in _PLATFORMS:
            raise ValueError(f"export: unknown platform {name!r}; expected some of {_PLATFORMS}")

    @api_boundary
    def exported(*args: Any, **kwargs: Any) -> Exported:
        name = getattr(fun_jit, "__name__", "<function>")
        _check_scopes(name, (args, kwargs))
        traced = fun_jit.trace(*args, **kwargs)
        closed, written = discharged(traced._program)  # references of its own are values
        if closed.effects or written:
            raise NotImplementedError(
                f"export: {name} calls back to Python, which cannot be written down; it has the effects "
                f"{set(traced._program.effects)}"
            )
        Solver(traced._program.in_avals, _leaf_names(traced.in_tree))  # so that what cannot be solved is found now
        program = _meshes.abstract(with_barriers(inline(closed)))
        said = [b if b is not None else a for a, b in traced._places]
        ins = _meshes.shardings_of(traced._program.in_avals, said)
        outs = _meshes.shardings_of(traced._program.out_avals, said_of_results(traced._program.jaxpr))
        _format.write_program(program, name)  # so that what cannot be stored is found now
        return Exported(
            fun_name=name,
            in_tree=traced.in_tree,
            in_avals=tuple(traced._program.in_avals),
            out_tree=traced.out_tree,
            out_avals=tuple(traced._program.out_avals),
            nr_devices=_meshes.number_of_devices(program, [*ins, *outs]),
            platforms=names,
            disabled_safety_checks=tuple(disabled_checks),
            calling_convention_version=maximum_supported_calling_convention_version,
            _jaxpr=program,
            _get_vjp=_vjp_of(closed),
            _in_shardings=ins,
            _out_shardings=outs,
            _keep_unused=traced._keep_unused,
        )

    return exported


def _vjp_of(jaxpr: ClosedJaxpr) -> Callable[[Exported], Exported]:
    """The derivative, of the program that still has the rules of the user's."""

    def of(primal: Exported) -> Exported:
        count = len(primal.in_avals)

        def flat(*values: Any) -> tuple[Any, ...]:
            pull = api.vjp(lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *xs), *values[:count])[1]
            return tuple(pull(list(values[count:])))

        flat.__name__ = f"{primal.fun_name}_vjp"
        avals = [*primal.in_avals, *map(tangent_aval, primal.out_avals)]
        specs = [_spec(aval) for aval in avals]
        return export(api.jit(flat), platforms=primal.platforms, disabled_checks=primal.disabled_safety_checks)(*specs)

    return of


def _spec(aval: ShapedArray) -> Any:
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return api.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def deserialize(blob: bytes | bytearray) -> Exported:
    """The function that `Exported.serialize` wrote. ValueError for other bytes, and those of other versions."""
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize: argument 'blob' must be bytes, got {shown(blob)}")
    data = bytes(blob)
    if not data.startswith(_format.MAGIC):
        raise ValueError(
            "deserialize: these bytes do not come from Exported.serialize of this version of pullback, which begin "
            f"with {_format.MAGIC!r}; serialized StableHLO is not read"
        )
    return Exported._of_fields(_format.read(data[len(_format.MAGIC) :]))


__all__ = [
    "DisabledSafetyCheck", "Exported", "default_export_platform", "deserialize", "export",
    "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
]  # fmt: skip
