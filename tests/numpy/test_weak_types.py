"""Weak types of results, for arrays computed from Python scalars alone: those of JAX."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
import pullback.scipy.linalg
from pullback import lax, scipy
from pullback.scipy import special

F, I = jnp.broadcast_to(jnp.asarray(1.5), 3), jnp.broadcast_to(jnp.asarray(2), 3)  # weakly typed
S, M = jnp.ones(3, np.float32), jnp.broadcast_to(jnp.asarray(1.5), (3, 3))

# These fill arrays with constants of a strong type: only scalars stay weak.
OF_ONE = [
    jnp.logical_not, jnp.deg2rad, jnp.rad2deg, jnp.radians, jnp.degrees, jnp.sinc, jnp.iscomplex, jnp.isreal,
    special.logit,
]  # fmt: skip
OF_TWO = [jnp.logical_and, jnp.logical_or, jnp.logical_xor, jnp.logaddexp2, jnp.hypot]
WHOLE = [jnp.gcd, jnp.lcm]
WAYS = (lambda f: f, pullback.jit)


@pytest.mark.parametrize("way", WAYS)
def test_only_scalars_stay_weak(way):
    for function in OF_ONE:
        assert way(function)(0.25).weak_type and not way(function)(F).weak_type, function
        assert not way(function)(S[0]).weak_type
    for function in OF_TWO + WHOLE:
        x = 2 if function in WHOLE else 1.5
        some = jnp.broadcast_to(jnp.asarray(x), 3)
        assert way(function)(x, 2).weak_type, function
        assert not any(way(function)(*pair).weak_type for pair in ((some, some), (x, some), (some, x))), function
    assert way(jnp.heaviside)(1.5, F).weak_type and not way(jnp.heaviside)(F, 1.5).weak_type
    z = jnp.broadcast_to(jnp.asarray(1j), 3)
    assert way(jnp.logaddexp)(F, F).weak_type and not way(jnp.logaddexp)(F, z).weak_type


@pytest.mark.parametrize("way", WAYS)
def test_scalars_are_weak_where_their_promotion_is(way):
    """A Python float decides beside a boolean or an integer; `choose` takes elements, which are never weak."""
    for function in (jnp.hypot, jnp.logaddexp2, jnp.heaviside):
        pairs = ((1.5, S[0] > 0), (S[0] > 0, 1.5), (1.5, True), (np.int32(3), 2.5), (1.5, 2), (2, 3))
        assert all(way(function)(*pair).weak_type for pair in pairs), function
        strong = ((1.5, S[0]), (S, 1.5), (np.int32(3), 2), (True, True), (np.int32(3), True), (F, 2))
        assert not any(way(function)(*pair).weak_type for pair in strong), function
    numbers = np.array([0, 1, 0])
    for choices in ([F, S], [F, F], [F, I], [1.5, 2.5], [F, np.arange(3)]):
        chosen = way(lambda *choices: jnp.choose(numbers, list(choices), mode="clip"))(*choices)
        assert not chosen.weak_type and chosen.dtype == jnp.result_type(*choices, np.float32)


@pytest.mark.parametrize("way", WAYS)
def test_rearrangements(way):
    assert way(jnp.diag)(F).weak_type and not way(jnp.diag)(M).weak_type and not way(jnp.diag)(S).weak_type
    assert not any(way(f)(M).weak_type for f in (jnp.diagonal, jnp.diagflat, jnp.linalg.diagonal))
    assert way(jnp.diagonal)(M[:2]).weak_type and way(lambda x: jnp.diag(x, -1))(M).weak_type  # square and central: not
    assert way(lambda x: jnp.insert(x, 1, 2.5))(F).weak_type and not way(lambda x: jnp.insert(x, 1, 2.5))(S).weak_type
    assert not way(jnp.isin)(F, F).weak_type
    assert way(jnp.interp)(S.astype(int), F, F).weak_type and not way(jnp.interp)(F, F, I + S).weak_type
    assert not way(jnp.interp)(S, F, F).weak_type


def _weak(found):
    return "".join("w" if x.weak_type else "s" for x in pullback.tree_util.tree_leaves(found))


@pytest.mark.parametrize("way", WAYS)
def test_decompositions_are_weak_as_their_operands_are(way):
    """All results of a primitive, pivots too; what is made of the factors by strongly typed constants is not."""
    weak = jnp.asarray(np.array([[4, 1], [1, 3]])) * 1.0
    strong, v = jnp.asarray(np.float32([[4, 1], [1, 3]])), jnp.asarray(np.array([1, 2])) * 1.0
    n, s, x = jnp.linalg, scipy.linalg, lax.linalg
    of_one = [
        (n.cholesky, "w"), (n.qr, "ww"), (n.svd, "www"), (n.svdvals, "w"), (n.eigh, "ww"), (n.eigvalsh, "w"),
        (n.eig, "ww"), (n.eigvals, "w"), (n.slogdet, "ww"), (n.det, "w"), (n.pinv, "s"), (n.cond, "w"),
        (s.cholesky, "w"), (s.lu, "ssw"), (s.lu_factor, "ww"), (s.schur, "ww"), (s.hessenberg, "w"), (s.det, "w"),
        (s.polar, "ss"), (s.expm, "s"), (x.cholesky, "w"), (x.eigh, "ww"), (x.lu, "www"), (x.tridiagonal, "wwww"),
        (x.qdwh, "ssws"), (lambda a: s.qr(a, pivoting=True), "www"), (lambda a: x.symmetric_product(a, a), "w"),
        (lambda a: n.slogdet(a, method="qr"), "ss"), (lambda a: n.slogdet(jnp.pad(a, 1)), "ss"),
        (lambda a: n.det(jnp.pad(a[None], 1)), "s"), (lambda a: n.det(a[:1, :1]), "s"),
        (lambda a: s.toeplitz(a[0]), "s"), (lambda a: s.hankel(a[0]), "s"),
        (lambda a: s.leslie(a[0], a[0, :1]), "w"), (lambda a: s.convolution_matrix(a[0], 2), "s"),
        (lambda a: jnp.polydiv(a[0], a[1]), "sw"), (lambda a: jnp.polydiv(a[0, :1], a[1]), "sw"),
    ]  # fmt: skip
    for k, (function, want) in enumerate(of_one):
        assert _weak(way(function)(weak)) == want, k
        assert "w" not in _weak(way(function)(strong)).replace("ssws", "ssss"), k  # the number of steps stays weak
    solve = [n.solve, s.solve, s.solve_triangular, lambda a, b: s.cho_solve((a, True), b)]
    for function in solve:
        assert [_weak(way(function)(*pair)) for pair in ((weak, v), (strong, v))] == ["w", "s"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_made_of_weak_comparisons_is_strong(way):
    """The lattice of types has no weak bool; bits say nothing of a Python number."""
    weak = lambda f: lambda x: f(jnp.broadcast_to(jnp.asarray(x) > 0, 3))
    of_two = (jnp.bitwise_and, jnp.bitwise_or, jnp.add, jnp.maximum, jnp.equal, jnp.less, jnp.logical_and)
    for f in (*(lambda y, f=f: f(y, y) for f in of_two), lambda y: jnp.power(y, True), lambda y: jnp.diff(y)):
        assert _weak(way(weak(f))(2)) == "s"
    for f in (lax.reduce_and, lax.reduce_or, lax.reduce_xor):
        assert _weak(way(lambda x, f=f: f(jnp.broadcast_to(x, 3), (0,)))(2)) == "s"
    for f in (lambda y: y, jnp.logical_not, lambda y: lax.bitwise_and(y, y), lambda y: jnp.unique(y, size=2)):
        assert _weak(way(weak(f))(2)) == "w"


@pytest.mark.parametrize("way", WAYS)
def test_weak_types_of_selections_and_sets(way):
    mask, z = np.ones(3, bool), lambda x: 1j * x
    cases = [
        (lambda x: jnp.extract(mask, x, size=2), "s"), (lambda x: jnp.compress(mask, x, size=2), "s"),
        (lambda x: jnp.place(x, mask, x, inplace=False), "w"), (lambda x: jnp.setdiff1d(x, x, size=1), "w"),
        (lambda x: jnp.setxor1d(x, x, size=1), "s"), (lambda x: jnp.union1d(x, x, size=1), "w"),
        (lambda x: jnp.unique(x, size=1), "w"), (lambda x: jnp.unique(z(x), size=1), "s"),
        (lambda x: jnp.setdiff1d(z(x), z(x), size=1), "s"), (lambda x: jnp.union1d(z(x), z(x), size=1), "s"),
    ]  # fmt: skip
    for k, (f, want) in enumerate(cases):
        for x in (2, 1.5):
            assert _weak(way(lambda x, f=f: f(jnp.broadcast_to(x, 3)))(x)) == want, (k, x)


def test_powers_of_integer_scalars_have_the_type_of_the_base():
    for power in (jnp.power, jnp.pow, lambda x, y: x**y):
        assert power(2.0, jnp.int8(3)).weak_type and power(jnp.asarray(2.0), jnp.int32(3)).weak_type
        assert not power(jnp.float32(2), jnp.int8(3)).weak_type and not power(2.0, jnp.arange(3)).weak_type
        assert power(jnp.ones(2, jnp.bfloat16), jnp.int32(3)).dtype == jnp.bfloat16


@pytest.mark.parametrize("way", WAYS)
def test_gradients_in_parts_of_complex_numbers_are_strong(way):
    for part in (jnp.real, jnp.imag, jnp.abs, lambda x: jnp.real(jnp.exp(x))):
        assert _weak(way(pullback.grad(part))(2.0 + 1j)) == "s"
