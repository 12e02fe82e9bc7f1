"""What functions do with keys, asked without calling them: signatures and assertions."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax, random
from pullback.errors import KeyReuseError
from pullback.experimental.key_reuse import _core
from pullback.experimental.key_reuse._core import Forward, KeyReuseSignature, Sink, Source, assert_consumed, consume

K, KEYS = random.key(0), random.split(random.key(1), 3)

SIGNATURES = {
    "sampled": (random.bits, (K,), (Sink(0),)),
    "split": (random.split, (K,), (Sink(0), Source(0))),
    "made": (lambda: random.key(3), (), (Source(0),)),
    "folded": (lambda k: random.fold_in(k, 1) is None, (K,), ()),
    "given": (lambda k: jax.jit(lambda k: k)(k), (K,), (Forward(0, 0),)),
    "put": (jax.device_put, (K,), (Forward(0, 0),)),
    "consumed": (consume, (K,), (Sink(0), Forward(0, 0))),
    "one of them": (lambda ks: random.bits(ks[0]), (KEYS,), (Sink(0, np.array([True, False, False])),)),
    "all of them": (jax.vmap(random.bits), (KEYS,), (Sink(0),)),
    "two": (lambda a, b: (b, random.bits(a)), (K, K), (Forward(1, 0), Sink(0))),
    "beside a number": (lambda x, k: x + random.normal(k), (1.0, K), (Sink(1),)),
    "branch": (lambda k: lax.cond(True, random.bits, lambda k: jnp.uint32(0), k), (K,), (Sink(0),)),
    "carried": (
        lambda k: lax.scan(lambda k, _: (random.split(k)[0], None), k, None, length=2)[0],
        (K,),
        (Sink(0), Source(0)),
    ),
    "looked at": (lambda k: k == k, (K,), ()),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    fun, args, want = SIGNATURES[name]
    assert _core.function_type_signature(fun, *args) == KeyReuseSignature(*want)
    assert _core.check_key_reuse(fun, *args) is None


def test_assertions_of_programs():
    def consumes(k):
        _core.assert_unconsumed(k)
        new = consume(k)
        assert_consumed(k)
        assert_consumed(new)
        _core.assert_unconsumed(random.clone(k))

    def one_of_two(k, mask):
        both = random.split(k)
        random.bits(both[0])
        assert_consumed(both, mask)

    _core.check_key_reuse(consumes, K)
    _core.check_key_reuse(jax.jit(consumes), K)
    _core.check_key_reuse(lambda k: one_of_two(k, np.array([True, False])), K)
    for wrong in (
        assert_consumed,
        lambda k: _core.assert_unconsumed(consume(k)),
        lambda k: one_of_two(k, True),
        lambda k: one_of_two(k, False),
    ):
        with pytest.raises(AssertionError):
            _core.check_key_reuse(wrong, K)


def test_what_is_consumed_twice():
    for wrong in (lambda k: (random.bits(k), random.bits(k)), lambda k: (consume(k), random.split(k))):
        for ask in (_core.check_key_reuse, _core.function_type_signature):
            with pytest.raises(KeyReuseError):
                ask(wrong, K)


def test_keys_are_given_back():
    assert _core.consume(K) == K and assert_consumed(K) is None and _core.assert_unconsumed(K) is None
    assert jax.jit(consume)(K) == K and (jax.vmap(consume)(KEYS) == KEYS).all()
    assert _core.key_reuse_signature_from_primitive(_core.consume_p, K) == KeyReuseSignature(Sink(0), Forward(0, 0))


def test_parts_are_compared_and_shown():
    assert Sink(0) == Sink(0, np.array([True, True])) != Source(0) and hash(Sink(0)) == hash(Sink(0, True))
    assert repr(KeyReuseSignature(Sink(0), Source(1), Forward(0, 1))) == (
        "KeyReuseSignature(Sink(0), Source(1), Forward(0, 1))"
    )
