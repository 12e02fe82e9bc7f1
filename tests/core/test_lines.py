"""The user's lines that equations belong to, also those of derivatives and of bodies of loops."""

import linecache

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.graph.simplify.inline import inline
from pullback.core.jaxpr import jaxprs_in_params


def _lines_of(jaxpr):
    """The text of the line of each equation, those of inner programs first."""
    found = []
    for eqn in jaxpr.eqns:
        for inner in jaxprs_in_params(eqn.params):
            found += _lines_of(inner)
        file, line, *_ = eqn.source_info or ("", 0)
        found.append((eqn.primitive.name, linecache.getline(file, line).strip()))
    return found


@pb.custom_vjp
def _doubled(x):
    return x * 2


_doubled.defvjp(
    lambda x: (_doubled(x), x),
    lambda x, bar: (bar * jnp.cos(x),),  # of the rule
)


def test_equations_of_derivatives_have_the_lines_that_are_differentiated():
    def body(c, x):
        c = jnp.tanh(c * x)
        return c, jnp.exp(c)

    def loss(w):
        c, ys = pb.lax.scan(body, w, jnp.ones((3, 2)))
        return jnp.sum(_doubled(c) @ ys.T)

    def call(w):
        return pb.vmap(pb.grad(loss))(w)

    found = _lines_of(pb.make_jaxpr(call)(jnp.ones((5, 2))).jaxpr)
    assert not any(line.startswith("return pb.vmap(") for name, line in found if name in ("tanh", "exp", "dot_general"))
    assert {line for name, line in found if name == "dot_general"} == {"return jnp.sum(_doubled(c) @ ys.T)"}
    assert {line for name, line in found if name == "exp"} == {"return c, jnp.exp(c)"}
    assert {line for name, line in found if name == "cos"} == {"lambda x, bar: (bar * jnp.cos(x),),  # of the rule"}
    backwards = [line for name, line in found if name == "scan"]
    assert len(backwards) == 2 and set(backwards) == {"c, ys = pb.lax.scan(body, w, jnp.ones((3, 2)))"}
    products = [line for name, line in found if name == "mul"]
    assert products.count("c = jnp.tanh(c * x)") > 2


def test_functions_of_this_package_have_the_callers_lines():
    x = jnp.ones(3)

    def first(x):
        return pb.nn.gelu(pb.nn.softmax(x))

    def second(x):
        return pb.nn.gelu(pb.nn.softmax(x))  # again

    for f in (first, second):
        here = linecache.getline(__file__, f.__code__.co_firstlineno + 1).strip()
        for call in (f, lambda x, f=f: pb.jvp(f, (x,), (x,)), lambda x, f=f: pb.vmap(f)(x[None]), pb.jacrev(f)):
            flat = inline(pb.make_jaxpr(call)(x))
            lines = {line for name, line in _lines_of(flat.jaxpr) if name in ("exp", "tanh", "reduce_max")}
            assert lines == {here}


def test_functions_of_this_package_that_are_compiled_as_they_are_have_the_line_that_calls():
    facts = pb.report(pb.nn.softmax, jnp.ones(300), path=None).facts  # this one
    assert {line["text"].rpartition("# ")[2] for k in facts["kernels"] for line in k["lines"]} == {"this one"}
