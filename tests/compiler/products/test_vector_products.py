"""Products of a few vectors with a matrix whose rows are what they are multiplied with."""

import numpy as np
import pytest

import pullback as pb
from pullback import lax
from pullback._ext import _core
from pullback.compiler.products import vector_products

CASES = [  # vectors, rows of the matrix, their length
    (1, 129, 300), (2, 131, 257), (3, 130, 300), (4, 200, 201), (5, 203, 190), (7, 128, 512),
    (8, 129, 300), (9, 64, 700), (2, 3000, 9), (3, 2001, 15),
]  # fmt: skip


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), CASES)
def test_few_vectors_by_rows(m, n, k, tall, monkeypatch):
    monkeypatch.setattr(vector_products, "LEAST_OF_SEVERAL", 1 << 14)
    rng = np.random.default_rng(m)
    x, y = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(n, k)).astype(np.float32)
    product = (lambda x, y: y @ x) if tall else (lambda x, y: x @ y.T)
    given = np.ascontiguousarray(x.T) if tall else x
    want = product(given.astype(float), y.astype(float))
    before, found = _core.num_threads(), []
    try:
        for threads in (1, 2):
            _core.set_num_threads(threads)
            found.append(np.asarray(pb.jit(product)(given, y)))
    finally:
        _core.set_num_threads(before)
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], want, rtol=1e-5, atol=1e-5 * np.sqrt(k))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [2, 3])
def test_thin_products_call_no_library(n, dtype):
    rng = np.random.default_rng(n)
    draw = lambda *shape: (
        rng.normal(size=shape).astype(dtype) * np.asarray(1 + 2j if dtype == "complex64" else 1, dtype)
    )
    tall, wide, y = draw(3001, 12), draw(12, 3001), draw(12, n)
    for f, x in ((lambda x, y: x @ y, tall), (lambda x, y: x.T @ y, wide), (lambda x, y: y.T @ x, wide)):
        lowered = pb.jit(f).lower(x, y)
        assert "gemm" not in lowered.as_text("nests")
        np.testing.assert_allclose(
            lowered.compile()(x, y), f(x.astype(np.result_type(dtype, float)), y), rtol=1e-4, atol=1e-4
        )


def test_a_large_matrix_is_not_copied_for_a_few_vectors(monkeypatch):
    monkeypatch.setattr(vector_products, "FAR_BYTES", 1 << 16)
    for m, copied in ((8, False), (32, False), (40, True)):
        lowered = pb.jit(lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ())))).lower(
            np.zeros((m, 256), np.float32), np.zeros((256, 256), np.float32)
        )
        assert ("tile" in lowered.as_text("nests")) == copied


@pytest.mark.parametrize(
    "left, right",
    [((25,), (25, 100)), ((100, 25), (25,)), ((3, 2000), (2000, 64)), ((300, 40), (40,)), ((40,), (40, 3000))],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_items_of_a_batch_have_temporaries_of_their_own(left, right, dtype):
    """Threads share the items: what one sums up must not lie where another sums."""
    rng = np.random.default_rng(0)
    a, b = (pb.numpy.asarray(rng.integers(-4, 5, (7, *shape)), dtype) for shape in (left, right))
    wanted = np.stack([np.asarray(p, np.float64) @ np.asarray(q, np.float64) for p, q in zip(a, b)])
    f = pb.jit(pb.vmap(pb.numpy.dot))
    for _ in range(10):
        np.testing.assert_array_equal(np.asarray(f(a, b)), wanted.astype(f(a, b).dtype))
