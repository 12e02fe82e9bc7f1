"""Interpreters that users write: subclasses of jax.core.Trace and jax.core.Tracer, as haiku's to_dot has them."""

import copy

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.extend import core as jex

X = np.arange(3, dtype=np.float32)


class NamingTracer(jax.core.Tracer):
    def __init__(self, trace, value):
        super().__init__(trace, jax.typeof(value))
        self.value = value


class NamingTrace(jax.core.Trace):
    """Runs primitives under its parent, and keeps their names."""

    def __init__(self, parent):
        super().__init__()
        self.parent_trace, self.names = parent, []

    def below(self, x):
        return x.value if isinstance(x, NamingTracer) and x._trace is self else x

    def process_primitive(self, primitive, tracers, params):
        values = [self.below(t) for t in tracers]
        out = primitive.bind_with_trace(self.parent_trace, values, [jax.typeof(v) for v in values], params)
        self.names.append(primitive.name)
        return jax.tree.map(lambda v: NamingTracer(self, v), out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        self.names.append("custom_jvp_call")
        return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, out_trees, symbolic_zeros):
        self.names.append("custom_vjp_call")
        return fun.call_wrapped(*tracers)


def named(fun, *args):
    """(fun(*args), the names of the primitives that it binds)."""
    with jex.take_current_trace() as parent:
        trace = NamingTrace(parent)
        with jex.set_current_trace(trace):
            out = fun(*[NamingTracer(trace, a) for a in args])
    return jax.tree.map(trace.below, out, is_leaf=lambda x: isinstance(x, NamingTracer)), trace.names


def double_sin(x):
    return jax.lax.mul(jax.lax.sin(x), jax.lax.full_like(x, 2.0))


def test_primitives_reach_the_trace():
    out, names = named(double_sin, jnp.asarray(X))
    np.testing.assert_allclose(out, 2 * np.sin(X), rtol=1e-6)
    assert names[0] == "sin" and names[-1] == "mul"
    assert named(lambda x: jax.jit(jax.lax.cos)(x), jnp.asarray(X))[1] == ["jit"]
    assert named(lambda x: jax.lax.cond(x[0] > -1, jax.lax.sin, jax.lax.cos, x), jnp.asarray(X))[1][-1] == "cond"
    out, names = named(lambda x: jax.lax.scan(lambda c, _: (c * 2, c), x, None, length=2), jnp.asarray(X))
    assert names[-1] == "scan" and np.array_equal(out[0], 4 * X) and out[1].shape == (2, 3)


def test_primitives_that_jax_has_not_are_spelled_out():
    """Rules of libraries are for JAX's primitives."""
    known = {p for p in (getattr(jax.lax, n, None) for n in dir(jax.lax)) if isinstance(p, jex.Primitive)}
    known = {p.name for p in known} | {"jit", "custom_jvp_call", "custom_vjp_call"}
    known.remove("optimization_barrier")  # JAX's functions of NumPy bind none
    x = jnp.asarray(np.array([3.0, 0.0, 1.0, 5.0, 0.0], np.float32))
    for f in (
        lambda x: jnp.nonzero(x, size=4, fill_value=9)[0],
        lambda x: jnp.nonzero(jnp.stack([x, x]), size=8)[1],
        lambda x: jnp.median(x),
        lambda x: jnp.nanquantile(x, 0.3),
        lambda x: jnp.partition(x, 2)[2],
        lambda x: jnp.argpartition(x, 2)[2],
        lambda x: jnp.linspace(x[0], x[3], 5),
        lambda x: jnp.digitize(x, jnp.linspace(0.0, 4.0, 5)),
        lambda x: jnp.histogram(x, 3)[0],
        jnp.log10,
    ):
        out, names = named(f, x)
        np.testing.assert_allclose(out, f(x), rtol=1e-6)
        assert set(names) <= known, set(names) - known


def test_functions_with_rules_of_their_own():
    assert named(jax.nn.relu, jnp.asarray(X))[1][0] == "custom_jvp_call"

    @jax.custom_vjp
    def f(x):
        return jax.lax.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, t: (t * x,))
    out, names = named(f, jnp.asarray(X))
    assert names == ["custom_vjp_call", "sin"] and np.allclose(out, np.sin(X))


def test_inside_other_transformations():
    def f(x):
        return named(double_sin, x)[0]

    np.testing.assert_allclose(jax.jit(f)(X), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f)(X), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(jnp.asarray(X)), 2 * np.cos(X), rtol=1e-6)
    assert jax.eval_shape(f, X).shape == (3,)
    assert "sin" in str(jax.make_jaxpr(f)(X))


def test_numbers_of_python_reach_the_trace():
    class Seeing(NamingTrace):
        def process_primitive(self, primitive, tracers, params):
            seen.extend(t for t in tracers if not isinstance(t, NamingTracer))
            return super().process_primitive(primitive, tracers, params)

    seen = []
    with jex.take_current_trace() as parent:
        trace = Seeing(parent)
        with jex.set_current_trace(trace):
            x = NamingTracer(trace, jnp.asarray(X))
            jax.lax.igamma(1.5, x), jax.lax.add(x, 2.5), jax.lax.polygamma(1.0, x)
    assert [(type(n), n) for n in seen] == [(float, 1.5), (float, 2.5), (float, 1.0)]


def test_programs_inside_of_a_program():
    inner = jax.jit(lambda x: jax.jit(jnp.sin)(x) + 1)
    program = jax.make_jaxpr(lambda p, x: jax.lax.cond(p, inner, jnp.cos, x))(True, 1.0)
    found = list(jex.subjaxprs(program.jaxpr))
    assert len(found) == 2 and found == jex.jaxprs_in_params(program.eqns[-1].params)
    assert sorted(e.primitive.name for jaxpr in found for e in jaxpr.eqns) == ["cos", "jit"]


def test_a_trace_without_a_rule_says_so():
    class Empty(jax.core.Trace):
        pass

    with jex.set_current_trace(Empty()), pytest.raises(NotImplementedError, match="Empty has no process_primitive"):
        jax.lax.sin_p.bind(jnp.asarray(X))


def test_a_jaxpr_as_a_function_has_a_name():
    fun = jex.jaxpr_as_fun(jax.make_jaxpr(jnp.sin)(X))
    fun.__name__ = "sine"
    np.testing.assert_allclose(fun(X)[0], np.sin(X), rtol=1e-6)


def test_tracers_that_say_their_trace_and_nothing_else():
    """As quax writes them: the initialiser of Tracer is not called, `_trace` is set, `aval` is a property."""

    class Held(jax.core.Tracer):
        def __init__(self, trace, value):
            self._trace = trace
            self.value = value

        @property
        def aval(self):
            return jax.typeof(self.value)

    class Counting(jax.core.Trace):
        def __init__(self, parent_trace):
            super().__init__()
            self.parent_trace = parent_trace
            self.seen = []

        def process_primitive(self, primitive, tracers, params):
            self.seen.append(primitive.name)
            values = [t.value if isinstance(t, Held) else t for t in map(self.full_raise, tracers)]
            with jex.set_current_trace(self.parent_trace):
                out = primitive.bind(*values, **params)
            return [Held(self, x) for x in out] if primitive.multiple_results else Held(self, out)

    x = jnp.arange(3.0)
    with jex.take_current_trace() as parent:
        trace = Counting(parent)
        assert jex.trace_ctx.trace is not trace
        with jex.set_current_trace(trace):
            assert jex.trace_ctx.trace is trace
            out = jnp.sin(Held(trace, x)) * 2
    assert out._trace is trace and out.full_lower() is out and out.to_concrete_value() is None
    assert trace.seen == ["sin", "mul"] and out.value.tolist() == (jnp.sin(jnp.arange(3.0)) * 2).tolist()


def test_custom_rules_can_be_bound_again_below_with_other_functions():
    """As quax does it: the call and the flat rule are wrapped by transformations of linear_util."""
    from pullback.extend import linear_util as lu

    @lu.transformation_with_aux
    def counted(*args):
        outs = yield args, {}
        yield outs, len(outs)

    class Passing(NamingTrace):
        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            values = [self.below(t) for t in tracers]
            (fun, n1), (jvp, n2) = counted(fun), counted(jvp)
            params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
            outs = primitive.bind_with_trace(self.parent_trace, values, [jax.typeof(v) for v in values], params)
            self.names.append(lu.merge_linear_aux(n1, n2))
            return [NamingTracer(self, x) for x in outs]

    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    f.defjvp(lambda primals, tangents: (f(*primals), 7 * tangents[0]))

    def through(x):
        with jex.take_current_trace() as parent:
            trace = Passing(parent)
            with jex.set_current_trace(trace):
                out = f(NamingTracer(trace, x), 2.0)
        names.extend(trace.names)
        return out.value

    names = []
    assert float(through(jnp.float32(0.5))) == float(jnp.sin(0.5) * 2) and names == [(True, 1)]
    assert jax.grad(through)(0.5) == 7 and names[1:] == [(False, 2)]


def test_primitives_whose_rules_are_methods_of_their_class():
    """As kfac_jax writes them: implementation, types with effects, and several results are the class's."""

    class Tag(jex.Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__("users_tag")
            jax.interpreters.mlir.register_lowering(self, self.lowering)
            jax.interpreters.ad.primitive_jvps[self] = lambda x, t, k: (self.bind(*x, k=k), t[:k])
            jax.interpreters.batching.primitive_batchers[self] = lambda x, d, k: (self.bind(*x, k=k), d[:k])

        def impl(self, *args, k):
            return tuple(args[:k])

        def abstract_eval(self, *avals, k):
            return avals[:k], jax.core.no_effects

        def lowering(self, _, *args, k):
            return tuple(args[:k])

    tag = Tag()

    def f(x, y):
        return tag.bind(2 * x, y, k=1)[0]

    assert f(1.0, 2.0) == jax.jit(f)(1.0, 2.0) == jax.grad(f)(1.0, 2.0) == 2.0
    assert jax.vmap(f)(jnp.ones(2), jnp.ones(2)).tolist() == [2.0, 2.0]
    assert "users_tag[k=1]" in str(jax.make_jaxpr(f)(1.0, 2.0))


def test_kinds_of_tracers_have_names():
    seen = []
    jax.make_jaxpr(lambda x: seen.append(x) or x)(1.0)
    jax.vmap(lambda x: seen.append(x) or x)(X)
    jax.jvp(lambda x: seen.append(x) or x, (1.0,), (1.0,))
    kinds = jax.interpreters.partial_eval.DynamicJaxprTracer, jax.interpreters.batching.BatchTracer
    kinds += (jax.interpreters.ad.JVPTracer,)
    assert [[isinstance(x, kind) for kind in kinds] for x in seen] == np.eye(3, dtype=bool).tolist()


def test_a_shape_rule_that_asks_another_ones():
    """Its error is its own."""
    asked = jex.Primitive("asks_of_add")

    @asked.def_abstract_eval
    def _(_x):
        return jax.lax.add_p.abstract_eval(jax.typeof(jnp.zeros((2, 3))), jax.typeof(jnp.zeros((2, 2))))

    with pytest.raises(TypeError, match="add got incompatible shapes"):
        jax.make_jaxpr(asked.bind)(X)


def test_a_shape_rule_that_says_effects():
    """What has an effect stays where nothing needs its result, and runs in order with the rest."""
    said = []
    tells = jex.Primitive("tells_of_it")
    tells.def_impl(lambda x: (said.append(float(x)), x)[1])
    effect = object()
    tells.def_effectful_abstract_eval(lambda x: (x, {effect}))
    jaxpr = jax.make_jaxpr(lambda x: (tells.bind(x), 3)[1])(X[0])
    assert jaxpr.effects == {effect} and [e.primitive for e in jaxpr.eqns] == [tells]
    looped = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, _: (tells.bind(c), None), x, None, length=2)[0])(X[0])
    assert looped.effects == {effect}
    assert float(tells.bind(jnp.float32(2.0))) == 2 and said == [2]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_primitive_is_another_one(how):
    """It may be given a name of its own, and has the rules of the first."""
    copied = how(jax.lax.mul_p)
    copied.name = "times_of_test"
    jaxpr = jax.make_jaxpr(lambda x: copied.bind(x, x) + jax.lax.mul_p.bind(x, x))(X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["times_of_test", "mul", "add"]
    for _ in range(4):  # eager calls, which are remembered from the second on
        assert copied.bind(X, X).tolist() == (X * X).tolist()
    assert jax.jit(lambda x: copied.bind(x, x))(X).tolist() == (X * X).tolist()
    assert jax.vmap(jax.grad(lambda x: copied.bind(x, x)))(X).tolist() == (2 * X).tolist()


def test_a_copy_of_a_call():
    """Inside of a program that is copied a primitive stays what it is."""
    called = jax.make_jaxpr(jax.jit(jnp.sin))(X)
    renamed = copy.deepcopy(called.eqns[0].primitive)
    renamed.name = "call_of_test"
    assert called.eqns[0].primitive.name == "jit"
    (out,) = renamed.bind(X, **called.eqns[0].params)
    assert out.tolist() == jnp.sin(X).tolist()
    assert copy.deepcopy(called).eqns[0].primitive is called.eqns[0].primitive


class SlottedTracer(jax.core.Tracer):
    """One whose class has no room for more than it names, as jax.experimental.jet's."""

    __slots__ = ["value"]

    def __init__(self, trace, value):
        super().__init__(trace, jax.typeof(value))
        self.value = value


def test_tracers_with_slots_have_room_for_their_type():
    tracer = SlottedTracer(NamingTrace(None), jnp.asarray(X))
    assert tracer.aval == jax.typeof(jnp.asarray(X)) and tracer.shape == X.shape
    assert not hasattr(tracer, "__dict__")


def test_traces_that_users_make():
    """A trace of differentiation made by hand takes the tag that libraries give it."""

    def both(x):
        with jex.take_current_trace() as parent:
            trace = jax.interpreters.ad.JVPTrace(parent, jex.TraceTag())
            with jex.set_current_trace(trace):
                y = jnp.sin(jax.interpreters.ad.JVPTracer(trace, x, jnp.ones(x.shape)))
        return y.primal, y.tangent

    x = np.float32([0.5, 1.0])
    for f in (both, both, jax.jit(both), jax.vmap(both)):  # the second call runs what the first one remembered
        primal, tangent = f(x)
        np.testing.assert_allclose(primal, np.sin(x), rtol=1e-6)
        np.testing.assert_allclose(tangent, np.cos(x), rtol=1e-6)


def test_what_is_concrete():
    """What is differentiated outside of jit and vmap is known."""
    seen = []

    def f(x):
        seen.append((jax.core.is_concrete(x), jax.core.is_concrete(2 * x)))
        return jnp.sum(x**2)

    x = jnp.ones(2)
    jax.grad(f)(x), jax.jvp(f, (x,), (x,)), jax.hessian(f)(x), jax.linearize(f, x)
    assert set(seen) == {(True, True)}
    seen.clear()
    jax.jit(f)(x), jax.vmap(f)(jnp.ones((3, 2))), jax.grad(jax.jit(f))(x), jax.vmap(jax.grad(f))(jnp.ones((3, 2)))
    assert set(seen) == {(False, False)}


def test_primitives_of_code_that_belongs_to_no_module():
    names = {"Primitive": jax.extend.core.Primitive}
    exec("p = Primitive('of_no_module')\np.def_impl(lambda x: x)\np.def_abstract_eval(lambda x: x)", names)
    with pytest.raises(NotImplementedError, match="of_no_module"):
        jax.jit(names["p"].bind)(1.0)
