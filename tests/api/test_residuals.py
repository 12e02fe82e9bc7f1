"""What derivatives keep, in words."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals


def f(w, x):
    return (checkpoint_name(jnp.sin(jnp.dot(w, x)), "z") * w).sum()


W = jnp.ones((2, 2))


def words(fun, *args):
    return [text.partition(" from /")[0] for _, text in saved_residuals(fun, *args)]


def test_lines_of_what_has_no_file():
    scope = {"jnp": jnp}
    exec(compile("\n\ndef typed(x):\n    return jnp.sin(x)", "<cell 7>", "exec"), scope)
    assert saved_residuals(scope["typed"], 1.0)[0][1] == "output of cos from <cell 7>:4:11 (typed)"


def test_saved_residuals(capsys):
    assert sorted(words(f, W, W)) == ["from the argument w", "from the argument x", "named 'z'", "output of cos"]
    assert sorted(words(jax.checkpoint(f), W, W)) == ["from the argument w", "from the argument x"]
    for policy, kept in [
        (jax.checkpoint_policies.dots_saveable, ["output of dot_general"]),
        (jax.checkpoint_policies.dots_with_no_batch_dims_saveable, ["output of dot_general"]),
        (jax.checkpoint_policies.save_only_these_names("z"), ["named 'z'"]),
        (jax.checkpoint_policies.save_any_names_but_these("z"), []),
        (jax.checkpoint_policies.nothing_saveable, []),
    ]:
        found = words(jax.checkpoint(f, policy=policy), W, W)
        assert [w for w in found if not w.startswith("from the argument")] == kept
    assert words(lambda d: d["a"] * d["a"], {"a": 2.0}) == ["from the argument d['a']"]
    assert words(lambda x: 2 * x, 1.0) == [] or all("argument" not in w for w in words(lambda x: 2 * x, 1.0))
    lines = words(lambda w, x: jnp.sin(jnp.sin(jnp.dot(w, x))), W, W)
    assert lines == ["from the argument w", "from the argument x", "output of cos", "output of cos"]
    print_saved_residuals(lambda x, y: jnp.sin(x) * y, 1.0, 2.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "f32[] from the argument y" and len(lines) == 3
    assert any(line.startswith("f32[] output of cos from ") and line.endswith("<lambda>)") for line in lines)


def test_places_are_columns_of_functions_in_full():
    def inner(x):
        return x + (1 + jnp.sin(x))

    (_, text), *_ = saved_residuals(inner, 1.0)
    assert text.endswith(":24 (test_places_are_columns_of_functions_in_full.<locals>.inner)")


def test_policies_say_what_they_keep():
    """As in JAX; equal ones are one to caches."""
    policies = jax.checkpoint_policies
    assert repr(policies.dots_with_no_batch_dims_saveable) == "DotsSaveable(only_if_no_batch_dims=True)"
    assert repr(policies.save_any_names_but_these("z")) == "SaveAnyNamesButThese(names=frozenset({'z'}))"
    only = policies.save_only_these_names("z")
    assert repr(only) == "SaveOnlyTheseNames(saveable_names=frozenset({'z'}))"
    assert only == policies.save_only_these_names("z") and hash(only) == hash(policies.save_only_these_names("z"))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.grad, lambda f: jax.vmap(f)])
def test_the_program_of_a_checkpoint_has_no_constants(transform):
    """What the function closes over is an operand: libraries evaluate the program with its operands alone."""
    w = jnp.arange(1.0, 5.0).reshape(2, 2)
    f = jax.checkpoint(lambda x: jnp.sum(jnp.sin(x @ w)))
    x = jnp.ones((3, 2))
    jaxpr = jax.make_jaxpr(lambda x, w: transform(f)(x))(x, w)
    programs = [jaxpr.jaxpr]
    found = []
    while programs:
        for eqn in programs.pop().eqns:
            inner = eqn.params.get("jaxpr")
            if eqn.primitive.name == "remat2":
                found.append(eqn)
            elif inner is not None:
                programs.append(inner.jaxpr)
    assert found
    for eqn in found:
        program = eqn.params["jaxpr"]
        assert not program.constvars
        operands = [jnp.full(v.aval.shape, 0.5, v.aval.dtype) for v in eqn.invars]
        outs = jax.core.eval_jaxpr(program, (), *operands)
        for a, b in zip(outs, eqn.primitive.bind(*operands, **eqn.params), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x, w)[0], transform(f)(x), rtol=1e-6)


def test_residuals_that_are_arguments_are_passed_on():
    x = jnp.arange(3.0)
    first, second = jax.make_jaxpr(jax.grad(jax.jit(lambda x: (x * jnp.exp(x)).sum())))(x).eqns
    assert len(first.outvars) == 2 and first.invars[0] in second.invars  # the result and exp(x)
    np.testing.assert_allclose(jax.grad(jax.jit(lambda x: (x * jnp.exp(x)).sum()))(x), (1 + x) * jnp.exp(x), rtol=1e-6)


def test_programs_of_checkpoint_hold_literals():
    jaxpr = jax.make_jaxpr(jax.grad(jax.checkpoint(lambda x: jnp.sin(x) * 2)))(1.0).jaxpr
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["sin", "mul", "remat2"]
    body = jaxpr.eqns[-1].params["jaxpr"].jaxpr
    assert not body.constvars and [eqn.primitive.name for eqn in body.eqns] == ["cos", "mul", "mul"]
    assert jaxpr.eqns[-1].params["differentiated"]
