"""Evaluates programs given as text, in a process of its own: python worker.py LIBRARY X64, by pickles over a pipe.

LIBRARY is `pullback` or `jax`: the same lines run on either, so that nothing but the library can differ. This file is
run by interpreters that have only one of the two, and imports neither before it is told which.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pickle
import signal
import struct
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import ml_dtypes
import numpy as np

SECONDS = 30  # for one program; what takes longer is reported as such
PATIENCE = 15  # more seconds for what does not hear the alarm, as a compiler; then the process ends


class Argument(NamedTuple):
    """An argument of a program: how it is passed ('array', 'numpy' or 'python'), its dtype, shape and bytes."""

    form: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def value(self) -> np.ndarray:
        return np.frombuffer(self.data, numpy_dtype(self.dtype)).reshape(self.shape)


class Leaf(NamedTuple):
    """One array among the results of a program."""

    dtype: str
    weak: bool
    shape: tuple[int, ...]
    data: bytes

    def value(self) -> np.ndarray:
        if self.dtype == "void":  # float0, which has no bytes
            return np.zeros(self.shape, bool)
        return np.frombuffer(self.data, numpy_dtype(self.dtype)).reshape(self.shape)


class Raised(NamedTuple):
    """What a program raised: the names of the exception's classes, from its own to Exception, and its message."""

    names: tuple[str, ...]
    message: str


class Task(NamedTuple):
    """A program to evaluate: its text defines `program`."""

    text: str
    arguments: tuple[Argument, ...]
    jit: bool


Outcome = list[Leaf] | Raised


def numpy_dtype(name: str) -> np.dtype:
    """The dtype of a name, those of ml_dtypes included."""
    return np.dtype(getattr(ml_dtypes, name, name))


class Library:
    """pullback or JAX, with the names that programs use."""

    def __init__(self, name: str, x64: bool) -> None:
        self.jax = importlib.import_module(name)
        self.jax.config.update("jax_enable_x64", x64)
        for part in ("scipy.special", "scipy.linalg", "scipy.signal", "scipy.stats", "nn", "numpy.fft", "numpy.linalg"):
            importlib.import_module(f"{name}.{part}")
        self.jnp = self.jax.numpy
        self.names = {
            "jax": self.jax, "jnp": self.jnp, "lax": self.jax.lax, "nn": self.jax.nn, "np": np,
            "special": self.jax.scipy.special, "linalg": self.jax.scipy.linalg, "signal": self.jax.scipy.signal,
            "ml_dtypes": ml_dtypes, "composed": self.composed,
        }  # fmt: skip
        self.compiled: dict[str, Any] = {}

    def evaluate(self, task: Task) -> Outcome:
        """The leaves of a program's results, or what it raised."""
        try:
            arguments = [self.argument(a) for a in task.arguments]
            program = self.program(task.text)
            if task.jit:
                program = self.jax.jit(program)
            return [self.leaf(x) for x in self.jax.tree_util.tree_leaves(program(*arguments))]
        except TimeoutError:
            raise
        except Exception as error:
            names = tuple(c.__name__ for c in type(error).__mro__ if issubclass(c, Exception))
            return Raised(names, str(error)[:400])

    def program(self, text: str) -> Any:
        """The function that a text defines, made once: libraries remember functions."""
        if text not in self.compiled:
            if len(self.compiled) > 2000:
                self.compiled.clear()
            own = dict(self.names)
            exec(compile(text, "<program>", "exec"), own)
            self.compiled[text] = own["program"]
        return self.compiled[text]

    def composed(self, seed: int, moves: int) -> Callable[..., Any]:
        """The function of a composed program (program.py)."""
        from fuzz.library import using
        from fuzz.program import FuzzProgram

        def function(*arrays: Any) -> list[Any]:
            with using(self.jax):
                return FuzzProgram(seed, moves).function(*arrays)

        return function

    def argument(self, a: Argument) -> Any:
        value = a.value()
        if a.form == "python":
            return value.tolist()
        return self.jnp.asarray(value) if a.form == "array" else value

    def leaf(self, x: Any) -> Leaf:
        weak = bool(getattr(x, "weak_type", False)) or isinstance(x, (bool, int, float, complex))
        if hasattr(x, "dtype") and self.jax.dtypes.issubdtype(x.dtype, self.jax.dtypes.prng_key):
            x = self.jax.random.key_data(x)
        value = np.asarray(x)
        if value.dtype.names:  # float0
            return Leaf("void", weak, value.shape, b"")
        if value.dtype.kind in "OSU":
            text = repr(x).encode()
            return Leaf("uint8", False, (len(text),), text)
        return Leaf(value.dtype.name, weak, value.shape, np.ascontiguousarray(value).tobytes())


def serve(library: Library, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer lists of tasks with lists of outcomes until the pipe closes."""

    def late(number, frame):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    while (tasks := receive(source)) is not None:
        outcomes: list[Outcome] = []
        for task in tasks:
            signal.alarm(SECONDS)
            faulthandler.dump_traceback_later(SECONDS + PATIENCE, exit=True)
            try:
                outcomes.append(library.evaluate(task))
            except TimeoutError:
                outcomes.append(Raised(("TimeoutError",), f"more than {SECONDS} s"))
            finally:
                signal.alarm(0)
                faulthandler.cancel_dump_traceback_later()
        send(sink, outcomes)


def send(pipe: BinaryIO, message: Any) -> None:
    """Write a pickled message after its length."""
    data = pickle.dumps(plain(message), 5)
    pipe.write(struct.pack("<q", len(data)) + data)
    pipe.flush()


def plain(message: Any) -> Any:
    """Messages without classes, as the two sides import this file under different names."""
    if isinstance(message, (list, tuple)):
        kind = type(message).__name__ if hasattr(message, "_fields") else ""
        return (kind, [plain(x) for x in message], isinstance(message, tuple))
    return message


def rich(message: Any) -> Any:
    """The inverse of `plain`."""
    if isinstance(message, tuple):
        kind, parts, is_tuple = message
        found = [rich(x) for x in parts]
        return globals()[kind](*found) if kind else tuple(found) if is_tuple else found
    return message


def receive(pipe: BinaryIO) -> Any:
    """The next message, or None where the pipe has closed."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    return rich(pickle.loads(pipe.read(struct.unpack("<q", head)[0])))


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parent.parent))  # of the package that composed programs come from
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that libraries print gets into the answers
    with contextlib.redirect_stdout(sys.stderr):  # programs must not print into the answers
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        serve(Library(sys.argv[1], sys.argv[2] == "1"), source, sink)


if __name__ == "__main__":
    main()
