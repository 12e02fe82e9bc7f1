"""Operators, methods and properties of arrays, and that tracers have the same."""

import operator

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

X = np.array([[1.5, -2.0, 3.0], [4.0, 5.5, -6.0]], np.float32)
I = np.array([[1, 2, 3], [4, 5, 6]], np.int32)

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "eq", "ne", "gt", "ge"]


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(same, name):
    f = getattr(operator, name)
    same(lambda m, x: (f(x, 2.0), f(2.0, x), f(abs(x), x)), X)
    same(lambda m, x: (f(x, 2), f(2, x), f(x, x)), I)
    np.testing.assert_allclose(f(jnp.asarray(I), np.full((2, 3), 2, np.int32)), f(I, 2))
    np.testing.assert_allclose(f(np.full((2, 3), 2, np.int32), jnp.asarray(I)), f(2, I))


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_bit_operators(same, name):
    f = getattr(operator, name)
    same(lambda m, x: (f(x, 2), f(2, x)), I)


def test_unary_operators(same):
    same(lambda m, x: (-x, +x, abs(x)), X)
    same(lambda m, x: ~x, I)
    same(lambda m, x: divmod(x, 2.0), X)
    same(lambda m, x: (x @ x.T, x.round(1)), X)
    assert round(jnp.float32(2.34), 1) == np.float32(2.3)
    row = jnp.asarray(X).ravel()
    assert 3.0 in row and 7.0 not in row
    with pytest.raises(ValueError, match="one-dimensional"):
        assert 3.0 in jnp.asarray(X)
    assert [r.tolist() for r in jnp.asarray(I)] == I.tolist()


METHODS = {
    "reductions": lambda x: (x.sum(), x.sum(0), x.prod(1), x.max(), x.min(axis=0), x.mean(), x.std(0), x.var(ddof=1)),
    "truth": lambda x: (x.all(), (x > 0).any(axis=1), (x > 2).all(0)),
    "positions": lambda x: (x.argmax(), x.argmin(1), x.argsort(), x.argsort(axis=0)),
    "running": lambda x: (x.cumsum(), x.cumsum(1), x.cumprod(axis=0)),
    "shape": lambda x: (
        x.reshape(3, 2),
        x.reshape((6,)),
        x.reshape(-1),
        x.ravel(),
        x.flatten(),
        x[None].squeeze(0),
        x.swapaxes(0, 1),
    ),
    "transpose": lambda x: (x.T, x.transpose(), x.transpose(1, 0), x.transpose((1, 0)), x.mT),
    "elements": lambda x: (x.repeat(2, axis=1), x.take(np.array([1, 2])), x.diagonal(), x.trace()),
    "values": lambda x: (x.clip(0, 2), x.round(), x.conj(), x.real, x.imag, x.copy(), x.dot(x.T), x.astype("int32")),
}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_methods(same, name):
    same(lambda m, x: METHODS[name](x), X)


def test_methods_that_differ_from_numpys():
    x = jnp.asarray(X)
    assert x.sort(axis=1).tolist() == np.sort(X, axis=1).tolist()
    assert x.sort(descending=True).tolist() == np.sort(X, axis=1)[:, ::-1].tolist()
    assert x.ptp() == np.ptp(X) and x.nonzero()[0].shape == (6,)
    assert x.compress(jnp.array([False, True]), axis=0).tolist() == [X[1].tolist()]
    assert jnp.arange(3).searchsorted(1) == 1 and jnp.array([2, 0, 1]).argpartition(1).shape == (3,)
    assert jnp.array([0, 1]).choose([jnp.array([1, 2]), jnp.array([3, 4])]).tolist() == [1, 4]
    assert x.__array_namespace__() is x.__array_namespace__(api_version=jnp.__array_api_version__) is jnp
    with pytest.raises(ValueError, match="not available"):
        x.__array_namespace__(api_version="2023.12")
    assert jnp.ones((1, 1)).reshape().shape == () == pullback.jit(lambda x: x.reshape())(jnp.ones(1)).shape
    with pytest.raises(TypeError, match="reshape"):
        x.reshape()
    with pytest.raises(NotImplementedError, match="flatten"):
        _ = x.flat
    assert not hasattr(x, "flat") and jnp.ones(2) == pytest.approx(jnp.ones(2))
    with pytest.raises(ValueError, match="expected matrices, of rank 2 or more"):
        _ = jnp.ones(3).mT


@pytest.mark.parametrize("target", ["int32", "uint8", "int16", "float16", "bool"])
def test_view(target):
    x = np.ascontiguousarray(X)
    np.testing.assert_array_equal(jnp.asarray(x).view(target), x.view(target))
    np.testing.assert_array_equal(pullback.jit(lambda x: x.view(target))(x), x.view(target))


def test_view_of_other_types():
    b = np.arange(16, dtype=np.uint8).reshape(2, 8)
    for target in ("int32", "float32", "uint16", "complex64"):
        np.testing.assert_array_equal(jnp.asarray(b).view(target), b.view(target))
    c = (X[:, :2] + 1j).astype(np.complex64)
    np.testing.assert_array_equal(jnp.asarray(c).view("float32"), c.view(np.float32))
    with pytest.raises(ValueError, match="0d array"):
        jnp.float32(1).view("int8")
    with pytest.raises(ValueError, match="does not fill a whole number"):
        jnp.ones(3, "int8").view("int16")


def test_what_operators_refuse():
    x = jnp.ones(3)
    for other in ([1, 2, 3], "a", None, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = x + other
    assert (x == None) is False and (x == "a") is False and (x != "a") is True  # noqa: E711
    with pytest.raises(TypeError, match="list"):
        _ = x == [1, 1, 1]
    for repeat in (lambda n: [0] * n, lambda n: n * (0,)):  # Python's collections would repeat themselves
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*"):
            repeat(jnp.int32(2))

    class Row(tuple):  # a class of its own knows what its operators mean
        __slots__ = ()

        def __radd__(self, other):
            return "mine"

    assert x + Row((1, 2, 3)) == "mine" and (x == Row((1, 2, 3))) is False

    class Other:
        def __radd__(self, other):
            return "mine"

    assert x + Other() == "mine"


def test_numpy_arrays_do_not_take_over():
    y = np.ones(3) + jnp.ones(3)
    assert isinstance(y, jnp.ndarray)
    assert isinstance(np.float32(2) * jnp.ones(3), jnp.ndarray)


def test_tracers_have_what_arrays_have():
    public = {n for n in dir(jnp.ones(2)) if not n.startswith("_")}
    seen = []
    pullback.jit(lambda x: seen.append(set(dir(x))) or x)(1.0)
    needed = {
        "T", "all", "any", "argmax", "argmin", "argsort", "astype", "at", "clip", "conj", "copy", "cumsum",
        "diagonal", "dot", "dtype", "flatten", "imag", "item", "mT", "max", "mean", "min", "ndim", "nonzero",
        "prod", "ravel", "real", "repeat", "reshape", "round", "shape", "size", "sort", "squeeze", "std",
        "sum", "swapaxes", "take", "tolist", "trace", "transpose", "var", "view",
    }  # fmt: skip
    assert needed <= public and needed <= seen[0]
