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


W3, WS = jnp.eye(3) + 0.5, jnp.stack([jnp.eye(3), jnp.ones((3, 3)), jnp.eye(3) * 2])


def layer(w, x):
    return jnp.sin(checkpoint_name(jnp.sin(x @ w), "z"))


BODIES = {
    "jit": (lambda w, x: jax.jit(layer)(w, x).sum(), W3, "[3,3]"),
    "checkpoint": (lambda w, x: jax.checkpoint(layer)(w, x).sum(), W3, "[3,3]"),
    "scan": (lambda w, x: jax.lax.scan(lambda c, w: (layer(w, c), c[0]), x, w)[0].sum(), WS, "[3,3,3]"),
    "backwards": (lambda w, x: jax.lax.scan(lambda c, w: (layer(w, c), c), x, w, reverse=True)[1].sum(), WS, "[3,3,3]"),
    "scan in scan": (
        lambda w, x: jax.lax.fori_loop(0, 2, lambda i, c: jax.lax.scan(lambda c, w: (layer(w, c), None), c, w)[0], x)
        .sum(),
        WS,
        "[2,3,3,3]",
    ),
    "checkpoint in scan": (
        lambda w, x: jax.lax.scan(lambda c, w: (jax.checkpoint(layer)(w, c), None), x, w)[0].sum(),
        WS,
        "[3,3,3]",
    ),
    "cond": (lambda w, x: jax.lax.cond(x[0, 0] > 0, layer, lambda w, x: x, w, x).sum(), W3, "[3,3]"),
    "known": (
        lambda w, x: (jax.lax.scan(lambda c, w: (layer(w, c), c), x, jax.lax.stop_gradient(w))[1] * w * x).sum(),
        WS,
        "[3,3,3]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_policies_keep_what_they_name_in_bodies(body):
    """As in JAX: a loop stacks what is kept of its iterations; derivatives are those without a policy."""
    fun, w, kept = BODIES[body]
    x = jnp.arange(9.0).reshape(3, 3) / 9 + 0.1
    policies = jax.checkpoint_policies
    want = jax.grad(fun, (0, 1))(w, x)
    for policy, count in [
        (policies.nothing_saveable, 0),
        (policies.dots_saveable, 1),
        (policies.save_only_these_names("z"), 1),
        (policies.save_only_these_names("other"), 0),
        (policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("z")), 2),
    ]:
        remade = jax.checkpoint(fun, policy=policy)
        found = [aval.str_short() for aval, words in saved_residuals(remade, w, x) if "argument" not in words]
        assert found == [f"float32{kept}"] * count
        for run in (lambda f: f, jax.jit):
            for bar, exact in zip(run(jax.grad(remade, (0, 1)))(w, x), want):
                np.testing.assert_allclose(bar, exact, rtol=1e-5, atol=1e-6)


def test_branches_share_the_places_of_what_they_keep():
    """No more of a type than the branch that keeps most, also without a policy."""
    branches = [
        lambda x: jnp.sin(x @ W3),
        lambda x: jnp.sin(jnp.sin(x @ W3[:, :2]) @ W3[:2]),
        lambda x: jnp.sin(jnp.sin(jnp.sin(x))),
    ]
    x = jnp.ones((3, 3))

    def kept(fun):
        return sorted(aval.str_short() for aval, words in saved_residuals(fun, x) if "output" in words)

    for n in range(3):
        fun = lambda x, n=n: jax.lax.switch(n + 0 * x[0, 0].astype(int), branches, x).sum()
        assert kept(jax.checkpoint(fun, policy=jax.checkpoint_policies.dots_saveable)) == [
            "float32[3,2]",
            "float32[3,3]",
        ]
        assert kept(fun).count("float32[3,3]") == 3  # the cosines of the last
        np.testing.assert_allclose(jax.grad(fun)(x), jax.grad(lambda x, n=n: branches[n](x).sum())(x), rtol=1e-6)
