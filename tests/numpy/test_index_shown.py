"""What `make_jaxpr` shows of index expressions: JAX's equations, which compute what is computed without them."""

import re

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

X = jnp.arange(15.0).reshape(3, 5)
EXPRESSIONS = [
    "0", "-1", "1, 2", "1:3", "::-1", "::2", ":, ::-2", "1:, ::2", "None, 0", "..., 1", "[0, 2]", "[0, -1], [1, 2]",
    "[[0], [1]], [0, 1]", "0, [1, -2]", "[1, 0], 2", ":, [0, 4]", "None, [0, 1], None", "np.array([0, -1])",
    "np.array(1)", "jnp.array(-1)", "jnp.uint8(1)", "np.array([True, False, True])", "jax.ds(1, 2), 0", "i", "-i",
    "i, 1", "1, i", "i, 1:3", "i, ::-1", "jax.ds(i, 2)", "i, [0, 1]", ":, i, None", "[0, 1], ::2", "i, ::2", "[i, 0]",
    "...", "slice(0, 0)", "np.array([], int)", "5", "-9", "True", "i, i",
]  # fmt: skip


def primitives(f, *args):
    return re.findall(r" = ([\w\-]+)", str(jax.make_jaxpr(f)(*args)))


@pytest.mark.parametrize("index", EXPRESSIONS)
def test_what_is_shown_computes_the_same(index):
    scope = {"np": np, "jnp": jnp, "jax": jax}
    place = eval(f"lambda i: np.s_[{index},]", scope)

    def read(x, i):
        return x[place(i)]

    def fill(x, i):
        return x.at[place(i)].get(mode="fill")

    def write(x, i):
        return x.at[place(i)].set(7)

    def add(x, i):
        return x.at[place(i)].add(x[place(i)] * 2)

    def scale(x, i):
        return x.at[place(i)].multiply(2.0, mode="clip")

    for f in (read, fill, write, add, scale):
        shown = jax.make_jaxpr(f)(X, 1)
        (got,) = jax.core.eval_jaxpr(shown.jaxpr, shown.consts, X, 1)
        want = jax.jit(f)(X, 1)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got, want)
        rows = jax.make_jaxpr(jax.vmap(f, (None, 0)))(X, jnp.arange(2))
        (got,) = jax.core.eval_jaxpr(rows.jaxpr, rows.consts, X, jnp.arange(2))
        np.testing.assert_array_equal(got, jax.vmap(f, (None, 0))(X, jnp.arange(2)))


def test_equations_are_those_of_jax():
    window = ["lt", "add", "select_n"] * 2 + ["dynamic_slice", "squeeze"]
    assert primitives(lambda x, i: x[i], X, np.int32(1)) == window
    assert primitives(lambda x, i: x[i], X, 1) == ["convert_element_type", *window]
    assert primitives(lambda x: x[5], X) == window
    assert primitives(lambda x: x[0], X) == ["slice", "squeeze"]
    assert primitives(lambda x: x.at[0].set(1), X) == ["broadcast_in_dim", "broadcast_in_dim", "scatter"]
    assert primitives(lambda x: x.at[0].get(mode="fill"), X) == ["broadcast_in_dim", "gather"]
    assert primitives(lambda x: x[np.array([0, 1])], X) == ["add", "select_n", "broadcast_in_dim", "gather"]
    assert primitives(lambda x: x.at[1:].get(mode="clip"), X) == ["slice"]
    (eqn,) = jax.make_jaxpr(lambda x: x.at[0, 1].set(2.0))(X).eqns[-1:]
    assert eqn.params["unique_indices"] and eqn.params["mode"] == lax.GatherScatterMode.FILL_OR_DROP
    # what runs is still a slice
    assert "dynamic_update_slice" in str(jax.jit(lambda x: x.at[0].set(1)).trace(X).jaxpr)


def test_constants_made_within_are_literals_and_others_are_not():
    one = jnp.float16(1)
    assert str(jax.make_jaxpr(lambda x: x + jnp.float16(1))(np.float32(2))).count("convert") == 0
    assert str(jax.make_jaxpr(lambda: lax.convert_element_type(jnp.array(1), "float32"))()) == (
        "{ lambda ; . let  in (1.0:f32[],) }"
    )
    assert primitives(lambda x: x + one, np.float32(2)) == ["convert_element_type", "add"]


def test_keys_that_are_closed_over_stay_keys():
    key = jax.random.key(0)
    assert primitives(lambda: jax.random.split(key)) == ["random_split"]
    assert primitives(lambda: jax.random.key_data(key)) == ["random_unwrap"]
    shown = jax.make_jaxpr(lambda: jax.random.uniform(key, (3,)))()
    np.testing.assert_array_equal(jax.core.eval_jaxpr(shown.jaxpr, shown.consts)[0], jax.random.uniform(key, (3,)))


def test_take_shows_no_more_than_what_it_does():
    def names(mode, index, axis=1):
        (eqn,) = jax.make_jaxpr(lambda x, i: jnp.take(x, i, axis=axis, mode=mode))(X, index).eqns
        return [e.primitive.name for e in eqn.params["jaxpr"].eqns]

    several = jnp.array([0, 2])
    assert names("clip", several) == ["broadcast_in_dim", "gather"]
    assert names("wrap", several).count("lt") == 2  # those of the remainder
    for index in (several, 1):
        assert names("fill", index) == ["lt", "add", "select_n", "broadcast_in_dim", "gather"]
