"""Writes tests/random/data/jax_samples.json: what real JAX 0.10.2 draws, for the tests of pullback.random.

    python tools/make_random_data.py tests/random/data/jax_samples.json          (in an environment with real JAX)

Each case is an expression over `random` (jax.random), `jnp`, `np` and `key`; a test evaluates it under pullback.
Values are
stored as exact text: integers as they are, floats as hexadecimal numbers. Shapes are small: a few numbers show a
wrong stream.
"""

import json
import sys
import warnings

COMMON = """
random.key_data(random.split(key))
random.key_data(random.split(key, 5))
random.key_data(random.split(key, (2, 3)))
random.key_data(random.fold_in(key, 7))
random.key_data(random.fold_in(key, np.uint32(4294967295)))
random.key_data(random.fold_in(random.split(key, 3)[1], 2))
random.bits(key)
random.bits(key, (5,))
random.bits(key, (2, 3), 'uint8')
random.bits(key, (7,), 'uint16')
random.bits(key, (1,), 'uint8')
random.bits(key, (0,))
random.uniform(key)
random.uniform(key, (5,))
random.uniform(key, (2, 3), 'bfloat16')
random.uniform(key, (5,), 'float16')
random.uniform(key, (4,), minval=-2., maxval=6.)
random.uniform(key, (4,), minval=0.1, maxval=jnp.array([.2, .4, .9, 3.]))
random.normal(key)
random.normal(key, (2, 3))
random.normal(key, (101,))
random.normal(key, (4,), 'float16')
random.normal(key, (4,), 'bfloat16')
random.normal(key, (3,), 'complex64')
random.normal(random.split(key)[1], (2, 3))
random.randint(key, (5,), 0, 10)
random.randint(key, (5,), -1000000, 2000000000)
random.randint(key, (5,), -2**31, 2**31 - 1)
random.randint(key, (5,), 0, 200, 'uint8')
random.randint(key, (5,), 0, 256, 'uint8')
random.randint(key, (5,), -500, 1000, 'int8')
random.randint(key, (3,), jnp.arange(3), jnp.arange(3) * 3, 'int16')
random.randint(key, (5,), 0, 2**31 - 1, 'uint32')
random.randint(key, (5,), 3, 3)
random.randint(key, (5,), 5, 3)
random.bernoulli(key, .3, (20,))
random.bernoulli(key, jnp.array([.1, .5, .9]), (4, 3))
random.bernoulli(key, .3, (20,), mode='high')
random.bernoulli(key)
random.rademacher(key, (10,))
random.rademacher(key, (10,), 'float32')
random.rademacher(key, (10,), 'int8')
random.permutation(key, 10)
random.permutation(key, 2000)[:10]
random.permutation(key, jnp.arange(12).reshape(6, 2))
random.permutation(key, jnp.arange(12).reshape(6, 2), axis=1)
random.permutation(key, jnp.arange(12).reshape(6, 2), independent=True)
random.permutation(key, jnp.arange(12).reshape(6, 2), axis=-1, independent=True)
random.choice(key, 7, (5,))
random.choice(key, 7)
random.choice(key, 7, (5,), replace=False)
random.choice(key, 7, (2, 2), replace=False)
random.choice(key, 7, (5,), p=jnp.array([.1, .1, .1, .1, .1, .2, .3]))
random.choice(key, 7, (2, 2), replace=False, p=jnp.array([.1, .1, .1, .1, .1, .2, .3]))
random.choice(key, jnp.arange(12).reshape(3, 4), (2,), axis=1)
random.choice(key, jnp.arange(12).reshape(3, 4), (2, 2), axis=1, replace=False)
random.choice(key, jnp.arange(12.).reshape(3, 4), (2,), axis=0, p=jnp.array([.2, .3, .5]))
random.categorical(key, jnp.log(jnp.array([[.1, .2, .7], [.5, .4, .1]])))
random.categorical(key, jnp.log(jnp.array([[.1, .2, .7], [.5, .4, .1]])), axis=0)
random.categorical(key, jnp.log(jnp.array([[.1, .2, .7], [.5, .4, .1]])), shape=(4, 2))
random.categorical(key, jnp.log(jnp.array([[.1, .2, .7], [.5, .4, .1]])), shape=(2, 2), replace=False)
random.categorical(key, jnp.log(jnp.array([[.1, .2, .7], [.5, .4, .1]])), mode='high')
random.gumbel(key, (5,))
random.gumbel(key, (5,), mode='high')
random.exponential(key, (5,))
random.truncated_normal(key, -1., 2., (5,))
random.truncated_normal(key, -2., 2., (3,), 'float16')
random.truncated_normal(key, jnp.array([0., 1.]), 3.)
random.laplace(key, (5,))
random.logistic(key, (5,))
random.cauchy(key, (5,))
random.maxwell(key, (5,))
random.double_sided_maxwell(key, 1., 2., (5,))
random.weibull_min(key, 1.5, 2.5, (5,))
random.rayleigh(key, 2., (5,))
random.wald(key, 2., (5,))
random.pareto(key, 2., (5,))
random.triangular(key, 0., 1., 3., (5,))
random.lognormal(key, 2., (5,))
random.lognormal(key)
random.geometric(key, .3, (10,))
random.gamma(key, 1.)
random.gamma(key, jnp.array([.01, .3, 1., 2.5, 100.]))
random.gamma(key, .7, (20,))
random.gamma(key, jnp.array([-1., 0.]))
random.loggamma(key, jnp.array([.001, .3, 1., 2.5, 100.]))
random.beta(key, jnp.array([.1, 1., 4.]), 2.)
random.dirichlet(key, jnp.array([.5, 1., 4.]))
random.dirichlet(key, jnp.array([.5, 1., 4.]), (2,))
random.chisquare(key, jnp.array([1., 5.]))
random.t(key, jnp.array([1., 5.]))
random.f(key, 3., jnp.array([1., 5.]))
random.generalized_normal(key, 3., (5,))
random.ball(key, 3, 2, (2,))
random.ball(key, 2, 1.5)
random.poisson(key, jnp.array([0., .5, 3., 9.9]))
random.poisson(key, jnp.array([10., 50., 1000., 3.]))
random.poisson(key, 4., (10,))
random.binomial(key, 10., .3, (5,))
random.binomial(key, jnp.array([5., 100., 1000., 50., -1.]), jnp.array([.9, .5, .02, .99, .5]))
random.multinomial(key, 20., jnp.array([.2, .3, .5]))
random.multinomial(key, jnp.array([20., 3.]), jnp.array([.2, .3, .5]), shape=(4, 2, 3))
random.orthogonal(key, 3)
random.orthogonal(key, 2, (2,), m=4)
random.orthogonal(key, 3, m=2)
random.multivariate_normal(key, jnp.array([1., 2.]), jnp.array([[2., .5], [.5, 1.]]))
random.multivariate_normal(key, jnp.array([1., 2.]), jnp.array([[2., .5], [.5, 1.]]), (3,))
random.key_data(random.clone(key))
"""
X64 = """
random.bits(key, (5,), 'uint64')
random.bits(key, (3,))
random.uniform(key, (5,))
random.normal(key, (5,))
random.normal(key, (2,), 'complex128')
random.randint(key, (5,), 0, 10)
random.randint(key, (5,), -2**62, 2**62)
random.randint(key, (5,), 0, 2**32, 'uint32')
random.randint(key, (5,), -2**31, 2**31, 'int32')
random.permutation(key, 10)
random.gamma(key, .7, (5,))
random.poisson(key, 4., (5,))
random.bernoulli(key, .3, (20,))
random.rademacher(key, (10,))
random.exponential(key, (5,))
random.categorical(key, jnp.log(jnp.array([.1, .2, .7])), shape=(5,))
"""
SEEDS = """
random.PRNGKey(0)
random.PRNGKey(1701)
random.PRNGKey(-1)
random.PRNGKey(2**31)
random.PRNGKey(2**32 + 5)
random.PRNGKey(-2**40)
random.PRNGKey(np.int64(2**40))
random.PRNGKey(np.int32(-3))
random.PRNGKey(np.uint8(200))
random.PRNGKey(True)
random.PRNGKey(jnp.asarray(-7))
"""
RBG = """
random.key_data(key)
random.key_data(random.split(key, 3))
random.key_data(random.fold_in(key, 5))
random.bits(key, (9,))
random.bits(key, (3,), 'uint8')
random.bits(key, (3,), 'uint16')
random.uniform(key, (3, 2))
random.normal(key, (3, 2))
random.permutation(key, 6)
random.uniform(key, (), 'float16')
random.randint(key, (5,), 0, 1000)
random.bernoulli(key, .3, (7,))
random.exponential(key, (3,), 'bfloat16')
random.gumbel(key, (0, 3))
random.gamma(key, .7, (3,))
random.categorical(key, jnp.zeros((3,)), shape=(5,))
random.choice(key, 9, (3,), replace=False)
random.key_data(random.wrap_key_data(random.key_data(key), impl=str(random.key_impl(key))))
random.key_data(random.clone(key))
"""

# Every sampler in types and shapes that the lists above leave out: none, one, odd, two axes, no elements.
SHAPES = ("()", "(1,)", "(7,)", "(2, 3)", "(0, 3)")
FLOATS = ("float16", "bfloat16", "float32", "float64")
OF_FLOATS = """
uniform(key, {s}, '{d}', -3, 5)
normal(key, {s}, '{d}')
gumbel(key, {s}, '{d}')
exponential(key, {s}, '{d}')
truncated_normal(key, -1.5, .5, {s}, '{d}')
laplace(key, {s}, '{d}')
logistic(key, {s}, '{d}')
cauchy(key, {s}, '{d}')
maxwell(key, {s}, '{d}')
double_sided_maxwell(key, 1., 2., {s}, '{d}')
weibull_min(key, 1.5, 2.5, {s}, '{d}')
rayleigh(key, 2., {s}, '{d}')
wald(key, 2., {s}, '{d}')
pareto(key, 2., {s}, '{d}')
triangular(key, 0., 1., 3., {s}, '{d}')
lognormal(key, 2., {s}, '{d}')
gamma(key, 1.7, {s}, '{d}')
loggamma(key, .3, {s}, '{d}')
beta(key, .5, 2., {s}, '{d}')
chisquare(key, 3., {s}, '{d}')
t(key, 3., {s}, '{d}')
f(key, 3., 5., {s}, '{d}')
generalized_normal(key, 1.5, {s}, '{d}')
binomial(key, 9., .4, {s}, '{d}')
dirichlet(key, jnp.array([.5, 1., 4.], '{d}'), {s}, '{d}')
ball(key, 3, 2., {s}, '{d}')
choice(key, jnp.arange(5, dtype='{d}'), {s})
"""
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
OF_INTEGERS = """
bits(key, {s}, 'u{d}')
randint(key, {s}, -5, 120, '{d}')
rademacher(key, {s}, '{d}')
choice(key, jnp.arange(5, dtype='{d}'), {s})
geometric(key, .3, {s}, '{d}')
poisson(key, 3., {s}, '{d}')
permutation(key, jnp.arange(9, dtype='{d}'))
"""


def matrix(x64):
    """Expressions of every sampler: each type once, with a shape of the list."""
    out, turn = [], 0
    for kinds, text in ((FLOATS, OF_FLOATS), (INTEGERS, OF_INTEGERS)):
        for k, line in enumerate(lines(text)):
            for j, d in enumerate(kinds):
                if ("64" in d) != x64 or (len(kinds) == 4 and not x64 and (k + j) % 3 == 2):
                    continue
                turn += 1
                out.append("random." + line.format(s=SHAPES[turn % len(SHAPES)], d=d).replace("'uu", "'u"))
    return "\n".join(out)


def lines(text):
    return [line for line in text.splitlines() if line]


def exact(value, np):
    """A JSON value from which the array can be made again, bit by bit."""
    a = np.asarray(value)
    name = a.dtype.name
    if name.startswith("complex"):
        flat = [[float(v.real).hex(), float(v.imag).hex()] for v in a.ravel()]
    elif a.dtype.kind == "f" or name == "bfloat16":
        flat = [float(v).hex() for v in a.ravel()]
    else:
        flat = [int(v) for v in a.ravel()]
    return {"dtype": name, "shape": list(a.shape), "values": flat}


def main(path):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import random

    warnings.simplefilter("ignore")
    groups = [
        ("", COMMON, dict(partitionable=p, x64=False, impl="threefry2x32", seed=s))
        for p in (True, False)
        for s in (42,)
    ]
    groups += [("", X64, dict(partitionable=p, x64=True, impl="threefry2x32", seed=7)) for p in (True, False)]
    groups += [("", SEEDS, dict(partitionable=True, x64=x, impl="threefry2x32", seed=0)) for x in (False, True)]
    groups += [
        ("", matrix(x), dict(partitionable=p, x64=x, impl="threefry2x32", seed=1))
        for x, p in ((False, True), (True, False))
    ]
    groups += [("", RBG, dict(partitionable=True, x64=False, impl=i, seed=42)) for i in ("rbg", "unsafe_rbg")]
    out = []
    for _, text, settings in groups:
        jax.config.update("jax_enable_x64", settings["x64"])
        with jax.threefry_partitionable(settings["partitionable"]):
            key = random.key(settings["seed"], impl=settings["impl"])
            cases = {}
            for line in lines(text):
                cases[line] = exact(eval(line, {"random": random, "jnp": jnp, "np": np, "key": key}), np)
        out.append({**settings, "cases": cases})
    with open(path, "w") as file:
        rows = []
        for group in out:
            head = json.dumps({k: v for k, v in group.items() if k != "cases"})
            body = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in group["cases"].items())
            rows.append('{"settings": ' + head + ', "cases": {\n' + body + "}}")
        note = f"made by tools/make_random_data.py under jax {jax.__version__}"
        file.write('{"note": ' + json.dumps(note) + ', "groups": [\n' + ",\n".join(rows) + "]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
