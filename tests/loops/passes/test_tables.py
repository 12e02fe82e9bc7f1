"""Elements of small known tables at places that data give are computed, and are those of the table."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.loops.ir import Builder
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.print import to_text
from pullback.loops.passes.expand_math import expand_math
from pullback.loops.passes.tables import computed_entry

RULE = np.array([0, 1, 1, 1, 0, 1, 1, 0], "i4")
TABLES = {
    "bits": RULE,
    "bools": RULE.astype(bool),
    "two": np.array([7, -3], "i4"),
    "four": np.array([0.1, -0.0, np.nan, np.inf], "f4"),
    "five bits": np.array([31, 0, 17, 4, 30, 1], "i4"),
    "32 bits": np.array([3, 2, 1, 0] * 4, "i4"),
    "eight": np.linspace(-2, 7, 7).astype("f4"),
    "sixteen": np.linspace(-3, 5, 16).astype("f4"),
    "thirteen": np.linspace(-3, 5, 13),
    "negative": np.arange(-5, 6).astype("i4"),
    "large": (np.arange(9) * 123456789 % 2**31).astype("i4"),
    "infinite": np.array([1, 2, 3, 4, 5, np.inf], "f4"),
    "short": np.arange(6).astype("i2"),
    "complex": np.arange(6).astype("c8"),
    "seventeen": np.arange(17).astype("f4"),
}


@pytest.mark.parametrize("name", TABLES)
def test_values(name):
    table = TABLES[name]
    n = len(table)
    k = np.random.default_rng(0).integers(-n, n, 1003).astype("i4")
    out = np.concatenate([k, [n, n + 1, 40, -n - 1, 2**31 - 1, -(2**31)]]).astype("i4")
    with jax.enable_x64(table.dtype == np.float64):
        f = jax.jit(
            lambda k, out: (
                jnp.asarray(table)[k],
                jnp.take(jnp.asarray(table), out, mode="clip"),
                lax.scan(lambda c, k: (c, jnp.asarray(table)[k]), 0, k)[1],
                jnp.asarray(table)[k.reshape(17, 59).T].sum(1),
            )
        )
        plain, clipped, scanned, sums = f(k, out)
    np.testing.assert_array_equal(plain, table[k])
    np.testing.assert_array_equal(np.signbit(plain), np.signbit(table[k])) if plain.dtype.kind == "f" else None
    np.testing.assert_array_equal(clipped, table[np.clip(out, 0, n - 1)])
    np.testing.assert_array_equal(scanned, table[k])
    np.testing.assert_allclose(sums, table[k.reshape(17, 59).T].sum(1, dtype=sums.dtype), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["bits", "bools", "four", "32 bits"])
def test_no_memory_is_read(name):
    """On any machine; larger tables need an instruction for them."""
    table = TABLES[name]
    dtype = {"i": "i32", "b": "bool", "f": "f32"}[table.dtype.kind]
    b = Builder()
    c, k = b.constant("c", table), b.input("k", "i32", 20)
    y, z = b.output("y", dtype, 20), b.output("z", dtype, len(table))
    with b.loop(20) as i:
        b.store(y, i, b.load(c, b.convert(b.load(k, i), "i64")))
    with b.loop(len(table)) as j:
        b.store(z, j, b.load(c, j))  # a copy in order stays one
    before = b.function("f")
    after = expand_math(before)
    text = to_text(after)
    assert "y[i] = c[" not in text and text.count("] = c[") == 1
    places = np.random.default_rng(1).integers(0, len(table), 20).astype("i4")
    for got, want in zip(interpret(after, [places]), interpret(before, [places])):
        np.testing.assert_array_equal(got, want)


def test_larger_tables_where_the_machine_looks_them_up():
    b = Builder()
    k = b.input("k", "i32", 4)
    loads = {}
    for name in ("sixteen", "negative", "large", "infinite", "seventeen", "eight"):
        table = TABLES[name]
        loads[name] = b.load(b.constant(name, table), b.convert(b.load(k, 0), "i64"))
    for lookups, these in ((0, set()), (8, {"eight"}), (16, {"sixteen", "negative", "eight"})):
        found = {name for name, load in loads.items() if computed_entry(load, set(), lookups) is not None}
        assert found == these
