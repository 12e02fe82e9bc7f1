"""What notebooks show of arrays and jaxprs."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


def html_of(shown):
    """What IPython asks for; a library that shows objects itself is not to find a second way (`_repr_html_`)."""
    assert not hasattr(shown, "_repr_html_") and not shown._repr_mimebundle_(include={"text/plain"})
    assert not shown._repr_mimebundle_(exclude={"text/html"})
    (html,) = shown._repr_mimebundle_(include=None, exclude=None).values()
    return html


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (2, 2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "bool", "bfloat16"])
def test_arrays(shape, dtype):
    x = jnp.ones(shape, dtype)
    html = html_of(x)
    assert f"{dtype}{list(shape)}" in html and "Sharding" not in html
    assert f"<pre>{np.asarray(x)!s}</pre>" in html


def test_long_arrays_show_their_ends():
    html = html_of(jnp.arange(1_000_000).reshape(1000, 1000))
    assert len(html) < 1000 and "999999" in html and "500500" not in html


def test_arrays_on_several_devices():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "<y>"))
    rows = jax.sharding.NamedSharding(mesh, jax.P("x", None))
    html = html_of(jax.device_put(jnp.ones((4, 6)), rows))
    assert html.count("<td") == 2 and "CPU 0, 1<" in html and "CPU 2, 3<" in html and "<pre>" in html
    along = jax.sharding.NamedSharding(mesh, jax.P(("x", "<y>")))
    assert html_of(jax.device_put(jnp.ones(8), along)).count("<td") == 4
    assert "NamedSharding" in html_of(jax.device_put(jnp.ones((4, 1, 1)), rows))
    html = html_of(along)
    assert "4 parts along <code>x</code> and <code>&lt;y&gt;</code>" in html and html.count("<td") == 4
    assert "dimension 1: whole" in html_of(rows) and html_of(mesh).count("<tr>") == 2
    assert "<y>" not in html + html_of(mesh)


def test_deleted_arrays():
    x = jnp.ones(3)
    x.delete()
    assert "deleted" in html_of(x) and "<pre>" not in html_of(x)


def test_jaxprs_name_the_users_lines():
    closed = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, y: (c + jnp.sin(y), c < y), 0.0, x))(jnp.ones(3))
    for program in (closed, closed.jaxpr):
        html = html_of(program)
        line = next(line for line in html.splitlines() if " sin " in line)
        assert "test_notebooks.py:" in line.partition(">")[0] and "&lt;" in html and "<lambda>" not in html
        assert html.count("\n") == str(program).count("\n")
    short = html_of(jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0))
    assert short.count("<span") == 1 and "\n" not in short
    assert html_of(jax.make_jaxpr(lambda: ())()).startswith("<pre>")
