"""Windows are computed where their array will have them, if nobody else reads what was there."""

import numpy as np
import pytest
from tests.lowering_checks import check, normal

import pullback.numpy as jnp
from pullback import lax

F = np.float32


def temporaries(r):
    """Sizes of the temporaries of a program, smallest first."""
    return sorted(b.size for b in r.lowered.function.buffers if b.space == "temporary" and b.size > 1)


def steps(body, *carry):
    """The program that makes three steps, as arrays in and out."""
    return lambda *carry: lax.fori_loop(0, 3, lambda i, c: body(*c), carry)


@pytest.mark.parametrize("box", [np.s_[:, :-1], np.s_[1:], np.s_[1:-1, 2:-1], np.s_[2:3], np.s_[:, 4:5]])
@pytest.mark.parametrize("reads", [True, False])
def test_windows_are_set_in_place(box, reads):
    def body(x, y):
        old = x[box] if reads else 0
        return x.at[box].set(old + jnp.sin(y[box]) * F(2)), y * F(0.5)

    r = check(steps(body), normal(7, 9), normal(7, 9, seed=1))
    assert not temporaries(r)


def test_fields_on_staggered_grids():
    def body(e, hx, hy):
        hx = hx.at[:, :-1].add(F(-0.5) * (e[:, 1:] - e[:, :-1]))
        hy = hy.at[:-1].add(F(0.5) * (e[1:] - e[:-1]))
        e = e.at[1:, 1:].add(F(0.5) * ((hy[1:, 1:] - hy[:-1, 1:]) - (hx[1:, 1:] - hx[1:, :-1])))
        return e, hx, hy

    r = check(steps(body), normal(12, 13), normal(12, 13, seed=1), normal(12, 13, seed=2))
    assert not temporaries(r)


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x.at[1:].set(x[:-1] * F(2)),  # reads what lies elsewhere
        lambda x: x.at[1:-1].set(x[:-2] + x[2:]),
        lambda x: x.at[:, 1:].set(jnp.flip(x[:, 1:], 1) + F(1)),
        lambda x: x.at[2:].set(x[2:] + x[2:].sum()),  # all of it before any is written
        lambda x: x.at[1:].set(jnp.sin(x[1:])) + x.sum(),  # is read before as it was
        lambda x: x.at[1:].set(jnp.sin(x[1:])) + jnp.flip(x, 0),
        lambda x: x.at[:2].set(x[2:4]).at[2:4].set(x[:2]),  # trade places
        lambda x: x.at[:3].set(jnp.sin(x[:3])).at[1:].mul(F(3)).at[2:, 1:].add(x[2:, 1:]),
        lambda x: x.at[:4, :4].set(x[:4, :4].T + F(1)),
        lambda x: x.at[1:].set(x[:-1]),
        lambda x: x.at[:, 4].set(jnp.sin(x[:, 4])).at[3, 2:].add(x[2, 2:]),
        lambda x: x.at[2:4].set(jnp.cumsum(x[2:4], 0)),
        lambda x: jnp.where(x.sum() > 0, x.at[1:].add(F(1)), x),
    ],
)
def test_results_are_as_if_the_window_were_computed_before(body):
    check(steps(lambda x: (body(x),)), normal(6, 8))
    check(lambda x: body(x * F(2)), normal(6, 8))
    check(body, normal(6, 8))


def test_values_that_others_read_too():
    def body(x, y):
        new = jnp.sin(x[1:]) + y[1:]
        return x.at[1:].set(new), y.at[:-1].set(new)

    check(steps(body), normal(6, 8), normal(6, 8, seed=1))


def test_arguments_stay_what_they_are():
    x = normal(6, 8)
    r = check(lambda x: x.at[1:].set(jnp.sin(x[1:])), x)
    assert r.outputs[0][0].tolist() == x[0].tolist()
