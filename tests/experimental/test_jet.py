"""jet: power series against known ones and against nested derivatives."""

import functools

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental.jet import jet
from pullback.scipy import linalg, special

ORDER = 3


def test_jet_of_known_series():
    value, terms = jet(jnp.sin, (1.0,), ((1.0, 0.0, 0.5),))
    np.testing.assert_allclose([value, *terms], [np.sin(1), np.cos(1), -np.sin(1), -0.5 * np.cos(1)], rtol=1e-5)
    value, terms = jet(lambda x, y: {"a": x * y}, (1.0, 2.0), ([1.0, 0.0], [1.0, 2.0]))
    np.testing.assert_allclose([value["a"], *terms["a"]], [2, 3, 4])
    _, terms = jet(lambda x, y: x * y, (1.0, 2.0), ([1.0, 0.0], [1.0, 2.0]), factorial_scaled=False)
    np.testing.assert_allclose(terms, [3, 3])
    _, terms = jax.jit(lambda x: jet(jnp.log, (x,), ([1.0, 0.0, 0.0, 0.0],)))(2.0)
    np.testing.assert_allclose(terms, [1 / 2, -1 / 4, 2 / 8, -6 / 16], rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda x: jet(jnp.log, (x,), ([1.0, 0.0],))[1][1])(2.0), 2 / 8, rtol=1e-5)
    value, terms = jet(lambda x: 3 / x, (2.0,), ([1.0, 0.0],))  # of a Python number all is weakly typed
    assert all(v.weak_type for v in (value, *terms))
    value, terms = jet(lambda x: 3 / x, (jnp.float32(2),), ([1.0, 0.0],))
    assert not any(v.weak_type for v in (value, *terms))
    point = {"x": jnp.arange(3.0), "y": jnp.ones(3)}
    _, terms = jet(lambda d: d["x"] ** 3 @ d["y"], (point,), ([{"x": jnp.ones(3), "y": jnp.zeros(3)}] * 1,))
    np.testing.assert_allclose(terms, [15])
    np.testing.assert_allclose(jet(lambda x: (x, jnp.int32(2)), (1.0,), ([1.0, 2.0],))[1][1], [0, 0])
    _, terms = jet(jnp.exp, (jnp.arange(3.0),), ([jnp.ones(3), jnp.zeros(3)],))
    np.testing.assert_allclose(terms, [np.exp(np.arange(3.0))] * 2, rtol=1e-6)
    assert jet(jnp.sin, (0.5,), ([],))[1] == []
    with pytest.raises(ValueError, match="inconsistent lengths"):
        jet(jnp.add, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(ValueError, match="a term of shape"):
        jet(jnp.sin, (1.0,), ([jnp.ones(2)],))


def nested(fun, primals, series):
    """The same by one forward mode in another: 2^n operations for n derivatives."""

    def curve(t):
        points = []
        for x, terms in zip(primals, series):
            rest = 0.0
            for k in range(len(terms))[::-1]:
                rest = (terms[k] + rest) * t / (k + 1)
            points.append(x + rest)
        return fun(*points)

    found = [curve]
    for _ in series[0]:
        lower = found[-1]
        found.append(lambda t, lower=lower: jax.jvp(lower, (t,), (jnp.ones_like(t),))[1])
    return [f(jnp.zeros(())) for f in found]


@jax.custom_jvp
def own_rule(x):
    return jnp.sin(x)


own_rule.defjvp(lambda primals, tangents: (own_rule(*primals), jnp.cos(primals[0]) * tangents[0]))

CASES = {
    "elementwise": lambda x, y: jnp.tanh(x) * jnp.exp(y) - jnp.log1p(x) + jnp.sqrt(y) ** 3,
    "quotients": lambda x, y: x / (1 + y) + 2.0 / y + x / 3.0 + x**-2,
    "quotients of other shapes": lambda x, y: 1 / y[0, 0] + x / y[:1],
    "powers": lambda x, y: x**y + x**7 + 2.0**x + jnp.cbrt(y),
    "selections": lambda x, y: jnp.where(x > 0.5, x * y, jnp.sin(y)) + jnp.clip(x * y, 0.2, 0.4) + jnp.maximum(x, y),
    "products": lambda x, y: x @ jnp.tanh(y) @ x.T + jnp.einsum("ij,jk,ki->i", x, y, x),
    "movement": lambda x, y: jnp.concatenate([x[1:] * y[:-1], jnp.roll(y, 1)]).T[::-1],
    "places": lambda x, y: x[jnp.array([2, 0, 2])] * y[0] + x.at[1].set(y[0] * x[0]).at[0].add(y[2])[:3],
    "slices": lambda x, y: lax.dynamic_update_slice(x, lax.dynamic_slice(x * y, (1, 1), (2, 2)), (0, 1)),
    "reductions": lambda x, y: jnp.var(x * y, 0) + jnp.cumsum(x, 1)[:, 0] + jnp.prod(y, 1) + jnp.max(x * y, 0),
    "orders": lambda x, y: jnp.sort(x * y) + lax.top_k(x, 4)[0] + jnp.cumprod(y, 1),
    "convolution": lambda x, y: lax.conv(x[None, None], y[None, None, :2, :2], (1, 1), "SAME"),
    "complex": lambda x, y: jnp.abs(jnp.fft.fft(jnp.exp(1j * x * y))) ** 2,
    "special": lambda x, y: special.gammaln(x) + special.erf(y) + special.digamma(x) * special.erfinv(y),
    "matrices": lambda x, y: linalg.expm(jnp.linalg.solve(x @ x.T + 3 * jnp.eye(4), y)),
    "eigenvalues": lambda x, y: jnp.linalg.eigvalsh(x @ x.T + y @ y.T),
    "call": lambda x, y: jax.jit(lambda a, b: jnp.sin(a) * b)(x, y) + jax.checkpoint(jnp.cos)(x),
    "rule of one's own": lambda x, y: own_rule(own_rule(x)) * y + jax.jit(own_rule)(y),
    "derivative": lambda x, y: jax.grad(lambda a: jnp.sum(jnp.sin(a) * y**2))(x),
    "map": lambda x, y: jax.vmap(lambda a, b: jnp.dot(a, jnp.tanh(b)))(x, y),
    "scan": lambda x, y: lax.scan(lambda c, a: (jnp.sin(c) * a, c + x[0]), x[1], y),
    "scan that counts": lambda x, y: lax.scan(
        lambda c, i: ((c[0] * x[0] + i, c[1] + 1), c[1]), (y[0], 0), np.arange(3)
    ),
    "cond": lambda x, y: lax.cond(x[0, 0] > 0.1, lambda a, b: a * jnp.sin(b), lambda a, b: a - b, x, y),
    "while": lambda x, y: lax.while_loop(
        lambda c: c[0].sum() < 20, lambda c: (c[0] * 1.5 + y * c[0], c[1] + 1), (x, 0)
    ),
    "what does not move": lambda x, y: {"sum": x + y, "rest": (jnp.ones(3), lax.stop_gradient(x) * jnp.floor(y))},
}


@pytest.mark.sample(25)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_jet_is_what_nested_derivatives_are(name, compiled, x64):
    rng = np.random.default_rng(0)
    primals = [jnp.asarray(rng.uniform(0.3, 0.8, (4, 4))) for _ in range(2)]
    series = [[jnp.asarray(rng.standard_normal((4, 4))) for _ in range(ORDER)] for _ in range(2)]
    along = functools.partial(jet, CASES[name])
    value, terms = (jax.jit(along) if compiled else along)(primals, series)
    expected = [jax.tree.leaves(t) for t in nested(CASES[name], primals, series)]
    values = jax.tree.leaves(value)
    for k, (first, rest) in enumerate(zip(values, jax.tree.structure(value).flatten_up_to(terms))):
        for order, found in enumerate([first, *rest]):
            wanted = expected[order][k]
            wanted = np.zeros(first.shape) if wanted.dtype == jax.dtypes.float0 else np.asarray(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8 * (1 + np.abs(wanted).max()))


def test_jet_grows_slowly_with_the_order():
    """Nested derivatives of order 8 made 40,000 equations of this, and took seconds to compile."""
    w = jnp.ones((3, 3))

    def equations(order):
        series = [jnp.ones(3)] * order
        traced = jax.make_jaxpr(lambda x: jet(lambda x: jnp.tanh(jnp.exp(jnp.sin(x @ w))), (x,), (series,)))(w[0])
        return len(traced.eqns)

    assert equations(8) < 5 * equations(4)


def test_jet_follows_the_function_where_a_rule_is_of_reverse_mode():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * jnp.cos(x),))
    for along in (f, jax.jit(f)):
        np.testing.assert_allclose(jet(along, (2.0,), ([1.0, 0.0],))[1], [np.cos(2), -np.sin(2)], rtol=1e-6)


def test_jet_within_and_around_other_transformations():
    w = jnp.array([[0.5, -1.0], [2.0, 0.25]])

    def third(w, x):
        return jet(lambda x: jnp.tanh(x @ w), (x,), ([jnp.ones(2), jnp.zeros(2), jnp.zeros(2)],))[1][2].sum()

    x = jnp.array([0.1, 0.2])
    h = 1e-2
    for i, j in np.ndindex(2, 2):
        step = jnp.zeros((2, 2)).at[i, j].set(h)
        numeric = (third(w + step, x) - third(w - step, x)) / (2 * h)
        np.testing.assert_allclose(jax.jit(jax.grad(third))(w, x)[i, j], numeric, rtol=2e-2, atol=2e-2)
    points = jnp.stack([x, 2 * x, -x])
    np.testing.assert_allclose(jax.vmap(third, (None, 0))(w, points), [third(w, p) for p in points], rtol=1e-5)
    # d/dy of d2/dx2 of sin(x y) at x = y, along y: y -> -y^2 sin(x y).
    inner = lambda y: jet(lambda x: jnp.sin(x * y), (2.0,), ([1.0, 0.0],))[1][1]
    expected = -6 * np.sin(6.0) - 9 * 2 * np.cos(6.0)
    np.testing.assert_allclose(jet(inner, (3.0,), ([1.0],))[1][0], expected, rtol=1e-5)
