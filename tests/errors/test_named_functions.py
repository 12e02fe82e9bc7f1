"""Messages say which function of the user's call fails, and with what; calls that JAX refuses are refused."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
import pullback.scipy as jsp
import pullback.scipy.linalg
import pullback.scipy.special
from pullback import lax, nn, random

V = np.ones(3, np.float32)
T = np.ones((1, 2, 6, 6), np.float32)

NAMED = {
    # What the message says of itself stays in front.
    "zeta": (lambda: jsp.special.zeta(V, V[:2]), TypeError, "Incompatible shapes", "zeta(x=float32[3], q=float32[2])"),
    "corrcoef": (lambda: jnp.corrcoef(V, 1.5), TypeError, "Cannot concatenate", "corrcoef(x=float32[3], y=1.5)"),
    "interp": (
        lambda: jnp.interp(V, 1.5, V),
        ValueError,
        "expected vectors of one length",
        "interp(x=float32[3], xp=1.5, fp=float32[3])",
    ),
    "vecdot": (lambda: jnp.vecdot(V, V, precision="a"), ValueError, "'a' is not a valid Precision", "precision='a')"),
    "arange": (
        lambda: jnp.arange(3, device="a"),
        ValueError,
        "device_put device must be a Device",
        "arange(start=3, device='a')",
    ),
    "select_n": (lambda: lax.select_n(V > 0, 1.5, V), TypeError, "same shapes", "cases=[1.5, float32[3]])"),
    "reshape": (lambda: jnp.ones(2).reshape(3), TypeError, "cannot reshape", "reshape(self=float32[2], args=(3,))"),
    "under vmap": (
        lambda: jax.vmap(lambda x: jnp.interp(x, 1.5, V))(V),
        ValueError,
        "vectors of one length",
        "x=float32[]",
    ),
    "conv": (lambda: lax.conv(T, V, (1, 1), "SAME"), TypeError, "must be of one rank", "rhs=float32[3]"),
    "where": (lambda: jnp.nanmean(V, where=np.ones((2, 5), bool)), ValueError, "Cannot broadcast", "where=bool[2, 5])"),
    "initializer": (
        lambda: nn.initializers.glorot_normal()(random.key(0), [1]),
        ValueError,
        "two dimensions or more",
        "(in glorot_normal(key=key<fry>[], shape=[1]))",
    ),
    "constant": (
        lambda: nn.initializers.constant(1.0)(random.key(0), (2,), out_sharding="a"),
        TypeError,
        "a NamedSharding or a PartitionSpec",
        "constant: argument 'out_sharding' must be",
    ),
    "accuracy": (lambda: lax.cos(V, accuracy=[1]), NotImplementedError, "not supported", "cos: argument 'accuracy'"),
    # Keys, whose functions have no wrapper.
    "text for a key": (lambda: random.split("a"), TypeError, "is no array", "split: argument 'key'"),
    "shape of a key": (lambda: random.normal(V), TypeError, "end in (2,)", "normal: argument 'key'"),
    "words": (lambda: random.wrap_key_data(V[:2]), TypeError, "not uint32", "argument 'key_bits_array'"),
    "seed": (lambda: random.key(1.5), TypeError, "'seed' must be an integer", "key: "),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_function_and_its_arguments_are_named(name):
    call, kind, said, added = NAMED[name]
    with pytest.raises(kind) as raised:
        call()
    assert said in str(raised.value) and added in str(raised.value)
    assert str(raised.value).count("(in ") <= 1  # the function that the user called, none within


def test_what_user_functions_raise_stays_as_it_is():
    def fails(x):
        raise ValueError("mine")

    def compares(x, y):
        return x @ jnp.ones(2)

    for call in (lambda: lax.map(fails, V), lambda: jnp.vectorize(fails)(V), lambda: lax.cond(True, fails, fails, 1.0)):
        with pytest.raises(ValueError, match=r"^mine(\n|$)"):
            call()
    with pytest.raises((TypeError, ValueError)) as raised:
        lax.reduce(V, 0.0, compares, (0,))
    assert "(in reduce" not in str(raised.value)


REFUSED = {
    "where of logsumexp": (lambda: nn.logsumexp(V, where=1.5), ValueError, "logsumexp: argument 'where' is of dtype"),
    "where of logmeanexp": (lambda: nn.logmeanexp(V, where=V), ValueError, "logmeanexp: argument 'where' is of dtype"),
    "negative size": (
        lambda: jax.eval_shape(lambda: lax.full((2, -1), 1.0)),
        TypeError,
        r"nonnegative sizes, got \(2, -1\)",
    ),
    "negative sizes": (
        lambda: jax.eval_shape(lambda: lax.broadcast(V, (-1,))),
        TypeError,
        r"got \(-1, 3\)",
    ),
    "real dft": (
        lambda: jsp.linalg.dft(3, dtype="float32"),
        ValueError,
        "dft: argument 'dtype' is float32; accepted are complex",
    ),
    "hilbert": (lambda: jsp.linalg.hilbert(-1), TypeError, "hilbert: argument 'n' must be nonnegative, got -1"),
    "companion": (lambda: jsp.linalg.fiedler_companion(V[:0]), ValueError, "at least one coefficient"),
    "method": (lambda: jsp.linalg.expm_frechet(np.eye(2), np.eye(2), method=[1]), ValueError, "argument 'method' is"),
    "fold_in": (lambda: random.fold_in(random.key(0), 1j), TypeError, "fold_in: argument 'data' must be an integer"),
    "a list for a dtype": (lambda: jax.dtypes.canonicalize_dtype([]), TypeError, r"Cannot interpret \[\] as a data"),
    "keepdims": (lambda: lax.dynamic_index_in_dim(V, 0, keepdims=[1]), ValueError, "argument 'keepdims' is"),
    "hermitian": (lambda: lax.linalg.qdwh(np.eye(2), is_hermitian=[1]), ValueError, "argument 'is_hermitian' is"),
    "antialias": (
        lambda: jax.image.resize(np.eye(2), (3, 3), "linear", antialias=[1]),
        ValueError,
        "resize: argument 'antialias' is",
    ),
    "image": (
        lambda: jax.image.scale_and_translate("a", (3,), (0,), V[:1], V[:1], "linear"),
        TypeError,
        "scale_and_translate: argument 'image'",
    ),
    "nondiff": (lambda: jax.custom_jvp(lambda x: x, nondiff_argnums=0), TypeError, "a sequence of integers, got 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_refused(name):
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call()
