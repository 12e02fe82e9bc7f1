"""Products through BLAS and through loop nests, of any strides and types."""

import numpy as np
import pytest
from lowering_checks import check, for_thread_counts, lax, normal

import pullback
from pullback._ext import _core
from pullback.compiler.products import panels
from pullback.compiler.products.kernels import CHAIN
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.schedule.machine import AVX512_SERVER, TINY, using

CASES = [
    ((30, 40), (40, 50), (((1,), (0,)), ((), ()))),
    ((40, 30), (40, 50), (((0,), (0,)), ((), ()))),
    ((40, 30), (50, 40), (((0,), (1,)), ((), ()))),
    ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
    ((6, 30, 40), (6, 40, 20), (((2,), (1,)), ((0,), (0,)))),
    ((30, 6, 40), (40, 20, 6), (((2,), (0,)), ((1,), (2,)))),
    ((30, 40), (40,), (((1,), (0,)), ((), ()))),
    ((300, 40), (300,), (((0,), (0,)), ((), ()))),
    ((300,), (300,), (((0,), (0,)), ((), ()))),
    ((20, 6, 40), (40, 20, 6), (((0, 2), (1, 0)), ((1,), (2,)))),
    ((20, 40), (40, 20), (((0, 1), (1, 0)), ((), ()))),
    ((5, 0), (0, 4), (((1,), (0,)), ((), ()))),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32])
def test_dot_general(case, dtype):
    x_shape, y_shape, numbers = case
    x, y = (4 * normal(*x_shape)).astype(dtype), (4 * normal(*y_shape, seed=1)).astype(dtype)
    check(lambda x, y: lax.dot_general(x, y, numbers), x, y, rtol=1e-3, atol=1e-3)


def test_transposes_are_flags_of_the_product():
    def fun(x, y):
        return lax.dot(lax.transpose(x, (1, 0)), lax.transpose(y, (1, 0)))

    r = check(fun, normal(50, 40), normal(60, 50), rtol=1e-4, atol=1e-4)
    # y is in panels, of all threads or of each by itself, as the machine has it; no transpose is written.
    assert (r.loops, r.buffers("temporary")) in ((3, 1), (4, 0))


def test_reshapes_of_transposes_are_packed():
    def fun(x, y):
        return lax.dot(lax.reshape(lax.transpose(x, (1, 0)), (20, 60)), y)

    check(fun, normal(30, 40), normal(60, 50), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(
    "n, k", [(255, 40), (256, 40), (257, 31), (257, 33), (1030, 16), (1500, 40), (40, 3000), (131, 1100), (70, 4100)]
)
def test_products_with_the_transpose_are_symmetric_computed_by_half_or_not(n, k, dtype):
    x = (8 * normal(n, k)).astype(dtype)
    before, results = _core.num_threads(), []
    program = pullback.jit(lambda x: x @ x.T).lower(x).compile()
    try:
        for threads in (1, 3):
            _core.set_num_threads(threads)
            results.append(np.asarray(program(x)))
    finally:
        _core.set_num_threads(before)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0], results[0].T)
    exact = x.astype(np.float64) @ x.T.astype(np.float64)
    np.testing.assert_allclose(results[0], exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, k", [(32, 300), (33, 4000), (47, 130), (114, 1537), (113, 2049), (255, 40), (256, 40)])
def test_columns_are_multiplied_with_each_other_where_they_lie(n, k, dtype):
    x = normal(k, n).astype(dtype)
    before, results = _core.num_threads(), []
    with pullback.enable_x64(True):
        program = pullback.jit(lambda x: x.T @ x).lower(x).compile()
        try:
            for threads in (1, 2, 3):
                _core.set_num_threads(threads)
                results.append(np.asarray(program(x)))
        finally:
            _core.set_num_threads(before)
    for product in results:
        np.testing.assert_array_equal(product, results[0])
        np.testing.assert_array_equal(product, product.T)
    exact = x.astype(np.longdouble).T @ x.astype(np.longdouble)
    np.testing.assert_allclose(
        results[0], exact, rtol=8 * np.finfo(dtype).eps, atol=40 * np.finfo(dtype).eps * np.sqrt(k)
    )
    loops = program.as_text("loops")
    assert ("_gram(" in loops) == (n < 256) and "packed" not in loops


@pytest.mark.parametrize("turned", ["nn", "nt", "tn"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "bfloat16"])
@pytest.mark.parametrize("m, k, n", [(65, 1301, 103), (72, 1300, 96), (70, 97, 64)])
def test_threads_that_pack_panels_of_their_own_give_the_same_bits(m, k, n, dtype, turned, monkeypatch):
    x, y = (np.asarray(3 * normal(*s) + (2j * normal(*s) if dtype == "complex64" else 0)) for s in ((m, k), (k, n)))
    x, y = x.astype(dtype), y.astype(dtype)
    exact = x.astype(np.complex128) @ y.astype(np.complex128)
    axes = (turned[0] == "n",), (turned[1] == "t",)
    given = [np.swapaxes(a, 0, 1).copy() if side == "t" else a for a, side in zip((x, y), turned)]
    kind = np.float32 if dtype == "bfloat16" else None
    tiles = dtype == "bfloat16" and current_target().multiplies_tiles  # which have panels of their own kind
    results, before = [], _core.num_threads()
    monkeypatch.setattr(panels.prices, "threads_pay", lambda *args: True)
    monkeypatch.setattr(panels, "CORNER", 0)
    try:
        # A large second cache holds all of a panel; a small one, pieces of CHAIN rows.
        ways = ("together", TINY), ("panels", AVX512_SERVER), ("panels", TINY), ("copies", AVX512_SERVER)
        for number, (way, machine) in enumerate(ways):
            if way == "copies" and k > 1000:  # y is too large for a thread to hold
                continue
            for each, name in (("panels", "own_panels_ns"), ("copies", "own_copies_ns")):
                cost = 0.0 if way == each else np.inf
                monkeypatch.setattr(panels.prices, name, lambda *args, cost=cost: cost)
            with using(machine):  # another result makes it another program, whose code is not found

                def function(x, y, number=number):
                    return lax.dot_general(x, y, (axes, ((), ())), preferred_element_type=kind), np.int32(number)

                program = pullback.jit(function).lower(*given).compile()
                text = program.as_text("loops")
            if not tiles:
                assert ("task" in text) == (way != "together")
                if machine is TINY:
                    assert ("_added" in text) == (way == "panels" and k > 2 * CHAIN)
            for threads in (1, 3):
                _core.set_num_threads(threads)
                results.append(np.asarray(program(*given)[0]))
    finally:
        _core.set_num_threads(before)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_allclose(results[0], exact, rtol=1e-5, atol=2e-5 * np.abs(exact).max())


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("m, k, n", [(9, 389, 1111), (40, 256, 1024)])
def test_long_rows_are_packed_in_runs_by_one_thread_and_by_several(m, k, n, dtype, monkeypatch):
    """Many panels at a time, in pieces of few rows: the bits of one call for all."""
    results, before = [], _core.num_threads()
    with pullback.enable_x64(True):
        x, y = normal(m, k).astype(dtype), normal(k, n, seed=1).astype(dtype)
        try:
            for number, (way, shared) in enumerate([("panels", True), ("panels", False), ("together", True)]):
                monkeypatch.setattr(panels.prices, "threads_pay", lambda *args, shared=shared: shared)
                for name in ("own_panels_ns", "own_copies_ns"):
                    cost = 0.0 if name == f"own_{way}_ns" else np.inf
                    monkeypatch.setattr(panels.prices, name, lambda *args, cost=cost: cost)
                with using(TINY):
                    program = pullback.jit(lambda x, y, number=number: (x @ y, np.int32(number))).lower(x, y).compile()
                    text = program.as_text("loops")
                if dtype != "bfloat16" or not current_target().multiplies_tiles:
                    assert ("_added" in text) == (way == "panels")
                    assert ("threads{grain=1} task" in text) == (way == "panels" and shared)
                for threads in (1, 3):
                    _core.set_num_threads(threads)
                    results.append(np.asarray(program(x, y)[0]))
        finally:
            _core.set_num_threads(before)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    exact = x.astype(np.float64) @ y.astype(np.float64)
    close = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 1e-2}[dtype]
    np.testing.assert_allclose(results[0].astype(np.float64), exact, rtol=close, atol=close * np.abs(exact).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "m, n, k", [(60, 60, 1000), (12, 30, 9001), (9, 10, 4000), (33, 50, 20_000), (20, 100, 545), (90, 17, 273)]
)
def test_a_small_result_of_long_rows_is_a_sum_of_pieces(m, n, k, dtype):
    """The same bits for any number of threads; nothing of a row is left out where pieces differ in length."""
    x, y = normal(m, k).astype(dtype), normal(n, k, seed=1).astype(dtype)
    exact = x.astype(np.longdouble) @ y.astype(np.longdouble).T
    with pullback.enable_x64(True):
        for product in (lambda x, y: x @ y.T, lambda x, y: (y @ x.T).T):
            program = pullback.jit(product).lower(x, y).compile()
            assert "partial" in program.as_text("loops")
            one, three = for_thread_counts(program, x, y)
            np.testing.assert_array_equal(one, three)
            np.testing.assert_allclose(one, exact, rtol=1e-5, atol=40 * np.finfo(dtype).eps * np.sqrt(k))


@pytest.mark.parametrize("m, n, packed", [(4, 1024, False), (32, 1024, True), (32, 512, False), (128, 512, True)])
def test_few_rows_meet_a_packed_matrix_where_its_rows_are_long_and_far(m, n, packed, monkeypatch):
    """A product of 32 rows by 1024 x 1024 took 455 us where they lie, 250 packed; by 512 x 512 98 and 129."""
    x, y = normal(m, n).astype("f4"), normal(n, n).astype("f4")
    with using(AVX512_SERVER):
        program = pullback.jit(lambda x, y: x @ y).lower(x, y).compile()
        assert ("_near(" in program.as_text("loops")) == packed
        monkeypatch.setattr(panels.prices, "packing_pays", lambda *args: not packed)
        other = pullback.jit(lambda x, y: (x @ y, m)).lower(x, y).compile()
    np.testing.assert_array_equal(program(x, y), other(x, y)[0])
