"""Programs that stop, and what the debugger says of their variables."""

from __future__ import annotations

import io

import pytest

import pullback as jax
import pullback.numpy as jnp


def inner(x, note, out, commands):
    doubled = x * 2
    both = {"a": doubled, "b": 3}
    jax.debug.breakpoint(stdin=io.StringIO(commands), stdout=out)
    return both["a"] + len(note)


def session(commands, x=jnp.arange(2.0), wrap=jax.jit):
    """(result, the lines that the debugger printed)."""
    out = io.StringIO()

    def outer(x):
        shifted = x + 1
        return inner(shifted, "hi", out, commands)

    result = wrap(outer)(x)
    jax.effects_barrier()
    return result, out.getvalue().replace("(jdb) ", "").split("\n")


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f])
def test_values_of_this_run(wrap):
    result, lines = session("p doubled\npp both\nnote, doubled.sum()\np 1 +\np nosuch\n\nc\n", wrap=wrap)
    assert result.tolist() == [4, 6]
    assert lines == [
        "Entering jdb:",
        "Array([2., 4.], dtype=float32)",
        "{'a': Array([2., 4.], dtype=float32), 'b': 3}",
        "('hi', Array(6., dtype=float32))",
        "*** SyntaxError: invalid syntax",
        "*** NameError: name 'nosuch' is not defined",
        "",
    ]


def test_frames_and_source():
    _, lines = session("l 1\nu\np shifted\nd\nd\nl x\nbt\ncont\n")
    assert lines[2:5] == [
        '        both = {"a": doubled, "b": 3}',
        "->      jax.debug.breakpoint(stdin=io.StringIO(commands), stdout=out)",
        '        return both["a"] + len(note)',
    ]
    assert '->          return inner(shifted, "hi", out, commands)' in lines
    assert "Array([1., 2.], dtype=float32)" in lines and "At bottommost frame." in lines
    assert "*** list takes a number of lines, got 'x'" in lines
    assert "    <no source>" not in lines
    calls = lines[lines.index("Traceback:") :]
    assert calls[-3:-1] == [
        f'  File "{__file__}", line {inner.__code__.co_firstlineno + 3}',
        "    jax.debug.breakpoint(stdin=io.StringIO(commands), stdout=out)",
    ]


def test_elements_of_vmap_derivatives_and_tokens():
    out = io.StringIO()

    def f(x):
        square = x * x
        return jax.debug.breakpoint(token=square, num_frames=1, stdin=io.StringIO("p square\nc\n" * 3), stdout=out)

    assert jax.jit(jax.vmap(f))(jnp.arange(1.0, 4)).tolist() == [1, 4, 9]
    assert out.getvalue().count("Array(4., dtype=float32)") == 1
    gradient, lines = session("p x\nc\n", x=3.0, wrap=lambda f: jax.jit(jax.grad(f)))
    assert gradient == 2 and "Array(4., dtype=float32)" in lines


@pytest.mark.parametrize("commands", ["q\n", ""])
def test_quitting_ends_the_process(commands):
    with pytest.raises((SystemExit, jax.errors.JaxRuntimeError)) as caught:
        session(commands)
    error = caught.value
    assert isinstance(error, SystemExit) or isinstance(error.__cause__, SystemExit)
