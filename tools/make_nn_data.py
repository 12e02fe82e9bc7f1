"""Writes tests/nn/data/jax_values.json: what real JAX 0.10.2 computes, for the tests of pullback.nn.

    python tools/make_nn_data.py tests/nn/data/jax_values.json                   (in an environment with real JAX)

Each case is an expression over `nn`, `random`, `jnp` and `x` (floats), `m` (a matrix), `mask`, `q` (attention); a test
evaluates it under pullback. `grad(f)(x)` is the derivative of the sum of f.
"""

import json
import sys
import warnings

UNARY = [
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "identity", "leaky_relu", "log_sigmoid", "mish",
    "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
]  # fmt: skip
OTHERS = """
nn.gelu(x, approximate=False)
grad(lambda x: nn.gelu(x, approximate=False))(x)
nn.log1mexp(jnp.array([1e-10, .5, 1., 10.]))
grad(nn.log1mexp)(jnp.array([.1, .5, 1., 10.]))
nn.softmax(m)
nn.softmax(m, axis=0)
nn.softmax(m, axis=(0, 1))
nn.softmax(m, where=mask)
nn.softmax(jnp.array([jnp.inf, 0.]))
nn.log_softmax(m)
nn.log_softmax(m, where=mask)
nn.log_softmax(m, axis=None)
grad(lambda m: nn.softmax(m)[..., 0])(m)
grad(lambda m: nn.log_softmax(m)[..., 0])(m)
nn.logsumexp(m)
nn.logsumexp(m, axis=0, keepdims=True)
nn.logsumexp(m, axis=1, b=jnp.array([1., -2., 3., .5]))
nn.logsumexp(m, axis=1, b=jnp.array([1., -2., 3., .5]), return_sign=True)[1]
nn.logsumexp(m, where=mask)
nn.logsumexp(jnp.array([-jnp.inf, -jnp.inf]))
nn.logsumexp(jnp.array([1. + 1j, 2.]))
nn.logsumexp(jnp.arange(3))
nn.logmeanexp(m, axis=0)
nn.logmeanexp(m, where=mask)
nn.standardize(m)
nn.standardize(m, axis=0, algorithm='stable')
nn.standardize(m, mean=0., variance=1., epsilon=0.)
nn.one_hot(jnp.array([0, 2, 5, -1]), 3)
nn.one_hot(jnp.array([[1, 2]]), 3, axis=1, dtype='int32')
nn.one_hot(1, 4, dtype=bool)
nn.glu(m)
nn.glu(m.T, axis=0)
nn.relu(jnp.arange(-2, 3))
nn.elu(jnp.arange(-2, 3))
nn.leaky_relu(jnp.arange(-2, 3))
nn.hard_tanh(jnp.arange(-2, 3))
nn.gelu(jnp.arange(-2, 3))
nn.dot_product_attention(q, q + 1, q - 1)
nn.dot_product_attention(q, q + 1, q - 1, is_causal=True)
nn.dot_product_attention(q, q[:, :, :1], q[:, :, 1:2], scale=.3)
nn.dot_product_attention(q[0], q[0], q[0], local_window_size=(1, 2))
nn.dot_product_attention(q, q, q, query_seq_lengths=jnp.array([2, 5]), key_value_seq_lengths=jnp.array([3, 1]))
nn.dot_product_attention(q, q, q, bias=jnp.ones((2, 1, 5, 5)), mask=jnp.tril(jnp.ones((1, 1, 5, 5))) > 0)
nn.initializers.zeros(key, (2, 3))
nn.initializers.ones(key, (2,), 'int32')
nn.initializers.constant(3.)(key, (2,))
nn.initializers.normal()(key, (2, 3))
nn.initializers.normal(.1, 'float16')(key, (3,))
nn.initializers.uniform(2.)(key, (3,))
nn.initializers.truncated_normal(.5)(key, (3,))
nn.initializers.truncated_normal(.5, lower=0., upper=.1)(key, (3,))
nn.initializers.glorot_uniform()(key, (2, 3, 4))
nn.initializers.glorot_uniform(batch_axis=0)(key, (2, 3, 4))
nn.initializers.glorot_normal()(key, (2, 3))
nn.initializers.lecun_normal(in_axis=(0, 1))(key, (2, 3, 4))
nn.initializers.lecun_uniform()(key, (2, 3))
nn.initializers.he_normal()(key, (2, 3))
nn.initializers.he_uniform()(key, (2, 3))
nn.initializers.he_normal(dtype='complex64')(key, (2, 3))
nn.initializers.he_uniform(dtype='complex64')(key, (2, 3))
nn.initializers.variance_scaling(1., 'fan_in', 'normal', dtype='complex64')(key, (2, 3))
nn.initializers.variance_scaling(1., 'fan_geo_avg', 'truncated_normal')(key, (2, 3))
nn.initializers.variance_scaling(2., 'fan_out', 'normal')(key, (2, 3))
nn.initializers.orthogonal()(key, (2, 3))
nn.initializers.orthogonal(2., column_axis=0)(key, (2, 3, 2))
nn.initializers.delta_orthogonal()(key, (3, 2, 4))
"""
CASES = [
    *[f"nn.{n}(x)" for n in UNARY], *[f"grad(nn.{n})(x)" for n in UNARY], *[line for line in OTHERS.splitlines() if
    line],
]  # fmt: skip


def scope(jax, nn, jnp, random):
    """The names that cases use."""
    return {
        "nn": nn, "jnp": jnp, "random": random, "key": random.key(0), "grad": lambda f: jax.grad(lambda x: f(x).sum()),
        "x": jnp.array([-8., -3., -1.5, -.5, -1e-3, 0., .25, 1., 2.5, 6., 9.]),
        "m": jnp.array([[.5, -1., 2., 0.], [3., 1., -2., .5], [0., 0., 0., 10.]]),
        "mask": jnp.array([[True, False, True, True], [False, True, False, False], [True, True, True, False]]),
        "q": jnp.sin(jnp.arange(80.)).reshape(2, 5, 2, 4),
    }  # fmt: skip


def exact(value, np):
    """A JSON value from which the array can be made again, bit by bit."""
    a = np.asarray(value)
    kind = a.dtype.kind
    if kind == "c":
        flat = [[float(v.real).hex(), float(v.imag).hex()] for v in a.ravel()]
    else:
        flat = [float(v).hex() if kind == "f" else int(v) for v in a.ravel()]
    return {"dtype": a.dtype.name, "shape": list(a.shape), "values": flat}


def main(path):
    import jax
    import jax.numpy as jnp
    import numpy as np

    warnings.simplefilter("ignore")
    names = scope(jax, jax.nn, jnp, jax.random)
    rows = [f"  {json.dumps(c)}: {json.dumps(exact(eval(c, names), np))}" for c in CASES]
    note = f"made by tools/make_nn_data.py under jax {jax.__version__}"
    with open(path, "w") as file:
        file.write('{"note": ' + json.dumps(note) + ', "cases": {\n' + ",\n".join(rows) + "}}\n")


if __name__ == "__main__":
    main(sys.argv[1])
