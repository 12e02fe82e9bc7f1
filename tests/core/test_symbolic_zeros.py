"""Symbolic zeros, and the marks of linear arguments, are nodes without leaves, as rules of libraries expect."""

import numpy as np

import pullback as pb
import pullback.numpy as jnp
from pullback.core import ShapedArray
from pullback.interpreters import ad, mlir

AVAL = ShapedArray((3,), np.dtype("float32"))


def test_they_go_through_transformations_as_they_are():
    zero = ad.Zero(AVAL)
    for f in (
        pb.vmap(lambda x: (x, zero)),
        pb.jit(lambda x: (x, zero)),
        pb.jit(pb.vmap(lambda x: (x, zero), out_axes=1)),
    ):
        _, out = f(jnp.ones((2, 2)))
        assert type(out) is ad.Zero and out.aval is AVAL
    leaves, tree = pb.tree.flatten(ad.UndefinedPrimal(AVAL))
    assert leaves == [] and pb.tree.unflatten(tree, []).aval is AVAL
    assert str(pb.make_jaxpr(pb.vmap(lambda x: zero))(jnp.ones(2))).endswith("in () }")


def test_a_rule_that_is_mapped_may_give_one():
    """equinox maps the jvp rules of its primitives; lineax's LSMR has results that do not depend on the rest."""
    p = pb.extend.core.Primitive("twice_and_length")
    p.multiple_results = True

    def run(x):
        return [2 * x, jnp.int32(x.size)]

    def jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        return tuple(run(x)), (2 * t, ad.Zero(ShapedArray((), pb.dtypes.float0)))

    p.def_impl(run)
    p.def_abstract_eval(lambda x: [x, ShapedArray((), np.dtype("int32"))])
    ad.primitive_jvps[p] = lambda primals, tangents: pb.vmap(jvp)(tuple(primals), tuple(tangents))
    mlir.register_lowering(p, mlir.lower_fun(run))
    x = jnp.arange(6.0).reshape(2, 3)
    _, out_dot = pb.jit(lambda x: pb.jvp(lambda x: p.bind(x)[0], (x,), (x,)))(x)
    np.testing.assert_array_equal(out_dot, 2 * x)
