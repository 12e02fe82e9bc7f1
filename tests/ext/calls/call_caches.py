"""What the tests of the call cache share: hooks, functions that count their misses, native programs."""

import collections
import functools

import numpy as np

from pullback._ext import _core

LEAF = _core.pytree.structure(0, None)
Point = collections.namedtuple("Point", "x y")


def leaves_of(tree):
    return _core.pytree.leaves(tree, None)


def to_array(x):
    """The hook `asarray` of these tests: floats become float32, ints int32, and so on."""
    if type(x) is int and not -(2**31) <= x < 2**31:
        raise OverflowError("too large for int32")
    x = np.asarray(x)
    if x.dtype == object or x.dtype.kind in "US":
        raise TypeError(f"cannot make an Array of {x!r}")
    small = {"float64": "float32", "int64": "int32", "complex128": "complex64"}
    x = x.astype(small.get(x.dtype.name, x.dtype.name))
    return _core.from_numpy(x, make_aval(x.shape, x.dtype))


@functools.cache
def make_aval(shape, dtype):
    class Aval:
        weak_type = False

    Aval.shape, Aval.dtype = shape, dtype
    return Aval()


class Recorder:
    """A JitFunction whose misses are counted and answered by a Python program that returns its inputs."""

    def __init__(self, static_argnums=(), static_argnames=(), **options):
        self.misses = []
        self.static_argnums, self.static_argnames = static_argnums, static_argnames
        self.f = _core.JitFunction(lambda *a, **k: None, self.miss, static_argnums, static_argnames, **options)

    def miss(self, args, kwargs):
        self.misses.append((args, kwargs))
        static = {n % len(args) for n in self.static_argnums if -len(args) <= n < len(args)}
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)
        names = {k: v for k, v in kwargs.items() if k not in self.static_argnames}
        tree = _core.pytree.structure((dynamic, names), None)
        return "miss", _core.CacheEntry(lambda arrays: arrays, tree)

    def __call__(self, *args, **kwargs):
        """True for a hit."""
        before = len(self.misses)
        result = self.f(*args, **kwargs)
        assert (result == "miss") == (len(self.misses) > before)
        return len(self.misses) == before


def native(program, aval, **options):
    kind = aval((), "float32")
    return program(program.add_one, (kind,), (kind,), **options)


def jit_of(entry, *args, **options):
    return _core.JitFunction(lambda *a: None, lambda a, k: ("miss", entry), *args, **options)
