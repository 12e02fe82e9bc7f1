"""Programs that users see have no constraints of in_shardings and out_shardings: parameters of calls say them."""

import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback.sharding import AxisType, NamedSharding, SingleDeviceSharding
from pullback.sharding import PartitionSpec as P

X = np.arange(8.0, dtype=np.float32)


def cut(spec=P("x")):
    return NamedSharding(jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2), spec)


def primitives(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for value in eqn.params.values():
            yield from primitives(value.jaxpr) if hasattr(value, "jaxpr") else ()


def jitted():
    return jax.jit(lambda x, y: jnp.sin(x) * y, in_shardings=(cut(), None), out_shardings=cut(P("y")))


def test_parameters_say_where_arguments_and_results_lie():
    program = jax.make_jaxpr(lambda x: jitted()(x, x) + 1)(X)
    assert list(primitives(program.jaxpr)) == ["jit", "sin", "mul", "add"]
    params = program.eqns[0].params
    assert params["in_shardings"][0] == cut() and params["out_shardings"] == (cut(P("y")),)
    assert list(primitives(jitted().trace(X, X).jaxpr.jaxpr)) == ["sin", "mul"]


def test_derivatives_and_maps_say_them_too():
    program = jax.make_jaxpr(jax.grad(lambda x: jitted()(x, X).sum()))(X)
    assert "laid_out" not in str(program)
    said = [e.params["in_shardings"] for e in program.eqns if e.primitive.name == "jit"]
    assert said[0][0] == cut() and cut(P("y")) in said[1]
    program = jax.make_jaxpr(jax.vmap(jitted(), in_axes=(0, None)))(np.ones((3, 8), np.float32), X)
    assert list(primitives(program.jaxpr)) == ["jit", "sin", "broadcast_in_dim", "mul"]
    assert program.eqns[0].params["in_shardings"][0].spec[1] == "x"


def test_what_is_inlined_is_a_constraint():
    inner = jax.jit(lambda x: x * 2, in_shardings=cut(), inline=True)
    names = list(primitives(jax.make_jaxpr(lambda x: inner(x + 1) + 1)(X).jaxpr))
    assert names == ["add", "sharding_constraint", "mul", "add"]


def test_such_programs_run_as_the_others():
    program = jax.make_jaxpr(lambda x: jitted()(x, x))(X)
    run = jax.jit(jax.core.jaxpr_as_fun(program))
    (found,) = run(X)
    assert found.sharding.is_equivalent_to(cut(P("y")), 1)
    np.testing.assert_allclose(found, np.sin(X) * X, 1e-6)
    again = jax.make_jaxpr(jax.core.jaxpr_as_fun(program))(X)
    assert str(again) == str(program)


def test_equations_of_device_put():
    place, device = cut(), jax.devices()[1]
    for given in (place, device, SingleDeviceSharding(device), jax.memory.Space.Host, None):
        (eqn,) = jax.make_jaxpr(lambda x, given=given: jax.device_put(x, given))(X).eqns
        assert eqn.primitive is jax.lax.device_put_p and eqn.params["devices"] == (given,)
        assert eqn.params["srcs"] == (None,) and str(eqn.params["copy_semantics"][0]) == "1"
    (eqn,) = jax.make_jaxpr(lambda x: jax.device_put(x, device, donate=True))(X).eqns
    assert repr(eqn.params["copy_semantics"]) == "(ArrayCopySemantics.DONATE_INPUT,)"
    y = jax.device_put(X, jax.devices()[2])
    assert jax.grad(lambda x: (jax.device_put(x, place) ** 2).sum())(y).devices() == {jax.devices()[2]}
