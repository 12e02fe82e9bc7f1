"""Ahead of time: a function traced, lowered, compiled, each stage an object that can be looked at."""

from __future__ import annotations

import dataclasses
from typing import Any

from pullback.api.shapes import ShapeDtypeStruct
from pullback.core import ClosedJaxpr, Tracer, hooks, typeof
from pullback.util.pytree import tree_flatten, tree_unflatten


def _structs(tree, avals):
    return tree_unflatten(tree, [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals])


@dataclasses.dataclass(frozen=True)
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
        self, closed: ClosedJaxpr, in_tree, out_tree, name: str, donated: tuple[int, ...], keep_unused: bool, fixed=()
    ):
        self.jaxpr = closed
        self.in_tree, self.out_tree = in_tree, out_tree
        self.fun_name = name
        self._donated, self._keep_unused, self._fixed = donated, keep_unused, fixed

    @property
    def out_info(self):
        """The types of the result, as a tree of ShapeDtypeStruct."""
        return _structs(self.out_tree, self.jaxpr.out_avals)

    @property
    def in_avals(self):
        """The types of the arguments, as (args, kwargs)."""
        return tree_unflatten(self.in_tree, self.jaxpr.in_avals)

    @property
    def args_info(self):
        """Type of each argument, and whether it is donated, as (args, kwargs)."""
        return self._args_info()

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Numbers of the leaves that are donated."""
        return self._donated

    @property
    def out_avals(self):
        """The types of the result, as a tree of avals."""
        return tree_unflatten(self.out_tree, self.jaxpr.out_avals)

    def _args_info(self):
        infos = [ArgInfo(a, i in self._donated) for i, a in enumerate(self.jaxpr.in_avals)]
        return tree_unflatten(self.in_tree, infos)

    def lower(self, *, lowering_platforms=None, _private_parameters=None) -> Lowered:
        """The program after the graph passes and lowering to loops."""
        return Lowered(self)


class _Stage:
    """What a lowered and a compiled function both say of their types."""

    _traced: Traced
    out_tree: Any

    @property
    def out_info(self):
        """The types of the result, as a tree of ShapeDtypeStruct."""
        return self._traced.out_info

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
        return tree_unflatten(self.out_tree, self._traced.jaxpr.out_avals)


class Lowered(_Stage):
    """A function lowered to loops: `.as_text()`, `.cost_analysis()`, `.compile()`."""

    def __init__(self, traced: Traced):
        self._traced = traced
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self._program: Any = None

    def _compiled(self):
        if self._program is None:
            self._program = hooks.program(
                self._traced.jaxpr, donated=self._traced._donated, keep_unused=self._traced._keep_unused
            )
        return self._program

    def as_text(self, dialect: str | None = None, **_options) -> str:
        """The program as text: 'jaxpr', 'loops' (the default), 'llvm' or 'asm'; ValueError for another name."""
        return self._compiled().as_text(dialect or "loops")

    def cost_analysis(self) -> dict[str, float]:
        """Operations and bytes moved."""
        return self._compiled().cost_analysis()

    def compile(self, compiler_options=None) -> Compiled:
        """Native code, as a callable."""
        program = self._compiled()
        program.executable  # noqa: B018  made now, not at the first call
        return Compiled(self._traced, program)


class Compiled(_Stage):
    """A compiled function; called with arguments of exactly the types that it was compiled for."""

    def __init__(self, traced: Traced, program):
        self._traced, self._program = traced, program
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree

    def as_text(self, dialect: str | None = None) -> str:
        """The program as text: 'jaxpr', 'loops', 'llvm' or 'asm' (the default); ValueError for another name."""
        return self._program.as_text(dialect or "asm")

    def cost_analysis(self) -> dict[str, float]:
        """Operations and bytes moved."""
        return self._program.cost_analysis()

    def memory_analysis(self):
        """Bytes of arguments, results, temporaries and code."""
        return self._program.memory_analysis()

    def runtime_executable(self):
        """There is no XLA executable; raises NotImplementedError that says so."""
        raise NotImplementedError(
            "runtime_executable: pullback has no XLA executable; use as_text(), cost_analysis() and "
            "memory_analysis(), or call the compiled function"
        )

    def __call__(self, *args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs))
        for leaf in leaves:
            if isinstance(leaf, Tracer):
                raise TypeError(
                    "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. "
                    f"Detected argument of Tracer type {type(leaf)}: {leaf.describe()}; call the jitted function "
                    "itself."
                )
        if tree != self.in_tree:
            static = " (static arguments are left out in the call)" if self._traced._fixed else ""
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called with: compiled for "
                f"{self.in_tree}, called with {tree}{static}"
            )
        for i, (leaf, aval) in enumerate(zip(leaves, self._traced.jaxpr.in_avals)):
            have = typeof(leaf)
            if have.shape != aval.shape or have.dtype != aval.dtype:
                raise TypeError(
                    "Argument types differ from the types for which this computation was compiled: leaf "
                    f"{i} was compiled with {aval.str_short()} and called with {have.str_short()}"
                )
        return tree_unflatten(self.out_tree, self._program.call([hooks.asarray(leaf) for leaf in leaves]))
