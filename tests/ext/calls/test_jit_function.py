"""A JitFunction is a function like any other; its life time."""

import contextlib
import functools
import gc
import inspect
import pickle
import sys
import weakref

import pytest

from pullback._ext import _core

from .call_caches import LEAF, native, to_array


@pytest.fixture(autouse=True)
def standard_hooks(hooks):
    hooks(asarray=to_array, leaf=None, tracer=None)


def example(a, b: int = 2, *, c=None):
    """What it does."""


example.mark = "own attribute"
jitted_example = _core.JitFunction(example, lambda a, k: ((a, k), None))


def test_looks_like_the_function():
    f = jitted_example
    assert (
        f.__name__ == "example"
        and f.__qualname__ == "example"
        and f.__module__ == __name__
        and f.__doc__ == "What it does."
    )
    assert f.__wrapped__ is example and f.mark == "own attribute" and inspect.signature(f) == inspect.signature(example)
    assert f.__annotations__ == {"b": int} and inspect.getdoc(f) == "What it does." and callable(f)
    assert repr(f).startswith("<PjitFunction of <function example at")
    assert type(f).__name__ == "PjitFunction"  # by which libraries know jitted functions
    assert inspect.signature(f, follow_wrapped=False) == inspect.signature(example) == f.__signature__
    f.__signature__ = inspect.signature(lambda x: x)
    assert inspect.signature(f) == inspect.signature(lambda x: x)
    del f.__signature__
    assert f.__signature__ == inspect.signature(example) and inspect.getfullargspec(f).kwonlyargs == ["c"]
    with pytest.raises(ValueError, match="no signature found"):
        _ = _core.JitFunction(max, lambda a, k: None).__signature__
    f.extra = 3
    assert f.extra == 3 and f.__dict__["extra"] == 3
    del f.extra
    with pytest.raises(AttributeError):
        f.extra  # noqa: B018
    assert weakref.ref(f)() is f and hash(f) == hash(f)
    assert f(1, c=2) == ((1,), {"c": 2})


def test_functions_without_a_name():
    f = _core.JitFunction(functools.partial(example, 1), lambda a, k: ("called", None))
    assert f() == "called" and not hasattr(f, "__name__")


def test_as_method():
    class Model:
        step = _core.JitFunction(lambda self, x: None, lambda a, k: (a, None))

    m = Model()
    assert m.step(3) == (m, 3) and Model.step(m, 4) == (m, 4) and Model.step is Model.__dict__["step"]
    assert m.step.__self__ is m


def test_call_protocols():
    f = _core.JitFunction(example, lambda a, k: ((a, k), None))
    assert f(*(1, 2), c=3) == ((1, 2), {"c": 3}) and functools.partial(f, 1)(b=2) == ((1,), {"b": 2})
    assert list(map(f, [1])) == [((1,), {})]
    many = tuple(range(300))
    assert f(*many)[0] == many


def test_can_be_subclassed():
    class Special(_core.JitFunction):
        def double(self):
            return 2

    f = Special(example, lambda a, k: (a, None))
    assert f(1) == (1,) and f.double() == 2


def test_bad_construction():
    for bad in (
        (),
        (3, print),
        (print, 3),
        (print, print, 3),
        (print, print, ["a"]),
        (print, print, (), 3),
        (print, print, (), [3]),
    ):
        with pytest.raises(TypeError):
            _core.JitFunction(*bad)
    with pytest.raises(ValueError, match="maxsize"):
        _core.JitFunction(print, print, maxsize=0)


# ---- life times


def test_cycles_are_collected(program, aval):
    class Owner:
        pass

    def make():
        owner = Owner()

        def fun(x):
            return owner

        owner.f = _core.JitFunction(
            fun, lambda a, k: (owner, _core.CacheEntry(lambda arrays: (owner, arrays)[1:], LEAF)), static_argnums=(1,)
        )
        owner.f(1.0, owner.f)
        return weakref.ref(owner), weakref.ref(owner.f)

    owner, f = make()
    gc.collect()
    assert owner() is None and f() is None


@pytest.mark.parametrize("call", ["hit", "miss", "uncached", "error"])
def test_no_references_are_lost_or_kept(program, aval, array, call):
    entry = _core.CacheEntry(native(program, aval), _core.pytree.structure({"out": 0}, None), kept=(1,))
    answer = {"uncached": None}.get(call, entry)

    def miss(args, kwargs):
        if call == "error":
            raise ValueError
        return None, answer

    f = _core.JitFunction(lambda *a: None, miss, static_argnums=(1,))
    tree, static, name = {"a": array([1.0]), "b": [2.0]}, ("static", object()), "key word"
    x = array(2.0)
    things = [tree, tree["a"], tree["b"], static, static[1], x.aval, x, entry, miss]

    def once():
        if call in ("miss", "error"):
            f.clear()
        with contextlib.suppress(ValueError):
            f(tree, static, **{name: x})

    for _ in range(3):
        once()
    gc.collect()
    before = [sys.getrefcount(t) for t in things], _core.memory_stats()["bytes_in_use"]
    for _ in range(100):
        once()
    gc.collect()
    assert ([sys.getrefcount(t) for t in things], _core.memory_stats()["bytes_in_use"]) == before


def test_functions_pickle_by_name():
    # importlib mode of pytest gives this module a name under which pickle finds it
    assert pickle.loads(pickle.dumps(jitted_example_by_name)) is jitted_example_by_name


def jitted_example_by_name(x):
    return x


jitted_example_by_name = _core.JitFunction(jitted_example_by_name, lambda a, k: (a, None))
