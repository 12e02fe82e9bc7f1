"""Plans: the same results as the references, whatever the layout of operands; memory, views, errors."""

import time

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback._ext import _core
from pullback.runtime.eager.plan import make_plan
from pullback.runtime.eager.plan_values import Temporary, coalesce, place
from pullback.runtime.eager.work import UNCOMPILED, uses_before_compilation

RNG = np.random.default_rng(0)


def planned(fun, *args):
    """The results of the plan of `fun`."""
    closed = pb.make_jaxpr(fun)(*args)
    return make_plan(closed).executable.call([jnp.asarray(a) for a in args])


def check(fun, *args, rtol=1e-6):
    want = pb.tree_util.tree_leaves(fun(*[jnp.asarray(a) for a in args]))
    got = planned(fun, *args)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype and g.weak_type == w.weak_type
        np.testing.assert_allclose(
            np.asarray(g).astype(np.complex128), np.asarray(w).astype(np.complex128), rtol=rtol, atol=1e-7
        )


def f32(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_elementwise(n, dtype):
    x = (RNG.normal(size=n) * 3).astype(jnp.dtype(dtype))
    check(lambda x: (x + x, x * 2, x == x, jnp.abs(x), jnp.where(x != 0, x, 1)), x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float32", "float64", "complex64"])
def test_negation_of_what_lies_apart(dtype):
    x = np.arange(24).reshape(6, 2, 2).astype(dtype)
    check(lambda x: (-(x + x).transpose(0, 2, 1), -(x + x).transpose(1, 0, 2)), x)


@pytest.mark.parametrize("target", ["bool", "int8", "uint8", "int32", "uint32", "float16", "float32", "complex64"])
@pytest.mark.parametrize("source", ["bool", "int8", "uint8", "int32", "uint32", "float32"])
def test_conversions(source, target):
    values = np.array([0, 1, -1, 3.7, -3.7, 300, -300, 2e9, 3e9, -3e9, 5e9, np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        x = values.astype(np.float32) if source == "float32" else np.nan_to_num(values).astype(np.int64).astype(source)
    check(lambda x: pb.lax.convert_element_type(x, target), x)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x.T,
        lambda x: x[::-1, 1:4:2],
        lambda x: x.T.reshape(-1)[3:],
        lambda x: x[None, :, None] + x[:, None],
        lambda x: jnp.concatenate([x, x[:1]]) * 2,
        lambda x: jnp.stack([x, -x], axis=1),
        lambda x: jnp.pad(x, ((1, 0), (2, 1)), constant_values=3),
        lambda x: jnp.broadcast_to(x[:, :1], (4, 9)).reshape(6, 6),
        lambda x: (x, x.reshape(2, -1), x),
        lambda x: jnp.zeros(3),
        lambda x: jnp.arange(5) + jnp.sum(x),
        lambda x: jnp.split(x, 2),
    ],
)
def test_views_and_joins(fun):
    check(fun, f32(4, 5) if "reshape(2, -1)" not in fun.__name__ else f32(4, 6))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), ()])
@pytest.mark.parametrize("reduce", ["sum", "prod", "max", "min", "mean", "any"])
def test_reductions(axis, reduce):
    x = f32(3, 17, 4)
    check(lambda x: getattr(jnp, reduce)(x, axis=axis), x, rtol=1e-5)
    check(lambda x: getattr(jnp, reduce)(x.T[::-1], axis=axis), x, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D", "l"])
def test_sums_of_views(dtype):
    """However the elements lie: columns, rows, backwards, repeated, with gaps; from vectors to single columns."""
    rng = np.random.default_rng(3)
    views = {
        "as it is": lambda x, np: x,
        "backwards": lambda x, np: np.flip(x, (1, 2)),
        "with gaps": lambda x, np: x[1::2, ::3],
        "repeated": lambda x, np: np.broadcast_to(x[:, :1], x.shape),
        "turned": lambda x, np: np.transpose(x, (2, 0, 1)),
    }
    with pb.enable_x64(True):
        for columns in (1, 2, 3, 4, 7, 16, 37):
            x = rng.integers(-9, 9, (5, 33, columns)).astype(dtype)
            for name, view in views.items():
                axes = (0, 1, 2, (0, 2), (1, 2), (0, 1))
                got = planned(lambda x, view=view, axes=axes: [view(x, jnp).sum(axis) for axis in axes], x)
                for g, axis in zip(got, axes):
                    np.testing.assert_array_equal(np.asarray(g), view(x, np).sum(axis), f"{name} {axis} {columns}")


def test_sums_of_special_values():
    x = np.full((3, 20, 21), -0.0, np.float32)
    x[1, 3, 4:7] = np.nan, np.inf, -np.inf
    x[1, 5, 5:7] = -np.inf, np.inf
    for axis in (0, 1, 2, (0, 1), None):
        (got,) = planned(lambda x, axis=axis: jnp.sum(x, axis=axis), x)
        with np.errstate(invalid="ignore"):
            wanted = x.sum(axis) + np.float32(0)  # sums begin with zero: -0 alone is 0
        np.testing.assert_array_equal(np.asarray(got), wanted)
        number = ~np.isnan(wanted)  # which NaN comes of NaN and the infinities is the CPU's to say
        np.testing.assert_array_equal(np.signbit(got) & number, np.signbit(wanted) & number)


def test_sums_over_any_axis_stay_plans():
    """One loop does all columns: sums over the middle axis took 4 us, a call of NumPy's loop for each row."""
    for axis in (0, 1, 2, None):
        closed = pb.make_jaxpr(lambda x, axis=axis: jnp.sum(x, axis=axis))(f32(15, 15, 15))
        assert make_plan(closed).nanoseconds < UNCOMPILED


def test_sums_are_as_accurate_as_pairwise_ones():
    x = f32(100_000) + 1
    (got,) = planned(jnp.sum, x)
    assert abs(float(got) - x.astype(np.float64).sum()) <= abs(float(x.sum()) - x.astype(np.float64).sum()) + 0.01


@pytest.mark.parametrize(
    "spec, shapes",
    [
        ("i,i->", [(5,), (5,)]),
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ji,kj->ik", [(4, 3), (5, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("aijb,bjk->akib", [(2, 3, 4, 2), (2, 4, 5)]),
        ("ni,ni->ni", [(10, 10), (10, 10)]),
        ("ij,jk->ik", [(3, 0), (0, 5)]),
        ("ij,jk->ik", [(0, 4), (4, 5)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij,kj->ik", [(16, 1), (17, 1)]),
        ("bia,cb->cbai", [(2, 3, 5), (4, 2)]),
        ("ab,ab->ba", [(3, 0), (3, 0)]),
    ],
)
def test_products(spec, shapes):
    check(lambda *x: jnp.einsum(spec, *x), *[f32(*s) for s in shapes], rtol=1e-5)


def test_products_without_sums_are_elementwise():
    """Matrices of 1 x 1 would cost a call each."""
    x, y = jnp.zeros((100, 10)), jnp.zeros((100, 10))
    plan = make_plan(pb.make_jaxpr(lambda x, y: jnp.einsum("ni,ni->ni", x, y))(x, y))
    assert plan.nanoseconds < make_plan(pb.make_jaxpr(lambda x, y: x * y)(x, y)).nanoseconds + 1


def test_references_are_called_where_there_is_no_loop():
    x = f32(3, 4)
    check(lambda x: lax.cummax(jnp.sort(x + 1, axis=0), axis=1) * 2, x)
    check(lambda x: pb.lax.top_k(x, 2), x)


def test_errors_of_references_are_raised():
    def fail(*arrays):
        raise ZeroDivisionError("on purpose")

    aval = jnp.zeros(3).aval
    step = (fail, 1, ((0, 0, (3,), (4,), aval.dtype), (1, 0, (3,), (4,), aval.dtype)))
    run = _core.Executable(0, [aval], [aval], plan=[step])
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            run.call([jnp.ones(3)])


@pytest.mark.parametrize("step", [(1, 2), ("x",) * 5, (("copy", 3), (1,), (4, 4), (), ()), ((), (), (), (), ())])
def test_malformed_plans_are_refused(step):
    aval = jnp.zeros(3).aval
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        _core.Executable(0, [aval], [aval], plan=[step])


def test_control_flow_has_no_plan():
    closed = pb.make_jaxpr(lambda x: pb.lax.fori_loop(0, 3, lambda i, x: x * 2, x))(1.0)
    with pytest.raises(NotImplementedError):
        make_plan(closed)


def test_memory_of_intermediate_results_is_used_again():
    a, b, c, d = (Temporary(100) for _ in range(4))
    offsets, size = place([[("in", 0), a], [a, b], [b, c], [c, d]])
    assert size == 256 and offsets[a] == offsets[c] and offsets[b] == offsets[d] != offsets[a]


def test_coalesced_dimensions():
    assert coalesce((2, 3, 4), [(48, 16, 4), (0, 0, 0)]) == ([24], [[4], [0]])
    assert coalesce((2, 1, 4), [(16, 99, 4)]) == ([8], [[4]])
    assert coalesce((2, 3), [(4, 8)]) == ([2, 3], [[4, 8]])
    assert coalesce((), [()]) == ([], [[]])


def test_large_views_share_memory_and_small_ones_do_not():
    x = jnp.asarray(f32(100, 100))
    (big,) = planned(lambda x: x.reshape(-1), x)
    assert big.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    y = jnp.asarray(f32(3, 3))
    (small,) = planned(lambda x: x.reshape(-1), y)
    assert small.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()


def test_stacks_of_matrices_pay_for_a_compilation_soon():
    """A reference takes longer for many matrices than for one of as many elements, which compiled code hardly beats."""
    shapes = (400, 3, 3), (60, 60)
    many, one = (make_plan(pb.make_jaxpr(jnp.linalg.eigvals)(f32(*shape))).nanoseconds for shape in shapes)
    assert 5 * uses_before_compilation(many) < uses_before_compilation(one)


def test_what_is_compiled_for_its_first_call_has_no_plan():
    for function in (jnp.linalg.cholesky, jnp.cumsum, jnp.fft.fft):
        with pytest.raises(NotImplementedError, match=r"plan: (cholesky|cumsum|fft)"):
            make_plan(pb.make_jaxpr(function)(f32(3, 3)))


def test_functions_with_kernels_do_not_pay_for_a_compilation():
    """Compiled code runs the same instructions, so that a plan of one of them gains little."""
    x = f32(10_000)
    alone = make_plan(pb.make_jaxpr(pb.lax.exp)(x)).nanoseconds
    many = make_plan(pb.make_jaxpr(lambda x: pb.lax.exp(x) * x + x - 2 / x)(x)).nanoseconds
    assert 2 * alone < many


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rows, columns", [(64, 64), (63, 65), (131, 70), (64, 1024), (1, 64), (5, 300)])
def test_rows_that_become_columns(dtype, rows, columns):
    x = RNG.integers(0, 100, (rows, 2, columns)).astype(dtype)
    with pb.enable_x64():
        for order in [(2, 0, 1), (2, 1, 0), (1, 2, 0)]:
            np.testing.assert_array_equal(planned(lambda x: lax.transpose(x, order), x)[0], x.transpose(order))  # noqa: B023
        for f in (lambda x: x[:, 0].T, lambda x: x[::2, 1, ::-1].T, lambda x: jnp.flip(x[:, 1].T, 0)):
            np.testing.assert_array_equal(planned(f, x)[0], np.asarray(pb.jit(f)(x)))


def test_rows_that_become_columns_are_moved_by_lines():
    costs = [make_plan(pb.make_jaxpr(lambda x: x.T)(np.zeros((n, n), "f4"))).nanoseconds / n**2 for n in (12, 120)]
    assert costs[1] < 0.25 < costs[0]  # nanoseconds for an element


EDGES = np.array([-np.inf, -2.5, -1.5, -0.5, -0.0, 0.0, 0.49, 0.5, 1.5, 2.5, 7.75, np.inf, np.nan, 3e7, 0.1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4", "c8"])
def test_signs_remainders_and_rounding_are_loops(dtype):
    x = EDGES.astype(dtype) if dtype[0] in "fc" else np.array([0, 1, 2, 7, 9, 100, 3]).astype(dtype)
    y = x[::-1].copy()
    functions = {
        "f": [lax.sign, lambda x: lax.rem(x, y), lambda x: lax.round(x), lambda x: lax.round(x, lax.RoundingMethod(1))],
        "i": [lax.sign, lambda x: lax.rem(x, y)],
        "u": [lax.sign, lambda x: lax.rem(x, y)],
        "c": [lax.conj],
    }[dtype[0]]
    with pb.enable_x64(), np.errstate(all="ignore"):
        for f in functions:
            closed = pb.make_jaxpr(f)(x)
            planned = make_plan(closed)
            assert planned.nanoseconds < UNCOMPILED  # no call of a reference
            (got,) = planned.executable.call([jnp.asarray(x)])
            (eqn,) = closed.jaxpr.eqns
            operands = [x if a is closed.jaxpr.invars[0] else y for a in eqn.invars]
            want = eqn.primitive.reference(*operands, **eqn.params)
            np.testing.assert_array_equal(np.asarray(got), want)
            if dtype[0] == "f":
                kept = ~np.isnan(want)
                assert (np.signbit(got) == np.signbit(want))[kept].all()
            np.testing.assert_array_equal(np.asarray(got), pb.jit(f)(x))


WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("name", ["div", "rem", "shift_left", "shift_right_logical", "shift_right_arithmetic"])
def test_integers_have_the_results_of_the_reference(name, dtype):
    with pb.enable_x64(True):
        info = np.iinfo(dtype)
        edges = [0, 1, 2, 7, 8, 31, 63, 64, 100, info.max, info.min, info.min + 1]
        if info.min < 0:
            edges += [-1, -2, -7, -100]
        x, y = (v.astype(dtype) for v in np.meshgrid(np.array(edges, object), np.array(edges, object)))
        function = lambda x, y: getattr(lax, name)(x, y)
        (got,) = planned(function, x, y)
        with np.errstate(all="ignore"):
            want = getattr(lax, f"{name}_p").reference(x, y)
        assert got.dtype == dtype
        np.testing.assert_array_equal(np.asarray(got), want)
        np.testing.assert_array_equal(np.asarray(pb.jit(function)(x, y)), want)
        (turned,) = planned(lambda x, y: function(x.T, y.T), x, y)
        np.testing.assert_array_equal(np.asarray(turned), want.T)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts_of_complex_numbers(dtype):
    with pb.enable_x64(True):
        x = (RNG.normal(size=(3, 5)) + 1j * RNG.normal(size=(3, 5))).astype(dtype)
        x[0, 0], x[1, 1] = complex(np.nan, -0.0), complex(-np.inf, 1)
        real, imag, joined, turned = planned(
            lambda x: (lax.real(x), lax.imag(x) * 2, lax.complex(lax.imag(x), lax.real(x)), lax.imag(x.T)), x
        )
        np.testing.assert_array_equal(np.asarray(real), x.real)
        np.testing.assert_array_equal(np.asarray(imag), x.imag * 2)
        np.testing.assert_array_equal(np.asarray(joined).real, x.imag)
        np.testing.assert_array_equal(np.asarray(joined).imag, x.real)
        np.testing.assert_array_equal(np.asarray(turned), x.imag.T)


def slow_entry(aval, uses):
    """An entry of a plan whose function takes a third of what compiling does."""

    def slow(x):
        time.sleep(_core.COMPILATION * 1e-9 / 3)
        return x

    step = (slow, 1, ((0, 0, (3,), (4,), aval.dtype), (1, 0, (3,), (4,), aval.dtype)))
    plan = _core.Executable(0, [aval], [aval], plan=[step])
    return _core.CacheEntry(plan, pb.tree_util.tree_structure(0), None, uses)


@pytest.mark.parametrize("has_better", [True, False])
def test_what_takes_long_is_asked_for_again_before_its_calls_are_used_up(has_better):
    x, asked = jnp.ones(3), []

    def miss(args, kwargs):
        asked.append(args)
        return args[0], slow_entry(x.aval, 1000) if has_better or len(asked) == 1 else None

    function = _core.JitFunction(lambda x: x, miss)
    for _ in range(12):
        function(x)
    assert len(asked) > 2 if has_better else len(asked) == 2  # refused: not before all calls are used up
