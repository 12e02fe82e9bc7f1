import operator

import numpy as np
import pytest

from pullback._ext import _core

BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "divmod": divmod,
    "pow": pow,
    "matmul": operator.matmul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
COMPARE = {
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
}
MIRROR = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}
UNARY = {"neg": operator.neg, "pos": operator.pos, "abs": abs, "invert": operator.invert}


@pytest.mark.parametrize("name", BINARY)
def test_binary(array, operators, name):
    operators({name: lambda a, b: (name, a, b), "r" + name: lambda a, b: ("r" + name, a, b)})
    x, y = array([1.0]), array([2.0])
    apply = BINARY[name]
    assert apply(x, y) == (name, x, y)
    assert apply(x, 3) == (name, x, 3)
    assert apply(3, x) == ("r" + name, x, 3)
    ours = np.ones(1)
    result = apply(ours, x)
    assert result[0] == "r" + name and result[2] is ours  # NumPy gives way
    assert apply(np.float32(2), x)[0] == "r" + name


@pytest.mark.parametrize("name", COMPARE)
def test_comparisons(array, operators, name):
    operators({n: lambda a, b, n=n: (n, a, b) for n in COMPARE})
    x = array([1.0])
    assert COMPARE[name](x, 3) == (name, x, 3)
    assert COMPARE[name](3, x) == (MIRROR[name], x, 3)
    assert COMPARE[name](np.ones(1), x)[0] == MIRROR[name]


@pytest.mark.parametrize("name", UNARY)
def test_unary(array, operators, name):
    operators({name: lambda a: (name, a)})
    x = array([1.0])
    assert UNARY[name](x) == (name, x)


def test_containers(array, operators):
    operators({"getitem": lambda a, i: ("item", i), "iter": lambda a: iter([1, 2]), "contains": lambda a, b: b == 5})
    x = array([1.0, 2.0])
    assert 5 in x and 6 not in x
    assert x["a"] == ("item", "a") and x[[1]] == ("item", [1])  # what is not plain goes to the function
    assert x[1:2, None].tolist() == [[2.0]] and [float(row) for row in x] == [1, 2]
    _core.set_tracing(True)
    try:
        assert x[1:2, None] == ("item", (slice(1, 2), None)) and list(x) == [1, 2]
    finally:
        _core.set_tracing(False)


def test_not_implemented_and_unset(array, operators):
    operators(
        {"add": lambda a, b: NotImplemented, "radd": lambda a, b: NotImplemented, "eq": lambda a, b: NotImplemented}
    )
    operators(dict.fromkeys(("sub", "rsub", "neg", "getitem", "contains", "iter")))
    x = array([1.0])
    for bad in (lambda: x + "a", lambda: "a" + x, lambda: x - 1, lambda: 1 - x):
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
            bad()
    assert (x == None) is False  # noqa: E711
    for bad in (lambda: -x, lambda: x["a"], lambda: 1 in x):
        with pytest.raises(TypeError, match="has not been set"):
            bad()
    with pytest.raises(TypeError, match="modulus"):
        pow(x, 2, 3)


def test_other_types_get_their_turn(array, operators):
    class Other:
        def __radd__(self, x):
            return "other"

    operators({"add": lambda a, b: NotImplemented})
    assert array([1.0]) + Other() == "other"


def test_errors_pass(array, operators):
    def fail(*_):
        raise KeyError("inside")

    operators({"add": fail, "contains": fail, "neg": fail})
    x = array([1.0])
    for bad in (lambda: x + 1, lambda: 1 in x, lambda: -x):
        with pytest.raises(KeyError, match="inside"):
            bad()


@pytest.mark.parametrize("bad", [None, {"nonsense": print}, {"add": 3}, {1: print}])
def test_bad_tables(bad):
    with pytest.raises(TypeError):
        _core.set_operators(bad)


def test_an_operator_may_replace_itself(array, operators):
    def first(a, b):
        operators({"add": lambda a, b: "second"})
        return "first"

    operators({"add": first})
    del first
    x = array([1.0])
    assert x + 1 == "first" and x + 1 == "second"
