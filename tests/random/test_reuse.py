"""jax_debug_key_reuse: keys that are consumed twice are found, eagerly, in jitted functions, loops and branches."""

import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax, random
from pullback.errors import KeyReuseError

uniform = random.uniform
IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")


@pytest.fixture(autouse=True)
def watched():
    with jax.debug_key_reuse(True):
        yield


def fold(key):
    return random.fold_in(key, 1)


def part(key):
    return uniform(random.split(key)[0])


def good_step(key, _):
    key, sub = random.split(key)
    return key, uniform(sub)


# (functions that get the same key one after another, whether that is an error)
CALLS = {
    "twice": ((uniform, uniform), True),
    "split": ((random.split, random.split), True),
    "sample and split": ((random.normal, random.split), True),
    "part": ((part, uniform), True),
    "fold_in": ((fold, uniform, fold), False),
    "words": ((random.key_data, uniform, random.key_data), False),
    "clone": ((uniform, lambda k: uniform(random.clone(k))), False),
    "wrapped again": ((uniform, lambda k: uniform(random.wrap_key_data(random.key_data(k)))), False),
    "compared": ((uniform, lambda k: k == random.key(1)), False),
    "stacked": ((lambda k: jnp.stack([k, k]), uniform), True),
    "inside of jit": ((jax.jit(uniform), uniform), True),
    "not used": ((jax.jit(lambda k: 1.0), uniform), False),
    "one branch": ((lambda k: lax.cond(True, uniform, lambda k: 1.0, k), uniform), True),
    "both branches": ((lambda k: lax.cond(True, uniform, uniform, k),), False),
    "every iteration": ((lambda k: lax.scan(lambda c, _: (c, uniform(k)), 0.0, None, length=2),), True),
    "kept carry": ((lambda k: lax.scan(lambda k, _: (k, uniform(k)), k, None, length=2),), True),
    "new carry": ((lambda k: lax.scan(good_step, k, None, length=3),), False),
    "rows": ((lambda k: lax.scan(lambda c, k: (c, uniform(k)), 0.0, random.split(k, 3)),), False),
    "folded": ((lambda k: lax.fori_loop(0, 3, lambda i, c: c + uniform(random.fold_in(k, i)), 0.0), fold), False),
    "while": ((lambda k: lax.while_loop(lambda c: c < 3, lambda c: c + 1 + uniform(k), 0.0),), True),
    "while, condition": (
        (lambda k: lax.while_loop(lambda k: uniform(k) < 0.3, lambda k: random.split(k)[0], k),),
        True,
    ),
    "checkpoint": ((lambda k: jax.grad(jax.checkpoint(lambda x: x * uniform(k)))(1.0),), False),
    "gradient": ((lambda k: jax.grad(lambda x: x * uniform(k))(1.0), uniform), True),
    "poisson": ((lambda k: random.poisson(k, 2.0),), False),
    "permutation": ((lambda k: random.permutation(k, 4),), False),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    functions, is_error = CALLS[name]

    def run(key):
        return [f(key) for f in functions]

    for call in (run, jax.jit(run)):
        if is_error:
            with pytest.raises(KeyReuseError, match="consumed"):
                call(random.key(0))
        else:
            call(random.key(0))
            call(random.key(0))  # another key, though equal


def overlapping(keys):
    return jax.vmap(uniform)(keys[:2]), jax.vmap(uniform)(keys[1:])


# (a function of the four keys of one split, whether it is an error)
PARTS = {
    "each": (lambda ks: [uniform(k) for k in ks], False),
    "by index": (lambda ks: [uniform(ks[0]), uniform(ks[3]), jax.vmap(uniform)(ks[1:3])], False),
    "same": (lambda ks: [uniform(ks[1]), uniform(ks[1])], True),
    "one of all": (lambda ks: [jax.vmap(uniform)(ks), uniform(ks[2])], True),
    "overlap": (overlapping, True),
    "reshaped": (lambda ks: [uniform(ks.reshape(2, 2)[1, 0]), uniform(ks[3])], False),
    "reshaped, same": (lambda ks: [uniform(ks.reshape(2, 2)[1, 1]), uniform(ks[3])], True),
    "nested": (lambda ks: jax.vmap(jax.vmap(uniform))(ks.reshape(2, 2)), False),
    "twice in one": (lambda ks: jax.vmap(uniform)(jnp.broadcast_to(ks[0], (2,))), True),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name):
    function, is_error = PARTS[name]
    for impl in IMPLS if name in ("each", "same") else IMPLS[:1]:
        for call in (function, jax.jit(function)):
            keys = random.split(random.key(0, impl=impl), 4)
            if is_error:
                with pytest.raises(KeyReuseError):
                    call(keys)
            else:
                call(keys)


def test_calls_of_one_function_and_its_results():
    f = jax.jit(lambda k: (k, uniform(k)))
    for seed in (1, 2):
        key = random.key(seed)
        again, _ = f(key)
        for used in (key, again):
            with pytest.raises(KeyReuseError):
                f(used)
    with jax.debug_key_reuse(False):
        f(key)
        f(key)
    with pytest.raises(KeyReuseError):
        f(key)
    unused = random.key(3)
    jax.make_jaxpr(uniform)(unused)
    jax.eval_shape(uniform, unused)
    f(unused)
    raw = random.PRNGKey(0)  # words are not watched
    assert uniform(raw) == uniform(raw)
    assert issubclass(KeyReuseError, TypeError)
    assert jax.make_jaxpr(random.clone)(key).eqns[1].primitive.name == "random_clone"


@pytest.mark.parametrize("inner", [lambda f: f, jax.jit])
@pytest.mark.parametrize("transform", [lambda f: f, jax.grad, jax.value_and_grad, jax.vmap])
def test_checkpoints(inner, transform):
    """One use for the function and for its derivative, which runs it again; two calls are two."""

    def once(key):
        x = jnp.ones(2) if transform is jax.vmap else 1.0
        return transform(jax.checkpoint(inner(lambda x: x * jnp.sin(x * jax.random.normal(key)))))(x)

    def twice(key):
        return transform(jax.checkpoint(inner(lambda x: x * jax.random.normal(key) + jax.random.normal(key))))(1.0)

    with jax.debug_key_reuse(True):
        key, other = jax.random.split(jax.random.key(0))
        once(key)
        for again in (once, jax.random.normal, jax.random.split):
            with pytest.raises(KeyReuseError):
                again(key)
        once(other)
        if transform is not jax.vmap:
            with pytest.raises(KeyReuseError):
                twice(jax.random.key(1))
        new = jax.checkpoint(jax.random.split)(jax.random.key(2))  # what it gives has not been used
        once(new[0])
        once(new[1])
