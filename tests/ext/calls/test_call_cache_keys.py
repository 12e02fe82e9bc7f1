"""Which calls are new keys of the call cache, and which are hits."""

import collections
import threading

import ml_dtypes
import numpy as np
import pytest

from pullback._ext import _core

from .call_caches import Point, Recorder, to_array


@pytest.fixture(autouse=True)
def standard_hooks(hooks):
    hooks(asarray=to_array, leaf=None, tracer=None)


def test_arrays_by_aval(array):
    r = Recorder()
    assert not r(array([1.0])) and r(array([2.0]))
    assert not r(array([1.0, 2.0])) and not r(array([1], "int32")) and not r(array([1.0], weak_type=True))
    assert r(array([5.0])) and r.f.cache_size() == 4
    assert not r(array([1.0]), array([1.0]))


def test_devices_are_told_apart(array):
    r = Recorder()
    here, there = object(), object()
    x = array([1.0])
    assert not r(x)
    assert not r(_core.with_aval(x, x.aval, device=here)) and not r(_core.with_aval(x, x.aval, device=there))
    assert r(_core.with_aval(x, x.aval, device=here)) and r(x)


def test_scalars_by_type():
    r = Recorder()
    for first, second in ((1, 2), (1.0, 2.0), (True, False), (1j, 2j)):
        assert not r(first) and r(second)
    assert r.f.cache_size() == 4


def test_numpy_by_dtype_and_shape():
    r = Recorder()
    assert not r(np.zeros(3, np.float32)) and r(np.ones(3, np.float32)) and r(np.ones(6, np.float32)[::2])
    assert not r(np.zeros(4, np.float32)) and not r(np.zeros(3, np.int32)) and not r(np.zeros((3, 1), np.float32))
    assert not r(np.zeros(3, ml_dtypes.bfloat16)) and r(np.ones(3, ml_dtypes.bfloat16))
    assert not r(np.zeros(3, ml_dtypes.float8_e5m2))
    assert not r(np.float32(1)) and r(np.float32(2)) and r(np.zeros((), np.float32))
    assert not r(np.float64(1)) and not r(1.0)
    assert not r(ml_dtypes.bfloat16(1)) and r(ml_dtypes.bfloat16(2))


def test_structures(array):
    x = array([1.0])
    r = Recorder()
    trees = [
        (x,),
        [x],
        {"a": x},
        {"b": x},
        {"a": x, "b": x},
        Point(x, x),
        (x, x),
        ((x,),),
        (),
        [],
        {},
        None,
        (None,),
        (x, None),
        (None, x),
        ([x], x),
        ([x, x],),
        {1: x},
        {(1, 2): x},
        collections.OrderedDict(a=x),
        collections.defaultdict(list, a=x),
        {"a": {"b": [x, (x, None)]}},
    ]
    for tree in trees:
        assert not r(tree), tree
    for tree in trees:
        assert r(tree), tree
    assert r({"b": x, "a": x})  # the order of a dict does not matter
    assert r.f.cache_size() == len(trees)


def test_equal_keys_that_are_not_identical(array):
    r = Recorder()
    assert not r({"".join(["k", "ey"]): 1.0})
    assert r({"".join(["ke", "y"]): 2.0})
    assert not r({10**20: 1.0}) and r({10**20: 2.0})


def test_keyword_arguments(array):
    r = Recorder()
    assert not r(a=1.0, b=array([1.0])) and r(b=array([2.0]), a=3.0)
    assert not r(1.0, b=1.0) and not r(1.0, c=1.0) and not r(a=1.0)
    assert not r(**{"".join(["na", "me"]): 1.0}) and r(**{"".join(["n", "ame"]): 1.0})


@pytest.mark.parametrize("position", [1, -1])
def test_static_arguments(position):
    r = Recorder(static_argnums=(position,), static_argnames=("mode",))
    assert not r(1.0, 2) and r(3.0, 2) and not r(1.0, 3)
    assert not r(1.0, True) and not r(1.0, 1) and not r(1.0, 1.0)  # equal, of different types
    assert not r(1.0, ("a", 1)) and r(1.0, ("a", 1))
    assert not r(1.0, 2, mode="x") and r(1.0, 2, mode="x") and not r(1.0, 2, mode="y") and not r(1.0, 2, mode=None)
    assert r(2.0, 2)


def test_signs_of_static_zeros_count():
    Pair = collections.namedtuple("Pair", "a b")
    kinds = [float, np.float16, np.float32, np.float64, np.longdouble, ml_dtypes.bfloat16]
    kinds += [lambda x: complex(1, x), lambda x: np.complex64(complex(x, 1)), lambda x: np.complex128(complex(0.0, x))]
    kinds += [lambda x: (1, x), lambda x: Pair(1, x), lambda x: Pair((np.float32(x),), 0)]
    r = Recorder(static_argnums=(0,))
    for make in kinds:
        positive, negative = make(0.0), make(-0.0)
        assert positive == negative
        assert not r(positive) and not r(negative) and r(make(0.0)) and r(make(-0.0)), positive
        assert len({_core.static_form(x) for x in (positive, make(0.0), negative, make(-0.0))}) == 2, positive
    assert not r(Pair(1, 2)) and not r(Pair(True, 2)) and r(Pair(1, 2))
    others = [np.int8(0), np.bool_(True), np.str_("text"), np.bytes_(b"text"), np.timedelta64(0, "s")]
    assert not any([r(x) for x in others]) and all([r(x) for x in others])


def test_tuples_with_own_equality():
    class Length(tuple):
        def __eq__(self, other):
            return len(self) == len(other)

        def __hash__(self):
            return 1

    r = Recorder(static_argnums=(0,))
    assert not r(Length((1,))) and r(Length((2,))) and r(Length((1.0,))) and not r(Length((1, 2)))
    assert _core.static_form(Length((1,))) == _core.static_form(Length((2,)))


def test_unhashable_static_arguments_go_to_python():
    r = Recorder(static_argnums=(0,))
    for _ in range(2):
        assert not r([1, 2])
    assert r.f.cache_size() == 0


def test_static_arguments_with_own_equality():
    class Mode:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 1

        def __eq__(self, other):
            if self.n == "raise" or other.n == "raise":
                raise LookupError("compared")
            return self.n == other.n

    r = Recorder(static_argnums=(0,))
    assert not r(Mode(1)) and r(Mode(1)) and not r(Mode(2)) and r(Mode(1))
    with pytest.raises(LookupError, match="compared"):
        r(Mode("raise"))

def test_metadata_is_compared_before_it_is_hashed():
    hashed = []

    class Label:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            if self.n == "raise" or other.n == "raise":
                raise LookupError("compared")
            return self.n == other.n

        def __hash__(self):
            hashed.append(self.n)
            return 1

    class Box:
        def __init__(self, content, label):
            self.content, self.label = content, label

    _core.pytree.register_node(Box, lambda b: ((b.content,), b.label), lambda label, c: Box(c[0], label), None)
    r = Recorder()
    assert not r(Box(1.0, Label(1)))
    hashed.clear()
    assert r(Box(1.0, Label(1))) and not hashed
    assert not r(Box(1.0, Label(2))) and hashed == [2]
    assert r(Box(1.0, Label(1))) and r(Box(1.0, Label(1))) and hashed == [2, 1]
    with pytest.raises(LookupError, match="compared"):
        r(Box(1.0, Label("raise")))
    assert r(Box(1.0, Label(1)))


def test_registered_classes(array):
    class Box:
        def __init__(self, content, label):
            self.content, self.label = content, label

    _core.pytree.register_node(Box, lambda b: ((b.content,), b.label), lambda label, c: Box(c[0], label), None)
    r = Recorder()
    assert not r(Box(1.0, "a")) and r(Box(2.0, "a")) and not r(Box(1.0, "b")) and not r(Box((1.0,), "a"))
    assert not r(Box(1.0, ["unhashable"])) and r(Box(1.0, ["unhashable"])) and not r(Box(1.0, ["other"]))
    back = r.f(Box(4.0, "a"))
    ((box,), _) = back
    assert type(box) is Box and float(box.content) == 4.0 and box.label == "a"


def test_flattening_errors_are_left_to_python():
    class Broken:
        pass

    def fail(_):
        raise ValueError("cannot flatten")

    _core.pytree.register_node(Broken, fail, lambda aux, c: None, None)
    seen = []
    f = _core.JitFunction(lambda x: x, lambda a, k: (seen.append(1), None))
    f(Broken())
    f({1: 1.0, "a": 2.0})  # keys that cannot be ordered
    deep = 1.0
    for _ in range(5000):
        deep = (deep,)
    f(deep)
    assert len(seen) == 3 and f.cache_size() == 0


def test_unknown_types_and_tracers(hooks, array):
    class Tracer:
        pass

    class Sub(Tracer):
        pass

    class Key:  # an array in disguise
        def __init__(self, kind):
            self.kind, self.array = kind, array([1, 2], "uint32")

    asked = []

    def leaf(x):
        asked.append(type(x))
        return (x.kind, x.array) if isinstance(x, Key) else None

    r = Recorder()
    for odd in (
        "text",
        object(),
        b"bytes",
        np.array(["a"]),
        np.zeros(1, ">f4"),
        np.array([None]),
        np.datetime64(1, "s"),
        Tracer(),
    ):
        assert not r(odd) and not r(odd)
    hooks(leaf=leaf, tracer=Tracer)
    assert not r(Sub()) and not r("text") and asked == [str]
    assert not r(Key("a")) and r(Key("a")) and not r(Key("b"))
    ((out,), _) = r.f(Key("a"))
    assert out.tolist() == [1, 2]
    hooks(leaf=lambda x: 3)
    with pytest.raises(TypeError, match=r"hook 'leaf' returned 3; expected \(key, Array\) or None"):
        r.f("text")

    def fail(x):
        raise LookupError

    hooks(leaf=fail)
    assert not r("text")  # Python's own path will say it better


def test_configuration_is_part_of_the_key():
    r = Recorder()
    try:
        assert not r(1.0)
        _core.set_trace_context_token(("x64", True))
        assert not r(1.0) and r(1.0)
        _core.set_thread_context_token("override")
        assert not r(1.0) and r(1.0)
        _core.set_thread_context_token(None)
        _core.set_trace_context_token(("x64", 1))  # equal to what it was
        assert r(1.0)
        results = []
        thread = threading.Thread(target=lambda: results.append(r(1.0)))
        thread.start()
        thread.join()
        assert results == [True]
        with pytest.raises(TypeError):
            _core.set_trace_context_token([])
    finally:
        _core.set_thread_context_token(None)
        _core.set_trace_context_token("tests")


def test_tracing_goes_to_python():
    r = Recorder()
    assert not r(1.0)
    _core.set_tracing(True)
    try:
        assert _core.is_tracing() and not r(1.0) and not r(1.0)
        seen = []
        thread = threading.Thread(target=lambda: seen.append((_core.is_tracing(), r(1.0))))
        thread.start()
        thread.join()
        assert seen == [(False, True)]
    finally:
        _core.set_tracing(False)
    assert r(1.0)
