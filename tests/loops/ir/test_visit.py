"""Walks over expressions: what they find, and in which order."""

import random

import pytest

from pullback._ext import _core
from pullback.loops.ir.affine import depends, stride, terms
from pullback.loops.ir.build import Builder
from pullback.loops.ir.ir import Const, Load, Op, Read, Var
from pullback.loops.ir.visit import subexpressions


def _graph(rng, loads):
    """Integer expressions that share parts."""
    x = Builder().input("x", "i64", 10)
    variables = [Var(name, "i64") for name in "ijk"]
    found = [*map(Read, variables), *(Const("i64", value) for value in (-1, 0, 3))]
    for _ in range(rng.randrange(1, 60)):
        a, b = rng.choice(found), rng.choice(found)
        kind = rng.random()
        if kind < 0.1 and loads:
            found.append(Load(x, a))
        elif kind < 0.2:
            found.append(Op("neg", "i64", (a,)))
        else:
            found.append(Op(rng.choice(["add", "sub", "mul", "min"]), "i64", (a, b)))
    return variables, found


def _in_order(roots):
    found = {}

    def visit(expr):
        if expr not in found:
            for operand in expr.args if isinstance(expr, Op) else [expr.index] if isinstance(expr, Load) else []:
                visit(operand)
            found[expr] = None

    for root in roots:
        visit(root)
    return tuple(found)


def test_subexpressions():
    rng = random.Random(1)
    for _ in range(200):
        _, found = _graph(rng, True)
        roots = tuple(rng.choice(found) for _ in range(rng.randrange(4)))
        assert subexpressions(roots) == _in_order(roots)
    deep = Const("i64", 0)
    chain = [deep := Op("neg", "i64", (deep,)) for _ in range(50_000)]
    assert len(subexpressions((deep,))) == len(chain) + 1
    while chain:  # from the end, or each would be freed inside of the freeing of the one that holds it
        deep = chain.pop()


@pytest.mark.parametrize("given", [(), ((1,), Op), ([], Op, Load), ((), Op, int), ((), 1, 2)])
def test_what_post_order_does_not_take(given):
    with pytest.raises((TypeError, AttributeError)):
        _core.post_order(*given)


def _stride(expr, var, varying, definitions):
    """How `stride` is defined, by recursion."""
    parts = [_stride(x, var, varying, definitions) for x in expr.args] if isinstance(expr, Op) else []
    if isinstance(expr, Const):
        return 0
    if isinstance(expr, Read):
        if expr.var in definitions and expr.var is not var:
            return _stride(definitions[expr.var], var, varying, definitions)
        return 1 if expr.var is var else None if expr.var in varying else 0
    if expr.name == "mul":
        if parts == [0, 0]:
            return 0
        return parts[0] * expr.args[1].value if isinstance(expr.args[1], Const) and parts[0] is not None else None
    if expr.name == "min":
        return None if depends(expr, varying, {}) else 0
    if None in parts:
        return None
    return {"add": lambda: parts[0] + parts[1], "sub": lambda: parts[0] - parts[1], "neg": lambda: -parts[0]}[
        expr.name
    ]()


def test_stride():
    rng = random.Random(2)
    for _ in range(100):
        (i, j, k), found = _graph(rng, False)
        definitions = {k: Op("mul", "i64", (Read(i), Const("i64", 5)))} if rng.random() < 0.5 else {}
        for expr in found:
            assert stride(expr, i, {i, k}, definitions, {}) == _stride(expr, i, {i, k}, definitions)
            assert stride(expr, j, {j}, definitions, {}) == _stride(expr, j, {j}, definitions)


def test_sums_of_shared_operands_have_few_terms():
    i = Read(Var("i", "i64"))
    few, many = i, i
    for k in range(60):
        few = Op("add", "i64", (few, Const("i64", k)))
        many = Op("add", "i64", (many, many))
    assert terms(few) == ([i], sum(range(60)))
    assert len(terms(many)[0]) < 1000


def test_what_is_known_of_expressions_is_not_said_of_later_ones():
    """Those made on the way go, and others come to lie where they were."""
    i, j = Var("i", "i64"), Var("j", "i64")
    memo: dict = {}
    for k in range(40):
        read = Read(i if k % 2 else j)
        assert depends(Op("mul", "i64", (read, Const("i64", 3))), {i}, memo) == bool(k % 2)
