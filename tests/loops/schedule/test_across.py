"""Results that each reduce a row of their own: with lanes across them, the same as with lanes along the rows."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.util.switches import switches

from .test_choose import forms_of, zeros

KINDS = {
    "squared": lambda x, y: ((x[..., None, :] - y[..., None, :, :]) ** 2).sum(-1),
    "largest": lambda x, y: jnp.abs(x[..., None, :] - y[..., None, :, :]).max(-1),
    "log of sums": lambda x, y: pullback.nn.logsumexp(x[..., None, :] * y[..., None, :, :] + y[..., None, :, :], -1),
    "nearest": lambda x, y: jnp.argmin(((x[..., None, :] - y[..., None, :, :]) ** 2).sum(-1), -1),
    "kernel": lambda x, y: jnp.exp(-((x[..., None, :] - y[..., None, :, ::-1]) ** 2).sum(-1)).mean(-1),
    "pairs": lambda x, y: jnp.argmax(jnp.sin(x[..., None, :] + y[..., None, :, :]), -1),
}


SHAPES = [((30, 20), (40, 20)), ((9, 3), (17, 3)), ((2, 7, 33), (2, 50, 33)), ((2, 7, 5), (9, 5))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_rows_that_are_copied_mean_the_same(name, shapes):
    r = np.random.default_rng(0)
    x, y = (r.standard_normal(shape).astype("f4") for shape in shapes)
    f = KINDS[name]
    with switches.set(form="across"):
        text = pullback.jit(lambda x, y: f(x, y)).lower(x, y).as_text("nests")
        found = pullback.jit(lambda x, y: f(x, y))(x, y)
    if shapes[0][-1] > 8 and name in ("squared", "largest", "nearest"):  # shorter rows are straight code
        assert "across" in text
    np.testing.assert_allclose(found, f(jnp.asarray(x), jnp.asarray(y)), rtol=1e-5, atol=1e-5)


def test_distances_of_all_pairs_are_computed_so():
    for name in ("squared", "largest"):
        ((form, _),) = forms_of(KINDS[name], zeros(300, 20), zeros(400, 20))
        assert form == "across"
    for shapes in (((3, 20), (400, 20)), ((300, 20), (4, 20))):  # read too rarely, or too few for the lanes
        ((_, looked_at),) = forms_of(KINDS["squared"], *(zeros(*shape) for shape in shapes))
        assert "across" not in looked_at


def test_what_lies_outside_for_some_is_not_copied():
    def f(x, y):
        padded = jnp.concatenate([y, jnp.zeros((3, 20))], 0)[:, ::2]
        return ((x[:, None, ::2] - padded) ** 2).sum(-1)

    r = np.random.default_rng(0)
    x, y = r.standard_normal((40, 20)).astype("f4"), r.standard_normal((30, 20)).astype("f4")
    with switches.set(form="across"):
        found = pullback.jit(f)(x, y)
    np.testing.assert_allclose(found, f(jnp.asarray(x), jnp.asarray(y)), rtol=1e-5)
