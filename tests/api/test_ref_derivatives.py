"""Derivatives with regard to mutable arrays: cotangents that are added to references."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp


def test_vjp_of_a_reference_adds_to_a_reference():
    x, bar = pb.new_ref(jnp.arange(3.0)), pb.new_ref(jnp.array([0.0, 10.0, 20.0]))
    out, pull = pb.vjp(lambda r, y: jnp.sum(r[...] ** 2) * y, x, 3.0)
    assert out == 15
    zero, y_bar = pull.with_refs(bar, pb.ad.GradValue())(1.0)
    assert isinstance(zero, pb.ad.GradRef) and y_bar == 5
    np.testing.assert_array_equal(bar[...], [0, 16, 32])
    skipped, y_bar = pull.with_refs(pb.ad.DontWant(), pb.ad.GradValue())(2.0)
    assert isinstance(skipped, pb.ad.DidntWant) and y_bar == 10


@pytest.mark.parametrize("way", [lambda f: f, pb.jit])
def test_vjp_goes_through_what_is_written(way):
    """The cotangent of the array before the function, from that of the array afterwards and that of the result."""

    def f(r):
        r[1] = jnp.sin(r[0]) * r[1]
        return r[1] ** 2

    x, bar = pb.new_ref(jnp.array([0.5, 2.0])), pb.new_ref(jnp.array([1.0, 3.0]))
    _, pull = pb.vjp(way(f), x)
    s, c = np.sin(0.5), np.cos(0.5)
    np.testing.assert_allclose(x[...], [0.5, 2 * s], rtol=1e-6)
    pull.with_refs(bar)(1.0)
    after = 3 + 2 * 2 * s  # of r[1], from both
    np.testing.assert_allclose(bar[...], [1 + after * 2 * c, after * s], rtol=1e-6)


def test_vjp_of_references_crosses_jit_and_has_aux():
    forward = pb.jit(lambda w, x: pb.vjp(lambda r: jnp.sum(jnp.sin(w * x)) + r[...], pb.new_ref(w))[0])
    np.testing.assert_allclose(forward(2.0, jnp.ones(3)), 3 * np.sin(2.0) + 2, rtol=1e-6)
    x = pb.new_ref(2.0)
    _, pull, aux = pb.vjp(lambda r: (r[...] ** 3, "aux"), x, has_aux=True)
    assert aux == "aux"
    bar = pb.new_ref(0.0)
    pb.jit(lambda pull, bar: pull.with_refs(bar)(1.0))(pull, bar)
    assert bar[...] == 12


def test_a_gradient_of_a_reference_needs_a_reference():
    _, pull = pb.vjp(lambda r: r[...] ** 2, pb.new_ref(2.0))
    with pytest.raises(ValueError, match="must be accumulated into a Ref"):
        pull(1.0)
    with pytest.raises(ValueError, match="with_refs has no Ref for leaf 0"):
        pull.with_refs(pb.ad.GradValue())
