"""Reductions down columns: which are walked row by row, and that they mean the same."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.loops.ir import NP_DTYPE, Builder, Loop
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.visit import statements
from pullback.loops.schedule.apply.columns import columns, folded
from pullback.util.switches import switches

from .forms import in_form
from .test_parallelize import run, through_passes


@pytest.fixture(autouse=True)
def _always():
    """Arrays of a size that the interpreter can walk count as large."""
    with switches.set(form="columns"):
        yield


def column_reduction(rows, width, combine="add", dtype="f32", stacked=1, stores=False, pair=False):
    """For each of `stacked` matrices: y[j] = 2 * (init + reduction of x[:, j])."""
    b = Builder()
    size = stacked * rows * width
    x, y = b.input("x", dtype, size), b.output("y", dtype, stacked * width)
    z = b.output("z", dtype, size) if stores else None
    with b.loop(stacked) as i, b.loop(width) as j:
        scale = b.let(b.load(x, j))
        groups = [((b.const(dtype, 3),), combine)] * (1 + pair)
        with b.carried_loop(rows, groups, "reduce") as r:
            at = i * (rows * width) + r.i * width + j
            value = b.let(b.load(x, at))
            if z is not None:
                b.store(z, at, value + scale)
            following = [b.op(combine, v, value if k == 0 else value * value) for k, v in enumerate(r.vars)]
            r.update(*following)
        total = r.results[0] + r.results[1] if pair else r.result
        b.store(y, i * width + j, total * b.const(dtype, 2))
    return b.function("columns")


@pytest.mark.parametrize("rows, width", [(1000, 64), (640, 117), (129, 300), (64, 2048), (33, 5003), (4000, 100)])
@pytest.mark.parametrize("combine, dtype", [("add", "f32"), ("max", "f32"), ("add", "i32"), ("min", "f64")])
def test_walked_by_rows(rows, width, combine, dtype):
    function = column_reduction(rows, width, combine, dtype)
    walked = in_form(columns, function)
    check(walked)
    assert len(walked.body) == 2  # pieces, then what combines them
    lanes = [s for s in statements(walked.body) if isinstance(s, Loop) and s.role == "vector"]
    assert lanes and not any(s.role == "reduce" and s.extent.value == rows for s in _loops(walked))
    x = np.random.default_rng(0).integers(-99, 99, rows * width)
    x = (x if dtype == "i32" else x / 7).astype(NP_DTYPE[dtype])
    with np.errstate(all="ignore"):
        (want,) = interpret(function, [x])
    final = through_passes(function)
    for parts in (1, 3):
        (got,) = run(final, [x], [want], parts)
        assert np.array_equal(got, run(final, [x], [want], 7, backwards=True)[0])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3 if combine == "add" else 0)


def _loops(function):
    return [s for s in statements(function.body) if isinstance(s, Loop) and hasattr(s.extent, "value")]


@pytest.mark.parametrize("rows, width", [(300, 130), (20, 2501)])  # one strip, two of different widths
def test_what_is_beside_the_sum_is_kept(rows, width):
    function = column_reduction(rows, width, stacked=3, stores=True, pair=True)
    walked = in_form(columns, function)
    check(walked)
    assert walked is not function
    x = np.random.default_rng(1).normal(size=(3, rows, width)).astype("f4")
    y = 2 * (6 + x.sum(1) + (x * x).sum(1))
    z = x + x[:1, :1]
    got = run(through_passes(function), [x.ravel()], [y.ravel(), z.ravel()], 2)
    np.testing.assert_allclose(got[0], y.ravel(), rtol=1e-4, atol=1e-4)
    assert np.array_equal(got[1], z.ravel())


def test_what_does_not_go_down_columns_stays():
    for form in (columns, folded):
        along = column_reduction(400, 1)
        assert in_form(form, along) is along
    short = column_reduction(20, 10)
    assert in_form(folded, short) is short


@pytest.mark.parametrize(
    "rows, width, stacked", [(10_000, 40, 1), (20_007, 3, 1), (4096, 10, 1), (500, 5, 7), (300, 3, 2)]
)
def test_few_columns_are_folded(rows, width, stacked):
    function = column_reduction(rows, width, stacked=stacked)
    assert in_form(folded, function) is not function
    x = np.random.default_rng(2).random(stacked * rows * width).astype("f4") + 1
    with switches.set(form="folded"):
        function = through_passes(function)
    results = [run(function, [x], [np.zeros(stacked * width, "f4")], parts)[0] for parts in (1, 2, 5)]
    assert all(np.array_equal(results[0], other) for other in results)
    exact = 2 * (3 + x.reshape(stacked, rows, width).astype("f8").sum(1).ravel())
    assert np.abs(results[0] / exact - 1).max() < 2e-7


def test_what_is_known_of_a_column_is_repeated_for_the_rows_side_by_side():
    rng = np.random.default_rng(0)
    x, m = rng.standard_normal((6, 3001, 5)).astype("f4"), rng.standard_normal((6, 5)).astype("f4")

    def spread(x, m):
        return jnp.sum((x - m[:, None]) ** 2 * jnp.abs(m[:, None]), 1), jnp.max(x * m[:, None], 1)

    total, most = pullback.jit(spread)(x, m)
    d = x.astype("f8") - m[:, None]
    np.testing.assert_allclose(total, np.sum(d**2 * np.abs(m[:, None]), 1), rtol=1e-6)
    np.testing.assert_array_equal(most, (x * m[:, None]).max(1))


def test_long_sums_keep_their_rounding_errors():
    rows, width = 40_000, 64
    function = through_passes(column_reduction(rows, width))
    x = np.random.default_rng(2).random(rows * width).astype("f4") + 1
    (got,) = run(function, [x], [np.zeros(width, "f4")], 2)
    exact = 2 * (3 + x.reshape(rows, width).astype("f8").sum(0))
    assert np.abs(got / exact - 1).max() < 2e-7


def test_infinite_sums():
    rows, width = 1024, 64
    x = np.ones((rows, width), "f4")
    x[3, 5] = np.inf
    x[7, 6] = np.nan
    x[:, 7] = 3e38
    x[5, 8], x[900, 8] = np.inf, -np.inf
    (got,) = run(through_passes(column_reduction(rows, width)), [x.ravel()], [np.zeros(width, "f4")], 2)
    assert got[5] == np.inf and np.isnan(got[6]) and got[7] == np.inf and np.isnan(got[8]) and got[9] == 2 * 1027


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "weighted, plain",
    [
        (lambda w, x: (w[:, None] * x).sum(0), lambda w, x: w @ x),
        (lambda w, x: w @ (x * x), lambda w, x: w @ x**2),
        (lambda w, x: pullback.vmap(lambda c: (w * c).max(), 1)(x), lambda w, x: (w[:, None] * x).max(0)),
    ],
)
def test_rows_that_are_weighted_are_walked_too(weighted, plain, dtype):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((500, 200)).astype(dtype), rng.standard_normal(500).astype(dtype)
    program = pullback.jit(weighted)
    text = program.lower(w, x).as_text("nests")
    assert "partial" in text, text  # row by row, in pieces that are combined
    np.testing.assert_allclose(program(w, x), plain(w.astype("f8"), x.astype("f8")), rtol=1e-4, atol=1e-4)
