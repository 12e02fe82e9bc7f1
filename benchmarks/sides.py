"""The libraries that are timed, each as one class that turns a program into a call without arguments.

All run in one process: pullback under its own name, the peers from the folder that `--peers` names.
"""

from __future__ import annotations

import contextlib
import importlib
import site
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.program import Program

PARTS = ("numpy", "lax", "random", "nn", "scipy", "scipy.special", "scipy.linalg", "scipy.signal", "scipy.stats")


class Side:
    """One library."""

    name: str

    def has(self, program: Program) -> bool:
        """Whether the program is written for this library."""
        raise NotImplementedError

    def call(self, program: Program, inputs: tuple) -> Callable[[], Any]:
        """A call that runs the program on its inputs and waits for the result."""
        raise NotImplementedError

    def arrays(self, result: Any) -> list[np.ndarray]:
        """The leaves of a result, for comparison."""
        return [np.asarray(x) for x in leaves_of(result)]


class JaxLike(Side):
    """pullback or JAX: both have one API."""

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.jax = importlib.import_module(module)
        for part in PARTS:
            with contextlib.suppress(ModuleNotFoundError):  # a program that uses it is reported as failed
                importlib.import_module(f"{module}.{part}")

    def has(self, program: Program) -> bool:
        """Always: this is what a program is written for."""
        return True

    def jitted(self, program: Program) -> Callable:
        """The program as a compiled function, made anew: nothing is known of an earlier one."""
        function = program.jax(self.jax)
        return self.jax.jit(function, static_argnums=program.static) if program.jit else function

    def inputs(self, program: Program, inputs: tuple) -> tuple:
        """Inputs as this library's arrays, except static ones, or as they are."""
        if program.as_numpy:
            return inputs
        return tuple(
            x if k in program.static else map_leaves(lambda v: self.jax.numpy.asarray(v), x)
            for k, x in enumerate(inputs)
        )

    def set_x64(self, on: bool) -> None:
        """Allow 64-bit numbers or not."""
        self.jax.config.update("jax_enable_x64", on)

    def call(self, program: Program, inputs: tuple) -> Callable[[], Any]:
        """A call of the jitted program."""
        function, arguments = self.jitted(program), self.inputs(program, inputs)
        if hasattr(function(*arguments), "block_until_ready"):
            return lambda: function(*arguments).block_until_ready()
        wait = self.jax.block_until_ready
        return lambda: wait(function(*arguments))


class NumPy(Side):
    """NumPy, and SciPy where a program uses it."""

    name = "numpy"

    def has(self, program: Program) -> bool:
        """Whether there is a NumPy function."""
        return program.numpy is not None

    def call(self, program: Program, inputs: tuple) -> Callable[[], Any]:
        """A call of the NumPy function."""
        function = program.numpy
        assert function is not None
        return lambda: function(*inputs)


class Torch(Side):
    """PyTorch, eager or through torch.compile."""

    def __init__(self, compiled: bool = False) -> None:
        self.name = "torch.compile" if compiled else "torch"
        self.compiled = compiled
        self.torch = importlib.import_module("torch")

    def has(self, program: Program) -> bool:
        """Whether there is a function of tensors."""
        return program.torch is not None

    def call(self, program: Program, inputs: tuple) -> Callable[[], Any]:
        """A call on tensors."""
        assert program.torch is not None
        function = program.torch(self.torch)
        if self.compiled:
            function = self.torch.compile(function)
        arguments = tuple(map_leaves(self._tensor, x) for x in inputs)
        return lambda: function(*arguments)

    def _tensor(self, leaf: Any) -> Any:
        return self.torch.from_numpy(np.array(leaf)) if isinstance(leaf, (np.ndarray, np.generic)) else leaf

    def arrays(self, result: Any) -> list[np.ndarray]:
        """Tensors as arrays."""
        return [np.asarray(x.detach() if hasattr(x, "detach") else x) for x in leaves_of(result)]


class Autograd(Side):
    """HIPS autograd."""

    name = "autograd"

    def __init__(self) -> None:
        self.autograd = importlib.import_module("autograd")
        self.numpy = importlib.import_module("autograd.numpy")

    def has(self, program: Program) -> bool:
        """Whether there is a function for autograd."""
        return program.autograd is not None

    def call(self, program: Program, inputs: tuple) -> Callable[[], Any]:
        """A call on NumPy arrays."""
        assert program.autograd is not None
        function = program.autograd(self.autograd, self.numpy)
        return lambda: function(*inputs)


MAKERS: dict[str, Callable[[], Side]] = {
    "pullback": lambda: JaxLike("pullback", "pullback"),
    "jax": lambda: JaxLike("jax", "jax"),
    "torch": Torch,
    "torch.compile": lambda: Torch(compiled=True),
    "numpy": NumPy,
    "autograd": Autograd,
}


def add_peers(environment: Path) -> None:
    """Let imports find what is installed in another environment of the same Python, after all that this one has."""
    folder = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = environment / "lib" / folder / "site-packages"
    if not packages.is_dir():
        raise SystemExit(f"--peers: {environment} has no {packages.relative_to(environment)}; it needs the same Python")
    site.addsitedir(str(packages))


def make_sides(names: Sequence[str], required: bool) -> list[Side]:
    """The sides that can be imported; a peer that is missing is named."""
    unknown = set(names) - set(MAKERS)
    if unknown:
        raise SystemExit(f"--sides: {', '.join(sorted(unknown))} is not one of {', '.join(MAKERS)}")
    sides: list[Side] = []
    for name in names:
        try:
            sides.append(MAKERS[name]())
        except ImportError as error:
            print(f"without {name}: {error}" + ("" if required else " (see --peers)"), file=sys.stderr)
    return sides


def map_leaves(function: Callable, tree: Any) -> Any:
    """The tree with each leaf replaced; tuples, lists, dicts and named tuples are nodes."""
    if isinstance(tree, dict):
        return {k: map_leaves(function, v) for k, v in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_leaves(function, v) for v in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_leaves(function, v) for v in tree)
    return None if tree is None else function(tree)


def leaves_of(tree: Any) -> list:
    """Leaves in the order of JAX's flattening: dicts by sorted key."""
    if isinstance(tree, dict):
        return [leaf for k in sorted(tree) for leaf in leaves_of(tree[k])]
    if isinstance(tree, (tuple, list)):
        return [leaf for v in tree for leaf in leaves_of(v)]
    return [] if tree is None else [tree]
