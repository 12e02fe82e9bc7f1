"""What becomes of nests: the form with the least price, which does not depend on the machine, and means the same."""

import re

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.compiler import pipelines
from pullback.loops.schedule import choose
from pullback.loops.schedule.choose import FISSION, FORMS, WRITTEN, watching
from pullback.loops.schedule.machine import AVX512_SERVER, TINY, using
from pullback.util.switches import switches


def forms_of(f, *args):
    """What was chosen for each nest of a jitted function, and all that was looked at."""
    function = pipelines.order_loops(jax.jit(f).lower(*args).compiler_ir("loops"))
    with watching() as watch:
        pipelines.optimize_loops(function)
    return [(choice.form, {choice.form, *(o.form for o in choice.others)}) for _, choice, *_ in watch.nests]


def zeros(*shape):
    return np.zeros(shape, "f4")


def softmax(x):
    return jax.nn.softmax(x, 0)


def standard(x):
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)


def test_columns_that_no_cache_holds_are_walked_by_each_loop_alone():
    assert [form for form, _ in forms_of(standard, zeros(4096, 1024))] == [FISSION]
    assert [form for form, _ in forms_of(softmax, zeros(64, 64))] == [WRITTEN]
    assert [form for form, _ in forms_of(lambda x: x.sum(0), zeros(4096, 1024))] == ["columns"]
    assert [form for form, _ in forms_of(lambda x: x.max(0), zeros(100_000, 10))] == ["folded"]


def test_parts_of_a_nest_do_not_find_in_a_cache_what_others_drove_out():
    def joined(x, y):
        return jnp.roll(jnp.concatenate([x, y], 1), 5, 1)

    halves = zeros(1500, 1500), zeros(1500, 1500)  # 9 MB each, and 18 of the result; the last cache has 32
    with watching() as watch:
        pipelines.optimize_loops(pipelines.order_loops(jax.jit(joined).lower(*halves).compiler_ir("loops")))
    choice = max((nest.choice for nest in watch.nests), key=lambda choice: choice.ns)
    other = next(each for each in choice.others if each.form == FISSION)
    assert choice.form == WRITTEN
    assert min(other.price.moved["memory"], choice.price.moved["memory"]) > 35e6


def test_longer_nests_must_be_able_to_save_more(monkeypatch):
    function = pipelines.order_loops(jax.jit(standard).lower(zeros(4096, 1024)).compiler_ir("loops"))
    looked_at = []
    forms = choose._Chooser.forms
    monkeypatch.setattr(choose._Chooser, "forms", lambda *args: looked_at.append(args) or forms(*args))
    for statements_priced in (200, 1e-9):  # of which the nest has many times as many
        monkeypatch.setattr(choose, "PRICED", statements_priced)
        monkeypatch.setattr(choose, "_known", {})
        looked_at.clear()
        pipelines.optimize_loops(function)
        assert bool(looked_at) == (statements_priced == 200)


def test_short_rows_have_a_lane_each():
    ((form, looked_at),) = forms_of(lambda x: jax.nn.softmax(x, 1), zeros(100_000, 10))
    assert form == "short_rows" and looked_at == {WRITTEN, FISSION, "short_rows", "blocks"}


def test_the_choice_does_not_depend_on_the_machine():
    here = forms_of(standard, zeros(1000, 700))
    for machine in (TINY, AVX512_SERVER):
        with using(machine):
            assert forms_of(standard, zeros(1000, 700)) == here


@pytest.mark.parametrize("shape", [(300, 70), (3, 90, 40), (70, 7), (65, 129)])
@pytest.mark.parametrize("form", [*(kind.name for kind in FORMS), FISSION, WRITTEN])
def test_every_form_means_the_same(form, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")

    def f(x):
        y = x - x.max(-2, keepdims=True)
        e = jnp.exp(y)
        p = e / e.sum(-2, keepdims=True)
        return (
            p,
            jnp.log(e.sum(-2)),
            jnp.argmax(p, -2),
            (p - p.mean(-1, keepdims=True)) * jnp.sqrt((y * y).sum(-1))[..., None],
        )

    with switches.set(form=form):
        found = jax.jit(lambda x: f(x))(x)
    for got, wanted in zip(found, f(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=3e-5, atol=1e-5)


def test_a_form_that_is_left_out_is_not_taken():
    names = frozenset(kind.name for kind in FORMS)
    with switches.set(skip=names | {FISSION}):
        assert all(looked_at == {WRITTEN} for _, looked_at in forms_of(standard, zeros(4096, 1024)))


def test_choices_are_remembered(monkeypatch):
    x = np.random.default_rng(0).standard_normal((2000, 400)).astype("f4")
    monkeypatch.setattr(choose, "_known", {})

    def without_names(text):  # those of scratch space count what was looked at, too
        return sorted(re.sub(r"\b[a-z_]+\d\w*", "?", text).splitlines())

    first = without_names(jax.jit(lambda x: standard(x)).lower(x).as_text("nests"))
    monkeypatch.setattr(choose, "_cheapest", lambda candidates: pytest.fail("it was chosen again"))
    assert without_names(jax.jit(lambda y: standard(y)).lower(x).as_text("nests")) == first
    monkeypatch.setattr(choose, "_known", {})
    with pytest.raises(pytest.fail.Exception):
        jax.jit(lambda z: standard(z)).lower(x).as_text("nests")


def test_a_form_that_does_not_exist():
    with switches.set(form="diagonals"), pytest.raises(ValueError, match="PULLBACK_FORM='diagonals': expected one of"):
        jax.jit(lambda x: standard(x))(zeros(300, 70))
