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
        lambda x: x.at[1:].set(jnp.sort(x[1:], -1)),  # a call that writes before it has read all
        lambda x: x.at[1:].set(lax.top_k(x[1:], 8)[0]),
        lambda x: x.at[1:].set(lax.reduce_window(x[1:], F(0), lax.add, (3, 3), (1, 1), "SAME")),
        lambda x: x.at[1:].set(jnp.take_along_axis(x[1:], jnp.argsort(x[1:], -1), -1)),
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


CALLS = {
    "sort": lambda z: jnp.sort(z, 1),
    "top_k": lambda z: lax.top_k(z, 4)[0],
    "solve": lambda z: jnp.linalg.solve(z @ z.T + np.eye(3, dtype=F), z),
    "scatter": lambda z: (z * F(2)).at[np.array([0, 2, 1])].add(z),
    "diagonal": lambda z: (z * F(2)).at[np.arange(3), np.arange(3)].add(F(1)),
    "update": lambda z: lax.dynamic_update_slice(z, z[:1] * F(2), (z[0, 0].astype(np.int32), 0)),
    "product": lambda z: z @ (z.T @ z),
    "running": lambda z: jnp.cumsum(z, 1),
    "rows": lambda z: jnp.einsum("ijk,ik->ij", jnp.stack([z.T] * 3), z[:, :3]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_results_of_calls_are_written_into_windows_whose_rows_lie_apart(call):
    z = normal(3, 4, seed=1)
    check(lambda x, z: x.at[1:4, 2:6].set(call(z)), normal(8, 9), z)
    check(lambda x: (x * F(2)).at[1:4, 2:6].set(call(x[1:4, 2:6])), normal(8, 9))
    check(steps(lambda x: ((x * F(0.5)).at[1:4, 2:6].set(call(x[5:, 5:])),)), normal(8, 9))
    check(lambda z: jnp.zeros((2, 3, 5, 4), F).at[1, :, 2].set(call(z)), z)


def test_batches_of_products_are_written_into_windows():
    x = normal(3, 4, 5, 6)
    check(lambda x: jnp.zeros((5, 5, 6, 8), F).at[1:4, 1:, 1:, 2:].set(jnp.einsum("abij,abkj,abkl->abil", x, x, x)), x)
    check(lambda x: jnp.zeros((3, 5, 5, 6), F).at[:, 1:].set(jnp.einsum("ac,bd->abcd", x[:, 0, :, 0], x[0, :, 0])), x)
