"""Traced functions as files: the options jax_dump_ir_to and jax_dump_ir_modes."""

import re

import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.util.protobuf import field, number, packed


@pytest.fixture
def folder(tmp_path):
    before = {name: getattr(jax.config, name) for name in ("jax_dump_ir_to", "jax_dump_ir_modes")}
    jax.config.update("jax_dump_ir_to", str(tmp_path / "new"))
    yield tmp_path / "new"
    for name, value in before.items():
        jax.config.update(name, value)


def test_programs_and_counts_of_equations(folder):
    jax.config.update("jax_dump_ir_modes", "jaxpr,eqn_count_pprof")

    def unrolled(x):
        for _ in range(30):
            x = x + 1.0
        return x

    assert jax.jit(unrolled)(jnp.zeros(3))[0] == 30
    text, profile = sorted(folder.iterdir(), key=lambda path: path.suffix != ".txt")
    assert re.fullmatch(r"jax_\d{6}_unrolled\.jaxpr\.txt", text.name)
    assert text.read_text() == str(jax.make_jaxpr(unrolled)(jnp.zeros(3)))
    assert re.fullmatch(r"jax_\d{6}_unrolled\.eqn_count_pprof", profile.name)
    sample = packed(1, [1]) + packed(2, [30]) + field(3, number(1, 3) + number(2, 4))
    assert field(2, sample) in profile.read_bytes()
    for name in ("equations", "count", "add", "unrolled", __file__):
        assert field(6, name.encode()) in profile.read_bytes()


def test_equations_of_called_programs_belong_to_both_lines(folder):
    jax.config.update("jax_dump_ir_modes", "eqn_count_pprof")
    inner = jax.jit(lambda x: x * 2 + x * 3)
    jax.jit(lambda x: inner(x) - 1).trace(jnp.ones(2))
    last = max(folder.iterdir())
    assert packed(1, [1, 2]) + packed(2, [2]) in last.read_bytes()  # two products, in the line of inner and of its call


def test_texts_that_are_not_written_are_told_once(folder, caplog):
    jax.config.update("jax_dump_ir_modes", "hlo of another compiler")
    with caplog.at_level("WARNING"):
        jax.jit(lambda x: x + 1)(2.0)
        jax.jit(lambda x: x + 2)(2.0)
    assert caplog.text.count("'hlo of another compiler' is not written") == 1
    assert list(folder.iterdir()) == []
