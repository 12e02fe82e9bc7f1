"""Programs whose compilation is timed beside those of `benchmarks/programs/`: what users wait for, small and long."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from benchmarks.program import Program


def _floats(*shapes: tuple[int, ...]):
    """Inputs: normal float32 arrays of these shapes."""
    return lambda rng: tuple(np.asarray(rng.standard_normal(shape), "f4") for shape in shapes)


def _chain(jax: Any):
    jnp = jax.numpy
    return lambda x: jnp.tanh(x) * jnp.exp(-(x**2)) + jnp.sin(x)


def _mlp_inputs(rng):
    sizes = (8, 64, 64, 64, 1)
    params = [
        (np.asarray(rng.standard_normal((a, b)) / np.sqrt(a), "f4"), np.zeros(b, "f4"))
        for a, b in itertools.pairwise(sizes)
    ]
    zeros = [tuple(np.zeros_like(a) for a in layer) for layer in params]
    x, y = _floats((64, 8), (64, 1))(rng)
    return params, (np.float32(0), zeros, zeros), x, y


def _mlp_step(jax: Any):
    """A training step of 8-64-64-64-1 with Adam."""
    jnp = jax.numpy

    def loss(params, x, y):
        h = x
        for w, b in params[:-1]:
            h = jax.nn.relu(h @ w + b)
        return jnp.mean((h @ params[-1][0] + params[-1][1] - y) ** 2)

    def step(params, state, x, y):
        count, m, v = state
        value, g = jax.value_and_grad(loss)(params, x, y)
        count = count + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)

        def update(p, m, v):
            return p - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

        return jax.tree.map(update, params, m, v), (count, m, v), value

    return step


def _pln_inputs(rng):
    n, p = 116, 114
    counts = rng.poisson(3.0, (n, p)).astype("f4")
    covariates = np.eye(3, dtype="f4")[np.arange(n) % 3]
    params = {"B": np.zeros((3, p), "f4"), "M": np.zeros((n, p), "f4"), "S": np.ones((n, p), "f4")}
    zeros = {k: np.zeros_like(v) for k, v in params.items()}
    return params, (np.float32(1), zeros, zeros), counts, covariates, np.zeros((n, p), "f4")


def _pln_step(jax: Any):
    """An iteration of the Poisson log-normal fit (examples/pln.py) with RAdam written out."""
    jnp = jax.numpy

    def loss(params, omega, counts, covariates, offsets):
        n, p = counts.shape
        mean = offsets + covariates @ params["B"] + params["M"]
        variance = params["S"] ** 2
        fit = (counts * mean - jnp.exp(mean + 0.5 * variance) + 0.5 * jnp.log(variance)).sum()
        moment = params["M"].T @ params["M"] + jnp.diag(variance.sum(0))
        prior = 0.5 * n * jnp.linalg.slogdet(omega)[1] - 0.5 * (omega * moment).sum()
        return -(fit + prior + 0.5 * n * p)

    def step(params, state, counts, covariates, offsets):
        n = counts.shape[0]
        count, m, v = state
        sigma = (params["M"].T @ params["M"] + jnp.diag((params["S"] ** 2).sum(0))) / n
        value, g = jax.value_and_grad(loss)(params, jnp.linalg.inv(sigma), counts, covariates, offsets)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        limit = 2 / (1 - 0.999) - 1
        b1, b2 = 0.9**count, 0.999**count
        length = limit - 2 * count * b2 / (1 - b2)
        r = jnp.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))

        def update(p, m, v):
            unbiased = m / (1 - b1)
            adapted = r * unbiased / (jnp.sqrt(v / (1 - b2)) + 1e-8)
            return p - jnp.clip(0.05 * jnp.where(length >= 5, adapted, unbiased), -0.1, 0.1)

        return jax.tree.map(update, params, m, v), (count + 1, m, v), value

    return step


def _pln_fit(jax: Any):
    step = _pln_step(jax)

    def fit(params, state, *data):
        def body(carry, _):
            *carry, value = step(*carry, *data)
            return tuple(carry), value

        return jax.lax.scan(body, (params, state), length=50)

    return fit


def _wave(jax: Any, count: int):
    """jax-ml/jax 2777: `count` unrolled steps."""
    jnp = jax.numpy

    def f(x):
        for _ in range(count):
            x = jnp.sin(x) * 1.01 + 0.1 * x[::-1]
        return x.sum()

    return f


def _unrolled(jax: Any, count: int):
    """`count` elementwise operations in a row, of several kinds."""
    jnp = jax.numpy

    def f(x, y):
        for k in range(count // 5):
            x = jnp.tanh(x) + y
            y = y * 0.99 - x * (0.01 * k)
        return x + y

    return f


def _unrolled_loop(jax: Any, count: int):
    """A Python loop of small matrix steps, `count` operations in all."""
    jnp = jax.numpy

    def f(x, w, b):
        for _ in range(count // 4):
            x = jnp.maximum(x @ w + b, 0) * 0.5
        return x

    return f


def _scan(jax: Any):
    jnp = jax.numpy
    return lambda x, w: jax.lax.scan(lambda c, _: (jnp.tanh(c @ w) * 1.1, c.sum()), x, None, length=100)


def _lorenz(jax: Any):
    jnp = jax.numpy

    def field(s):
        return jnp.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])

    def step(s, _):
        k1 = field(s)
        k2 = field(s + 0.005 * k1)
        k3 = field(s + 0.005 * k2)
        k4 = field(s + 0.01 * k3)
        return s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lambda x: jax.lax.scan(step, x, None, length=100)[0].sum()


def _rosenbrock(jax: Any):
    jnp = jax.numpy
    return lambda x: jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _cnn_step(jax: Any):
    """A training step of two convolutions, pooling and two dense layers on 28x28 images."""
    jnp, lax = jax.numpy, jax.lax

    def forward(params, x):
        for w, b in params["conv"]:
            x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b
            x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = x.reshape(x.shape[0], -1)
        (w1, b1), (w2, b2) = params["dense"]
        return jax.nn.relu(x @ w1 + b1) @ w2 + b2

    def loss(params, x, labels):
        logits = jax.nn.log_softmax(forward(params, x))
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    def step(params, x, labels):
        value, g = jax.value_and_grad(loss)(params, x, labels)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, g), value

    return step


def _cnn_inputs(rng):
    w1, w2, d1, d2 = _floats((3, 3, 1, 8), (3, 3, 8, 16), (784, 64), (64, 10))(rng)
    params = {
        "conv": [(w1, np.zeros(8, "f4")), (w2, np.zeros(16, "f4"))],
        "dense": [(d1, np.zeros(64, "f4")), (d2, np.zeros(10, "f4"))],
    }
    return params, *_floats((8, 28, 28, 1))(rng), np.arange(8, dtype="i4")


def _attention(jax: Any):
    jnp = jax.numpy

    def loss(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v).sum()

    return loss


def _newton(jax: Any):
    lax = jax.lax

    def root(a):
        return lax.while_loop(lambda x: abs(x * x - a) > 1e-4, lambda x: 0.5 * (x + a / x), a + 1)

    return jax.vmap(root)


def _normal(jax: Any):
    return lambda: jax.random.normal(jax.random.PRNGKey(0), (100, 100))


def _random_mix(jax: Any):
    def f():
        k1, k2, k3 = jax.random.split(jax.random.PRNGKey(0), 3)
        return jax.random.uniform(k1, (100,)), jax.random.gamma(k2, 2.0, (100,)), jax.random.permutation(k3, 100)

    return f


def _convolution(jax: Any):
    return lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")


def _thirty_scans(jax: Any):
    """Loops one after the other, each with a body of its own."""
    jnp, lax = jax.numpy, jax.lax

    def f(x):
        for k in range(30):
            x, ys = lax.scan(lambda c, y, k=k: (jnp.sin(c) * (0.9 + 0.001 * k) + y, c * k), x, x[:5, None] * 0.1)
            x = x + ys.sum(0)
        return x

    return f


def _joints(jax: Any, count: int):
    """Where the end of an arm of `count` joints is: products of rotations about alternating axes."""
    jnp = jax.numpy

    def rotation(k, angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        zero, one = jnp.zeros_like(c), jnp.ones_like(c)
        rows = [[c, -s, zero], [s, c, zero], [zero, zero, one]]
        turned = [row[k % 3 :] + row[: k % 3] for row in rows[k % 3 :] + rows[: k % 3]]
        return jnp.stack([jnp.stack(row) for row in turned])

    def error(angles, target):
        at, turn = jnp.zeros(3), jnp.eye(3)
        for k in range(count):
            turn = turn @ rotation(k, angles[k])
            at = at + turn @ jnp.array([0.0, 0.0, 0.1 + 0.01 * k])
        return jnp.sum((at - target) ** 2)

    return error


def _transformer_inputs(rng, layers=12, width=64):
    layer = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    params = [[np.asarray(rng.standard_normal(s) * 0.05, "f4") for s in layer] for _ in range(layers)]
    return params, *_floats((2, 32, width), (2, 32, width))(rng)


def _transformer_step(jax: Any):
    """A step of gradient descent of a transformer whose layers are written one after the other."""
    jnp = jax.numpy

    def block(p, x):
        heads = lambda a: a.reshape(*a.shape[:2], 4, -1).transpose(0, 2, 1, 3)
        q, k, v = map(heads, jnp.split(jax.nn.standardize(x) @ p[0], 3, axis=-1))
        mixed = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 4) @ v
        x = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p[1]
        return x + jax.nn.gelu(jax.nn.standardize(x) @ p[2]) @ p[3]

    def loss(params, x, y):
        for p in params:
            x = block(p, x)
        return jnp.mean((x - y) ** 2)

    def step(params, x, y):
        value, g = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, g), value

    return step


PROGRAMS = [
    Program("x + 1", _floats(()), jax=lambda jax: lambda x: x + 1),
    Program("tanh(x) exp(-x^2) + sin(x)", _floats((1000,)), jax=_chain),
    Program("softmax of rows", _floats((100, 1000)), jax=lambda jax: jax.nn.softmax),
    Program("sum of squares", _floats((1000,)), jax=lambda jax: lambda x: (x**2).sum()),
    Program("layer norm", _floats((100, 256)), jax=lambda jax: lambda x: jax.nn.standardize(x, axis=-1)),
    Program("sort", _floats((1000,)), jax=lambda jax: jax.numpy.sort),
    Program("concatenate, reverse, pad", _floats((100,), (50,)),
            jax=lambda jax: lambda x, y: jax.numpy.pad(jax.numpy.concatenate([x[::-1], y]), 3)),
    Program("matmul and relu", _floats((64, 64), (64, 64)), jax=lambda jax: lambda x, w: jax.nn.relu(x @ w)),
    Program("MLP step with Adam", _mlp_inputs, jax=_mlp_step),
    Program("CNN step", _cnn_inputs, jax=_cnn_step),
    Program("PLN step", _pln_inputs, jax=_pln_step),
    Program("PLN fit by scan", _pln_inputs, jax=_pln_fit),
    Program("attention, gradient", _floats(*[(2, 4, 64, 32)] * 3),
            jax=lambda jax: jax.grad(_attention(jax), argnums=(0, 1, 2))),
    Program("random.normal", lambda rng: (), jax=_normal),
    Program("uniform, gamma, permutation", lambda rng: (), jax=_random_mix),
    Program("scan of a recurrence", _floats((64, 64), (64, 64)), jax=_scan),
    Program("Lorenz RK4 by scan", _floats((3,)), jax=_lorenz),
    Program("gradient of Lorenz RK4", _floats((3,)), jax=lambda jax: jax.grad(_lorenz(jax))),
    Program("Newton, vmapped while", lambda rng: (np.arange(1, 101, dtype="f4"),), jax=_newton),
    Program("gradient of Rosenbrock", _floats((100,)), jax=lambda jax: jax.grad(_rosenbrock(jax))),
    Program("Hessian of Rosenbrock", _floats((10,)), jax=lambda jax: jax.hessian(_rosenbrock(jax))),
    Program("Cholesky solve", _floats((20, 20), (20,)),
            jax=lambda jax: lambda a, b: jax.scipy.linalg.cho_solve(
                jax.scipy.linalg.cho_factor(a @ a.T + jax.numpy.eye(20)), b)),
    Program("50 steps of sin and reverse", _floats((64,)), jax=lambda jax: _wave(jax, 50)),
    Program("gradient of 10 steps of sin and reverse", _floats((64,)), jax=lambda jax: jax.grad(_wave(jax, 10))),
    Program("unrolled 500 operations", _floats((64,), (64,)), jax=lambda jax: _unrolled(jax, 500)),
    Program("unrolled 2000 operations", _floats((64,), (64,)), jax=lambda jax: _unrolled(jax, 2000), limit=2.0),
    Program("unrolled 2000 operations of matrices", _floats((8, 8), (8, 8), (8,)),
            jax=lambda jax: _unrolled_loop(jax, 2000), limit=2.0),
    Program("rfft2 of 64 x 64", _floats((64, 64)), jax=lambda jax: jax.numpy.fft.rfft2),
    Program("fft of 97", _floats((97,)), jax=lambda jax: jax.numpy.fft.fft),
    Program("2-D convolution", _floats((8, 3, 32, 32), (16, 3, 3, 3)), jax=_convolution),
    Program("gradient of 2-D convolution", _floats((8, 3, 32, 32), (16, 3, 3, 3)),
            jax=lambda jax: jax.grad(lambda x, w: (_convolution(jax)(x, w) ** 2).sum(), argnums=(0, 1))),
    Program("30 scans", _floats((8, 8)), jax=_thirty_scans),
    Program("concatenate of 1,000", lambda rng: ([np.ones(3, "f4")] * 1000,),
            jax=lambda jax: jax.numpy.concatenate),
    Program("gradient of a chain of 35 joints", _floats((35,), (3,)), jax=lambda jax: jax.grad(_joints(jax, 35))),
    Program("transformer of 12 layers, step", _transformer_inputs, jax=_transformer_step),
]  # fmt: skip

# JAX does not finish these in minutes; ours are timed alone.
ALONE = [
    Program("gradient of 500 steps of sin and reverse", _floats((64,)), jax=lambda jax: jax.grad(_wave(jax, 500)),
            limit=5.0, thread=2777),
]  # fmt: skip
