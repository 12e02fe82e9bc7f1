"""Products of a vector with a matrix that is made for it alone are sums, in whose loop the matrix is made."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

RNG = np.random.default_rng(0)
X, W, V = (RNG.standard_normal(shape).astype("f4") for shape in ((300, 200), (300,), (200,)))
STACK, FEW = RNG.standard_normal((5, 40, 30)).astype("f4"), RNG.standard_normal((5, 40)).astype("f4")
LONG, NINE = RNG.standard_normal(3000).astype("f4"), RNG.standard_normal(9).astype("f4")


def rolls(x, count):
    return [jnp.roll(x, k) for k in range(count)]


MADE = {
    "from the left": (lambda x, w: w @ (x * x), (X, W), lambda x, w: w @ (x * x)),
    "from the right": (lambda x, v: jnp.exp(x) @ v, (X, V), lambda x, v: np.exp(x) @ v),
    "turned": (lambda x, w: jnp.tanh(x).T @ w, (X, W), lambda x, w: np.tanh(x).T @ w),
    "each its own": (
        lambda x, w: jnp.einsum("bij,bi->bj", jnp.sin(x), w),
        (STACK, FEW),
        lambda x, w: np.einsum("bij,bi->bj", np.sin(x), w),
    ),
    "mapped along the last": (
        lambda x, w: pullback.vmap(lambda a, b: b @ jnp.abs(a), (2, None), 1)(jnp.moveaxis(x, 0, 2), w[0]),
        (STACK, FEW),
        lambda x, w: np.einsum("bij,i->jb", np.abs(x), w[0]),
    ),
    "stacked": (
        lambda x, w: w @ jnp.stack(rolls(x, 9)),
        (LONG, NINE),
        lambda x, w: sum(w[k] * np.roll(x, k) for k in range(9)),
    ),
    "bools": (lambda x, v: (x >= v) @ jnp.exp(v), (X, V), lambda x, v: (x >= v) @ np.exp(v)),
    "bools, turned": (lambda x, w: (x > 0.5).T @ w, (X, W), lambda x, w: (x > 0.5).T @ w),
    "bools and whole numbers": (lambda x: (x >= 0.1) @ jnp.arange(200), (X,), lambda x: (x >= 0.1) @ np.arange(200)),
    "many stacked as columns": (
        lambda x, w: jnp.stack(rolls(x, 24), 1) @ jnp.resize(w, 24),
        (LONG, NINE),
        lambda x, w: sum(w[k % 9] * np.roll(x, k) for k in range(24)),
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_no_matrix_is_stored(name):
    f, args, plain = MADE[name]
    program = pullback.jit(f)
    text = program.lower(*args).as_text("jaxpr"), program.lower(*args).as_text("fused")
    sizes = program.lower(*args).as_text("loops")
    most = max(a.size for a in args)
    stored = [line for line in sizes.splitlines() if line.split(":")[0].strip().startswith(("temporary", "arena"))]
    assert not any(int(line.rsplit("[", 1)[1].rstrip("]")) >= most for line in stored if "[" in line), (text, sizes)
    np.testing.assert_allclose(program(*args), plain(*(a.astype("f8") for a in args)), rtol=1e-4, atol=1e-3)


def test_its_gradient_and_small_sizes():
    def f(x, w):
        return (w @ jnp.tanh(x)).sum()

    for m, n in ((3, 4), (1, 5), (5, 1), (0, 3), (3, 0)):
        x, w = X[:m, :n], W[:m]
        found = pullback.jit(pullback.grad(f, (0, 1)))(x, w)
        wide = x.astype("f8"), w.astype("f8")
        np.testing.assert_allclose(found[0], wide[1][:, None] * (1 - np.tanh(wide[0]) ** 2), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[1], np.tanh(wide[0]).sum(1), rtol=1e-4, atol=1e-5)
