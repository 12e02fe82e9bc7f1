"""Arguments that functions refuse: the type of each error is the one that JAX's users know, and no call gives a number
for what was not understood."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
import pullback.scipy as jsp
from pullback import lax

X = np.arange(3, dtype=np.float32)
A = np.ones((2, 3), np.float32)
T, K = np.ones((1, 2, 6, 6), np.float32), np.ones((1, 2, 2, 2), np.float32)
KEY, Q = jax.random.key(0), np.ones((1, 4, 2, 8), np.float32)
NAMES = {"np": np, "jax": jax, "jnp": jnp, "jsp": jsp, "lax": lax, "X": X, "A": A, "T": T, "K": K, "KEY": KEY, "Q": Q}
NAMES["J"] = jnp.asarray(X)

REFUSED = {
    TypeError: """
        jnp.asarray(1j, dtype=float)
        jnp.array([1, 1j], dtype=int)
        jnp.full(2, 1j, dtype=float)
        jnp.full_like(jnp.ones(2), 1j)
        jnp.float32(1j)
        jnp.int32(1j)
        jnp.repeat(X, 1.5)
        jnp.repeat(X, np.array([1.5, 1, 1]))
        jax.grad(lambda v: jnp.repeat(X, v).sum())(2.0)
        jnp.argsort(X, stable='a')
        jnp.sort(X, stable=2)
        lax.sort(X, is_stable='a')
        lax.reduce_window(X, 0.0, lax.add, (0,), (1,), 'VALID')
        lax.reduce_window(X, 1.0, lax.add, (0,), (1,), 'SAME')
        lax.reduce_window(X, -np.inf, lax.max, (-1,), (1,), 'VALID')
        lax.reduce_window(X, 0.0, lax.add, (2,), (0,), 'SAME')
        jnp.array_equal('a', 1)
        jnp.array_equal(object(), object())
        jnp.array_equiv('a', 1)
        jnp.cumsum(X, axis='a')
        jnp.piecewise(X, True, [0.0, 1.0])
        lax.top_k(X, 1.5)
        jax.nn.softmax(X, axis=1.5)
        J.reshape(2, 2)
        jnp.reshape(J, (-1, -1))
        jnp.transpose(A, (0, 0))
        lax.transpose(A, (0, 2))
        lax.conv_general_dilated(T, K, (1, 1), ((0, 0), (0, 0)), rhs_dilation=(0, 1))
        jnp.linalg.cholesky(X)
        jnp.linalg.cholesky(A)
        jnp.linalg.eigh(A)
        jnp.linalg.eig(X)
        jnp.linalg.qr(X)
        jnp.linalg.svd(X)
        jsp.linalg.lu(X)
        jsp.linalg.sqrtm(X)
        jax.jvp(jnp.sin, (1.0,), (1,))
        jax.jvp(jnp.sin, (X,), (np.arange(3),))
        jax.jvp(jnp.sin, (1,), (1.0,))
        jax.jvp(jnp.sin, (np.float16(1),), (1.0,))
        jax.jvp(jnp.sin, (1.0,), (np.zeros((), jax.dtypes.float0),))
        lax.broadcast_in_dim(A, (3, 2), (0, 0))
        jnp.nonzero(X, size=2, fill_value='a')
        jnp.nonzero(X, size=-1)
        jnp.flatnonzero(X, size=-1)
        jnp.argwhere(jnp.zeros(()), size=-1)
        jnp.where(X, size=2, fill_value=object())
        jnp.array_split(X, [1.0, 2.0])
        jnp.split(X, np.array([True]))
        jnp.trapezoid(X, X, dx='a')
        jnp.histogram(X, [1.0, 2.0])
        jnp.histogramdd(A.tolist())
        jnp.indices(5)
        jnp.mgrid[0]
        jnp.permute_dims(A, None)
        jnp.polydiv(1.5, X)
        jnp.repeat(X, 2, total_repeat_length=-1)
        jnp.tri(3, 4, 1.5)
        jnp.tril(A, True)
        jnp.triu(A, 1.5)
        jnp.tril_indices(-1)
        jnp.vectorize(jnp.sin, excluded='a')(X)
        jnp.frompyfunc(jnp.add, 1.5, 1)
        jnp.issubdtype(X, np.integer)
        jnp.promote_types(X, 'int32')
        jnp.einsum('ij,kj->ik', A, A, optimize=('a',))
        jnp.fft.fftfreq(3, 1j)
        jnp.fft.hfft(X, axis=None)
        jnp.linalg.norm(X, 1j)
        jnp.linalg.vector_norm(X, ord=1j)
        jnp.tensordot(A, A, True)
        jnp.nanstd(X, ddof=1j)
        jnp.pad(X, 1, 'mean', stat_length=1.5)
        jnp.pad(X, 1, 'mean', stat_length=True)
        jnp.quantile(X, 1j)
        jnp.arange(None, 3)
        jnp.arange([1.0, 2.0])
        jnp.bincount(np.arange(3), length=-1)
        jnp.broadcast_shapes({})
        jnp.broadcast_shapes('a')
        jnp.empty('')
        jnp.ones_like(np.array(['a']))
        jnp.iscomplexobj(object())
        jnp.polyfit(X, X, 1, rcond=1j)
        jnp.zeros(3, dtype=[1.0])
        jnp.zeros(3, dtype=X)
        jnp.round(X, 'a')
        jnp.diff(X, 1.5)
        jnp.add(KEY, X)
        jnp.arctan2(X, KEY)
        jax.nn.elu([1.0, 2.0])
        jax.nn.gelu([1.0, 2.0])
        jax.nn.sigmoid([1.0, 2.0])
        jax.nn.softmax([1.0, 2.0])
        jax.nn.log_softmax(X.tolist())
        jax.nn.softmax(X > 0)
        jax.nn.standardize(X, mean=[1.0])
        jax.nn.identity([1.0])
        jsp.special.logsumexp([1.0, 2.0])
        jsp.linalg.block_diag([[1.0]], A)
        jsp.linalg.toeplitz([1.0, 2.0])
        jsp.linalg.leslie(X, [1.0, 2.0])
        jsp.linalg.circulant([1.0])
        jax.ops.segment_sum([1.0], np.array([0]))
        jax.ops.segment_sum(X, [0, 1, 2])
        jax.ops.segment_sum(X, np.array([0, 1, 2]), 1.5)
        jax.ops.segment_sum(X > 0, np.array([0, 1, 2]))
        jax.ops.segment_max(X, np.array([0, 1, 2]), unique_indices=[1])
        jax.random.beta(KEY, [1.0], 2.0)
        jax.random.uniform(KEY, (3,), minval=[0.0])
        jax.random.multivariate_normal(KEY, [1.0], np.eye(1))
        jax.random.gamma(KEY, 1.0, out_sharding='a')
        jax.random.pareto(KEY, 1.0, out_sharding=0)
        jax.random.ball(KEY, [1])
        jax.random.orthogonal(KEY, 1.5)
        jax.random.weibull_min(KEY, 1.0, 1.0, None)
        jax.random.binomial(KEY, [1.0], 0.5)
    """,
    ValueError: """
        jnp.asarray(KEY, int)
        jnp.array(KEY, dtype=float)
        jnp.sum(X, where=2)
        jnp.max(X, where=np.array([1, 0, 2]), initial=0)
        jnp.mean(X, where=1.0)
        jnp.std(X, where=2)
        jnp.nansum(X, where=2)
        jnp.any(X, where=2)
        jnp.array_equal(None, 1)
        jsp.special.polygamma(1.5, 2.0)
        jsp.special.polygamma(np.float32(1), 2.0)
        jnp.reshape(X, (2, 2))
        jnp.reshape(X, (2, -1))
        lax.reshape(X, (2, 2))
        jnp.transpose(X, (0, 1))
        jnp.transpose(jnp.ones((2, 3)), (0, 5))
        jnp.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 5)))
        lax.dynamic_slice(X, (0, 0), (1,))
        lax.conv(T, K, (0, 0), 'SAME')
        lax.conv(T, K, (0, 0), 'VALID')
        lax.conv(T, K, (-1, 1), 'SAME')
        lax.conv(T, K, (1,), 'SAME')
        lax.top_k(np.float32(1), 1)
        lax.top_k(X, 5)
        jnp.linalg.inv(X)
        jnp.linalg.multi_dot([X])
        jsp.linalg.expm(X)
        jnp.piecewise(X, X < 1, [0.0, 1.0])
        jnp.take_along_axis(X, np.array([1, 2]), 0, mode='wrap')
        J.at[np.array([1])].apply(jnp.sin, mode='wrap')
        jax.linearize(jnp.sin, 1.0)[1](1)
        jax.linearize(jnp.sin, 1)[1](1)
        jax.vjp(jnp.sin, np.float16(1))[1](1.0)
        jax.vjp(jnp.sin, 1.0 + 1j)[1](1.0)
        jnp.nonzero(X, size=2, fill_value=[7])
        jnp.nonzero(X, size=2, fill_value=np.array([7]))
        jnp.compress(np.zeros(0), X, size=2)
        jnp.extract(1.5, X, size=2)
        jnp.array_split(X, -1)
        jnp.array_split(X, [2, 1])
        jnp.array_split(X, [0, 9])
        jnp.delete(X, 1.0)
        jnp.insert(X, True, 2.0)
        jnp.insert(X, np.array([1.0]), 2.0)
        jnp.insert(X, np.array([[1]]), 2.0)
        jnp.column_stack([])
        jnp.stack(np.zeros(0))
        jnp.put_along_axis(A, np.int32([1]), 2.0, 0, inplace=False)
        jnp.ravel_multi_index((X.astype(int),), (9,), dtype='float32')
        jnp.roll(X, np.ones((2, 2), int))
        jnp.tril(A, J[0])
        jnp.trace(A, True)
        jnp.trace(A, 1.5)
        jax.jit(lambda k: jnp.eye(3, k=k))(1.0)
        jnp.frompyfunc(lambda a, b: a, 2, 1, identity=0).reduce(X, where=X)
        jnp.pad(X, 1, constant_values=())
        jnp.pad(X, 1, constant_values=(1, 2, 3))
        jnp.pad(X, 1, 'linear_ramp', end_values=(1, 2, 3))
        jnp.choose(True, [X, X])
        jnp.kaiser(4, 1j)
        J.astype('int32', copy=X)
        jnp.sum(X, dtype=X)
        jnp.sum(X, dtype=J)
        jnp.zeros(3, dtype=J)
        jnp.argsort(X, axis=[0])
        jnp.sort(X, descending=[])
        jnp.append(X, X, [0])
        jnp.round(X, [1])
        jnp.sum(X, keepdims=[])
        jnp.std(X, keepdims=X)
        jnp.nanmean(X, keepdims={})
        jnp.median(X, keepdims=[1])
        jnp.cov(X, rowvar=[])
        jnp.allclose(X, X, equal_nan=[])
        jnp.isin(X, X, invert=X)
        jnp.linspace(0, 1, 3, endpoint=[])
        jnp.take(X, 0, unique_indices=[])
        jnp.linalg.svd(np.eye(2), full_matrices=[])
        jnp.linalg.norm(X, keepdims=[])
        jsp.linalg.lu(np.eye(2), permute_l=[])
        jsp.linalg.cholesky(np.eye(2), lower=X)
        jsp.special.logsumexp(X, keepdims=[])
        jsp.stats.sem(X, keepdims=[])
        jax.nn.logsumexp(X, keepdims=[])
        jax.nn.dot_product_attention(Q, Q, Q.astype('float16'))
        jax.nn.dot_product_attention(Q, Q, Q, query_seq_lengths=np.float32([2]))
        jax.ops.segment_sum(X, 0)
        jax.random.beta(KEY, 1j, 2.0)
        jax.random.t(KEY, np.complex64([1]))
        jax.random.multivariate_normal(KEY, X[:1] * 1j, np.eye(1))
        jax.random.categorical(KEY, np.array([1, 2]))
        jax.random.lognormal(KEY, 1j)
    """,
    OverflowError: """
        jnp.sin(2**70)
        jnp.sin(2**40)
        jnp.where(True, 2**40, 1.0)
        jnp.clip(J, 0, 2**40)
        J + 2**40
        J * 2**40
        J < 2**40
        2**40 - J
        jax.jit(lambda v: v)(2**40)
        jax.eval_shape(lambda v: v, 2**40)
        jax.make_jaxpr(lambda v: v)(2**70)
        jax.random.gamma(KEY, 2**40)
    """,
    RuntimeError: """
        lax.conv(T, K, (1, 1), 'FOO')
        lax.reduce_window(X, 0.0, lax.add, (2,), (1,), 'FOO')
    """,
    NameError: """
        jnp.sum(X, axis='a')
        jnp.mean(X, axis=('a',))
        jax.nn.softmax(X, axis='a')
        jsp.special.logsumexp(X, axis='a')
    """,
    IndexError: """
        jnp.delete(X, np.array([1, 3]))
        jnp.argmax(X, axis=5)
        jnp.argmin(1.0, axis=0)
    """,
    NotImplementedError: """
        jnp.all(X, axis='a')
        jnp.any(X, axis=('a',))
    """,
}


@pytest.mark.parametrize(
    "error, text",
    [(error, line.strip()) for error, lines in REFUSED.items() for line in lines.split("\n") if line.strip()],
)
def test_refused(error, text):
    with pytest.raises(error) as caught:
        eval(text, NAMES)
    message = str(caught.value)
    assert message and not any(inner in message for inner in ("not supported between", "object has no attribute"))


F3 = jax.ShapeDtypeStruct((3,), np.float32)


@pytest.mark.parametrize("call", [jax.pure_callback, jax.experimental.io_callback], ids=["pure", "io"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_callbacks_give_what_they_declare(call, wrap):
    def give(result, declared=F3):
        return jax.block_until_ready(wrap(lambda v: call(lambda _: result, declared, v))(X))

    wrong = [np.ones(3, t) for t in ("i4", "c8", "f2", "?")] + [np.ones(s, "f4") for s in ((2,), (1, 3), (3, 1), (0,))]
    for result in [*wrong, 1.0, None, "a", [1.0, 1.0, 1.0], np.array([None] * 3), jnp.ones(3, int)]:
        with pytest.raises(jax.errors.JaxRuntimeError, match="callback"):
            give(result)
    for result in (1, np.ones((), "i2")):
        with pytest.raises(jax.errors.JaxRuntimeError, match="declares shape"):
            give(result, jax.ShapeDtypeStruct((), np.float32))
    assert give(np.ones(3)).tolist() == give(jnp.ones(3)).tolist() == give([np.ones(3, "f4")]).tolist() == [1, 1, 1]
    assert give(True, jax.ShapeDtypeStruct((), bool)).tolist() is True
    assert [r.tolist() for r in give([np.ones(3, "f4"), np.ones(3, "i8")], (F3, jax.ShapeDtypeStruct((3,), int)))] == [
        [1, 1, 1],
        [1, 1, 1],
    ]


def test_what_is_accepted_beside():
    assert jnp.array([1j], dtype=bool).tolist() == [True] and jnp.asarray(np.array([2 + 1j]), complex).tolist() == [
        2 + 1j
    ]
    assert jnp.full(2, 2**40, "f4").tolist() == [2.0**40] * 2 and jnp.asarray(2**40, float) == 2.0**40
    assert jnp.array_equal([1], [1]) and jnp.array_equal(KEY, KEY)
    assert jnp.isscalar(np.array(1.0)) and not jnp.isscalar(np.array([1.0]))
    assert jnp.repeat(X, True).tolist() == X.tolist()
    pieces = jnp.piecewise(X, np.array([X < 1, X >= 2]), [5.0, lambda v: -v, 7.0])
    assert pieces.tolist() == [5, 7, -2]
    reordered = lax.broadcast_in_dim(np.arange(6.0).reshape(1, 2, 3), (3, 4, 2), (1, 2, 0))
    assert reordered.tolist() == [[[i, 3 + i]] * 4 for i in (0, 1, 2)]
