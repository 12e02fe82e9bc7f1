"""What notebooks show of arrays and jaxprs."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (2, 2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "bool", "bfloat16"])
def test_arrays(shape, dtype):
    x = jnp.ones(shape, dtype)
    html = x._repr_html_()
    assert f"{dtype}{list(shape)}" in html and str(x.sharding) in html
    cells = x.size if x.ndim in (1, 2) else 0
    assert html.count("<td>") == cells and html.count(f"<td>{np.ones((), x.dtype)[()]!s}</td>") == cells
    assert ("<pre>" in html) == (x.ndim == 0)


def test_long_arrays_show_their_ends():
    html = jnp.arange(1_000_000).reshape(1000, 1000)._repr_html_()
    assert html.count("<td>") == 81 and "<td>999999</td>" in html and "<td>500500</td>" not in html
    assert jnp.arange(9)._repr_html_().count("…") == 1 and "…" not in jnp.arange(8)._repr_html_()


def test_deleted_arrays():
    x = jnp.ones(3)
    x.delete()
    assert "deleted" in x._repr_html_() and "<td>" not in x._repr_html_()


def test_jaxprs_name_the_users_lines():
    closed = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, y: (c + jnp.sin(y), c < y), 0.0, x))(jnp.ones(3))
    for program in (closed, closed.jaxpr):
        html = program._repr_html_()
        line = next(line for line in html.splitlines() if " sin " in line)
        assert "test_notebooks.py:" in line.partition(">")[0] and "&lt;" in html and "<lambda>" not in html
        assert html.count("\n") == str(program).count("\n")
    short = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)._repr_html_()
    assert short.count("<span") == 1 and "\n" not in short
    assert jax.make_jaxpr(lambda: ())()._repr_html_().startswith("<pre>")
