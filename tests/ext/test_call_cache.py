import collections
import contextlib
import functools
import gc
import inspect
import pickle
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

from pullback._ext import Array, _core

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


@pytest.fixture(autouse=True)
def standard_hooks(hooks):
    hooks(asarray=to_array, leaf=None, tracer=None)


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


# ---- what is a new key, and what is not


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


# ---- what a hit runs


def native(program, aval, **options):
    kind = aval((), "float32")
    return program(program.add_one, (kind,), (kind,), **options)


def jit_of(entry, *args, **options):
    return _core.JitFunction(lambda *a: None, lambda a, k: ("miss", entry), *args, **options)


@pytest.mark.parametrize(
    "value",
    [
        2.5,
        np.float32(2.5),
        np.float64(2.5),
        np.full((), 2.5, np.float32),
        np.full((), 2.5),
        2.5 + 0j,
        np.int8(2),
        np.float16(2.5),
        True,
        2,
        ml_dtypes.bfloat16(2.5),
    ],
)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_leaves_become_what_the_program_takes(program, aval, value, hooks):
    hooks(asarray=lambda x: _core.from_numpy(np.asarray(x), aval((), "float32")))
    f = jit_of(_core.CacheEntry(native(program, aval), LEAF))
    assert f(value) == "miss"
    out = f(value)
    assert type(out) is Array and float(out) == float(np.real(value)) + 1


def copy_program(program, aval, dtype, shape=(), **options):
    kind = aval(shape, dtype)
    return program("ret i32 0", (kind,), (kind,), forward=(0,), **options)


@pytest.mark.parametrize(
    "dtype, values",
    [
        ("bool", [True, False]),
        ("int32", [0, -5, 2**31 - 1, -(2**31)]),
        ("int64", [2**40, -(2**63)]),
        ("float32", [1.5, float("inf")]),
        ("float64", [1e300]),
        ("complex64", [1 + 2j]),
        ("complex128", [1e300 + 2j]),
    ],
)
def test_python_scalars(program, aval, dtype, values):
    f = jit_of(_core.CacheEntry(copy_program(program, aval, dtype), LEAF))
    f(values[0])
    for v in values:
        out = f(v)
        assert out.dtype == dtype and out.item() == v


def test_integers_that_do_not_fit(program, aval):
    f = jit_of(_core.CacheEntry(copy_program(program, aval, "int32"), LEAF))
    f(1)
    for v in (2**31, -(2**31) - 1, 2**100):
        with pytest.raises(OverflowError, match="too large for int32"):
            f(v)


@pytest.mark.parametrize("shape", [(3,), (0,), (2, 3)])
def test_numpy_arrays(program, aval, shape):
    size = int(np.prod(shape))
    f = jit_of(_core.CacheEntry(copy_program(program, aval, "float32", shape), LEAF))
    base = np.arange(2 * size + 1, dtype=np.float32)
    for x in (
        base[:size],
        base[1 : size + 1],
        base[: 2 * size : 2],
        base[:size].astype(np.float64),
        base[:size].astype(np.int64),
        base[size - 1 :: -1][:size] if size else base[:0],
    ):
        x = x.reshape(shape)
        f(x)
        out = f(x)
        np.testing.assert_array_equal(np.asarray(out), x.astype(np.float32))
        assert (
            not size or out.unsafe_buffer_pointer() != x.ctypes.data
        )  # the result does not share memory that can change


def test_numpy_memory_is_read_in_place_where_it_can_be(program, aval):
    # The program returns the address of its input.
    body = program.pointers(1, 1) + "%a = ptrtoint ptr %in0 to i64\nstore i64 %a, ptr %out0\nret i32 0"
    for alignment, offset, in_place in ((64, 0, True), (64, 4, False), (4, 4, True)):
        e = program(body, (aval((8,), "float32"),), (aval((), "int64"),), input_alignment=alignment)
        f = jit_of(_core.CacheEntry(e, LEAF))
        raw = np.zeros(256, np.uint8)
        start = -raw.ctypes.data % 64 + offset
        x = raw[start : start + 32].view(np.float32)
        f(x)
        assert (int(f(x)) == x.ctypes.data) == in_place


def test_kept_arguments(program, aval, array):
    f = jit_of(_core.CacheEntry(native(program, aval), LEAF, kept=[2]))
    args = {"a": array([1.0, 2.0]), "b": array(1)}, 3.0
    f(*args)
    assert float(f(*args)) == 4.0
    two = program(
        program.pointers(2, 1) + "%x = load float, ptr %in0\nstore float %x, ptr %out0\nret i32 0",
        (aval(()), aval(())),
        (aval(()),),
    )
    g = jit_of(_core.CacheEntry(two, LEAF, kept=(1, 0)))
    g(1.0, 2.0)
    assert float(g(1.0, 2.0)) == 2.0
    assert _core.CacheEntry(two, LEAF, kept=(1, 0)).kept == (1, 0) and _core.CacheEntry(two, LEAF).kept is None


@pytest.mark.parametrize(
    "tree", [0, (0,), (0, 0), [0, 0], {"a": 0, "b": (0, None)}, Point(0, [0]), None, (), ((), None)]
)
def test_results_are_put_together(program, aval, array, tree):
    structure = _core.pytree.structure(tree, None)
    n = structure.num_leaves
    kind = aval((), "float32")
    e = program("ret i32 0", (kind,), (kind,) * n, forward=(0,) * n)
    for run in (e, lambda arrays: e.call(arrays), lambda arrays: tuple(e.call(arrays))):
        f = jit_of(_core.CacheEntry(run, structure))
        x = array(3.0)
        f(x)
        result = f(x)
        assert _core.pytree.structure(result, None) == structure
        assert all(float(leaf) == 3.0 for leaf in leaves_of(result))


def test_entries_that_do_not_fit(program, aval, array):
    e = native(program, aval)
    for entry, args in (
        (_core.CacheEntry(e, LEAF), (array([1.0]),)),
        (_core.CacheEntry(e, LEAF), (array(1, "int32"),)),
        (_core.CacheEntry(e, LEAF), (1.0, 2.0)),
        (_core.CacheEntry(e, LEAF), ()),
        (_core.CacheEntry(e, LEAF, (1,)), (1.0,)),
        (_core.CacheEntry(e, LEAF, ()), (1.0,)),
        (_core.CacheEntry(e, LEAF), (np.zeros(1),)),
        (_core.CacheEntry(lambda a: a, LEAF, (5,)), (1.0,)),
    ):
        f = jit_of(entry)
        with pytest.raises(RuntimeError, match="CacheEntry"):
            f(*args)
        assert f.cache_size() == 0
    vector = program("ret i32 0", (aval((2,)),), (aval((2,)),), forward=(0,))
    with pytest.raises(RuntimeError, match="does not fit"):
        jit_of(_core.CacheEntry(vector, LEAF))(1.0)
    with pytest.raises(ValueError, match="1 outputs, but out_tree has 2 leaves"):
        _core.CacheEntry(e, _core.pytree.structure((0, 0), None))
    for bad in ((3, LEAF), (e, 3), (e, LEAF, 3), (e, LEAF, ["a"])):
        with pytest.raises(TypeError):
            _core.CacheEntry(*bad)
    with pytest.raises(OverflowError):
        _core.CacheEntry(e, LEAF, [-1])
    f = jit_of(_core.CacheEntry(lambda arrays: [], LEAF))
    f(1.0)
    with pytest.raises(RuntimeError, match="returned 0 outputs"):
        f(1.0)
    f = jit_of(_core.CacheEntry(lambda arrays: 3, LEAF))
    f(1.0)
    with pytest.raises(TypeError, match="not iterable"):
        f(1.0)


def test_bad_answers_of_miss():
    for bad in (None, 3, (1,), (1, 2), [1, None], (1, None, 2)):
        f = _core.JitFunction(lambda x: x, lambda a, k, bad=bad: bad)
        with pytest.raises(TypeError, match="miss returned"):
            f(1.0)

    def fail(args, kwargs):
        raise LookupError("in miss")

    with pytest.raises(LookupError, match="in miss"):
        _core.JitFunction(lambda x: x, fail)(1.0)
    assert _core.JitFunction(lambda x: x, lambda a, k: (None, None))(1.0) is None


def test_errors_of_a_hit(program, aval, array, hooks):
    f = jit_of(_core.CacheEntry(native(program, aval), LEAF))
    x = array(1.0)
    f(x)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)
    hooks(asarray=lambda x: 3)
    f(2)
    with pytest.raises(TypeError, match="hook 'asarray' returned a int"):
        f(2)
    hooks(asarray=None)
    with pytest.raises(RuntimeError, match="hook 'asarray' is not set"):
        f(2)


def test_donation_through_the_cache(program, aval, array):
    f = jit_of(_core.CacheEntry(native(program, aval, donate=(0,), alias=(0,)), LEAF))
    f(array(1.0))
    x = array(1.0)
    assert float(f(x)) == 2.0 and x.is_deleted()
    f(5.0)
    assert float(f(5.0)) == 6.0


# ---- the table


def test_least_recently_used_entries_go():
    r = Recorder(maxsize=3)
    kinds = [np.zeros(n, np.float32) for n in range(1, 5)]
    for x in kinds[:3]:
        assert not r(x)
    assert r(kinds[0])
    assert not r(kinds[3]) and r.f.cache_size() == 3
    assert r(kinds[0]) and r(kinds[2]) and not r(kinds[1])
    r.f.clear()
    assert r.f.cache_size() == 0 and not r(kinds[0])


def test_a_miss_may_use_the_function_itself(program, aval):
    e = native(program, aval)

    def miss(args, kwargs):
        if args[0] > 0:
            f(args[0] - 1)
        f.clear()
        return args[0], _core.CacheEntry(e, LEAF)

    f = _core.JitFunction(lambda x: x, miss)
    assert f(3.0) == 3.0 and f.cache_size() == 1 and float(f(3.0)) == 4.0


def test_clearing_during_a_hit():
    f = None

    def run(arrays):
        f.clear()
        gc.collect()
        return arrays

    f = jit_of(_core.CacheEntry(run, LEAF))
    f(1.0)
    assert float(f(2.0)) == 2.0 and f.cache_size() == 0


def test_threads(program, aval, array):
    entry = _core.CacheEntry(native(program, aval, release_gil=True), LEAF)
    f = _core.JitFunction(lambda x: x, lambda a, k: (array(float(a[0]) + 1), entry), maxsize=2)
    failures = []

    def work(seed):
        for i in range(2000):
            x = array(float(i)) if (i + seed) % 3 else float(i)
            if float(f(x)) != i + 1:
                failures.append(i)
            if i % 500 == seed:
                f.clear()

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


# ---- eager functions, entries that expire


def test_entries_expire():
    answers = []

    def miss(args, kwargs):
        answers.append(len(answers))
        if len(answers) == 3:
            return "refused", None
        return "miss", _core.CacheEntry(lambda arrays, n=len(answers): [n], LEAF, uses=2)

    f = _core.JitFunction(lambda x: x, miss)
    assert [f(1.0) for _ in range(10)] == ["miss", 1, 1, "miss", 2, 2, "refused", 2, 2, "miss"]
    assert f.cache_size() == 1
    with pytest.raises(ValueError, match="uses is -1"):
        _core.CacheEntry(miss, LEAF, uses=-1)


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_eager_functions_warm_up(warmup):
    log = []

    def fun(*args, **kwargs):
        log.append("fun")
        return args, kwargs

    def miss(args, kwargs):
        log.append("miss")
        return fun(*args, **kwargs), _core.CacheEntry(lambda arrays: (log.append("run"), arrays)[1], LEAF)

    f = _core.JitFunction(fun, miss, warmup=warmup)
    for _ in range(warmup + 3):
        f(1.0)
    assert log == ["fun"] * warmup + ["miss", "fun", "run", "run"] and f.cache_size() == 1
    log.clear()
    assert f("text", key=1) == (("text",), {"key": 1}) and log == ["fun"]  # what has no key goes to the function
    _core.set_tracing(True)
    try:
        assert f(1.0) == ((1.0,), {}) and log == ["fun", "fun"]
    finally:
        _core.set_tracing(False)
    with pytest.raises(ValueError, match="warmup is -1"):
        _core.JitFunction(fun, miss, warmup=-1)


def test_eager_functions_that_cannot_be_compiled():
    misses = []

    def miss(args, kwargs):
        misses.append(calls)
        return args[0], None

    f = _core.JitFunction(lambda x: x, miss, warmup=1)
    for calls in range(1, 101):
        assert f(float(calls)) == calls
    assert misses == [2, 6, 14, 30, 62] and f.cache_size() == 0  # the wait doubles
    f(1)
    f.clear()
    assert f(2) == 2


# ---- a function like any other


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
    assert repr(f).startswith("<JitFunction of <function example at")
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
