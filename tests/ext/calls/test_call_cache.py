"""What a hit of the call cache runs, its table, eager functions."""

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

from pullback._ext import Array, _core

from .call_caches import LEAF, Point, Recorder, jit_of, leaves_of, native, to_array


@pytest.fixture(autouse=True)
def standard_hooks(hooks):
    hooks(asarray=to_array, leaf=None, tracer=None)


# ---- what a hit runs


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
    for offset, in_place in ((0, True), (4, False), (16, True)):
        e = program(body, (aval((8,), "float32"),), (aval((), "int64"),))
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


def test_an_eighth_leaves_a_full_table():
    r = Recorder(maxsize=64)
    kinds = [np.zeros(n, np.float32) for n in range(1, 66)]
    for x in kinds[:64]:
        assert not r(x)
    assert r(kinds[0]) and r.f.cache_size() == 64  # so that another one is the oldest
    assert not r(kinds[64]) and r.f.cache_size() == 64 - 8
    assert r(kinds[0]) and r(kinds[10]) and r(kinds[63]) and not r(kinds[9])


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
