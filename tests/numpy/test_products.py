"""Products of vectors, matrices and tensors; einsum: against NumPy, with derivatives and errors."""

import numpy as np
import opt_einsum
import pytest

import pullback
import pullback.numpy as jnp
from pullback.numpy._einsum import _plain

RNG = np.random.RandomState(2)


def _arrays(*shapes):
    return [np.asarray(RNG.randn(*s), np.float32) for s in shapes]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((2, 4, 3), (3, 5)),
        ((3,), (2, 3, 5)),
        ((2, 4, 3), (2, 3, 5)),
        ((2, 4, 3), (1, 3, 5)),
        ((1, 4, 3), (2, 3, 5)),
        ((5, 1, 4, 3), (2, 3, 5)),
        ((2, 4, 3), (3,)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((7, 1, 2, 3), (4, 3, 2)),
    ],
)
def test_matmul_and_dot(same, a, b):
    x, y = _arrays(a, b)
    same(lambda m, x, y: m.matmul(x, y), x, y, tolerance=1e-4)
    same(lambda m, x, y: x @ y, x, y, tolerance=1e-4)
    if len(a) == 1 or len(b) == 1 or a[-1] == b[-2]:
        same(lambda m, x, y: m.dot(x, y), x, y, tolerance=1e-4)


CASES = {
    "inner": lambda m, x, y, v: (m.inner(x, x), m.inner(v, v), m.inner(x, 2.0)),
    "outer": lambda m, x, y, v: (m.outer(v, v), m.outer(x, v)),
    "vdot": lambda m, x, y, v: (m.vdot(x, x), m.vdot(1j * v, v)),
    "tensordot": lambda m, x, y, v: (
        m.tensordot(x, x),
        m.tensordot(y, x, axes=([1], [1])),
        m.tensordot(x, v, 1),
        m.tensordot(v, v, 0),
    ),
    "kron": lambda m, x, y, v: (m.kron(x, y[0]), m.kron(v, x), m.kron(2.0, v)),
    "cross": lambda m, x, y, v: (m.cross(x, x[::-1]), m.cross(x, v), m.cross(x.T, x[::-1].T, axis=0)),
    "vecdot": lambda m, x, y, v: (np.vecdot if m is np else m.vecdot)(1j * x, x),
    "trace": lambda m, x, y, v: (m.trace(y), m.trace(x, 1)),
    "trapezoid": lambda m, x, y, v: (m.trapezoid(x), m.trapezoid(x, v), m.trapezoid(x, dx=0.5, axis=0)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_against_numpy(same, name):
    same(CASES[name], *_arrays((2, 3), (4, 3, 2), (3,)), tolerance=1e-4)


def test_matrix_vector():
    y, v = _arrays((2, 4, 3), (3,))
    np.testing.assert_allclose(jnp.matvec(y, v), y @ v, rtol=1e-5)
    w = RNG.randn(2, 4).astype(np.float32)
    np.testing.assert_allclose(jnp.vecmat(w, y), np.einsum("bi,bij->bj", w, y), rtol=1e-4, atol=1e-5)


EINSUM = [
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("...j,j", (3, 4, 5), (5,)),
    ("...ij,...jk->...ik", (3, 4, 5), (5, 2)),
    ("i,j,k->ijk", (2,), (3,), (4,)),
    ("ij,kl->ik", (2, 3), (4, 5)),
    ("iij->j", (2, 2, 3)),
    ("iij,ji->i", (2, 2, 3), (3, 2)),
    ("ab,bc,cd,de->ae", (2, 3), (3, 4), (4, 5), (5, 6)),
    ("iijj->ij", (2, 2, 3, 3)),
    ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("i,i,i->", (3,), (3,), (3,)),
    ("iii->", (3, 3, 3)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("ij,j->ij", (2, 3), (3,)),
    (",ij->ij", (), (2, 3)),
]


@pytest.mark.parametrize("case", EINSUM, ids=lambda case: case[0])
def test_einsum(same, case):
    text, *shapes = case
    for order in ("auto", False, "greedy") if len(shapes) > 2 else ("auto",):
        same(
            lambda m, *xs, order=order: m.einsum(text, *xs, optimize=order if m is jnp else False),
            *_arrays(*shapes),
            tolerance=1e-4,
        )


def test_einsum_with_lists_of_axes(same):
    same(lambda m, x, y: m.einsum(x, [0, 1], y, [1, 2], [2, 0]), *_arrays((2, 3), (3, 4)), tolerance=1e-4)


def test_einsum_path():
    x, y = _arrays((2, 30), (30, 4))
    path, report = jnp.einsum_path("ij,jk,kl->il", x, y, y.T)
    assert len(path) == 2 and "Complete contraction" in str(report)


@pytest.mark.parametrize(
    "subscripts",
    ["ij,jk", "ij,jk->ki", "b a", "ba->", "ii", "aBc,cB -> a", ",i->i", "", "iij->j", "aA,A"],
)
def test_plain_subscripts_are_read_as_opt_einsum_reads_them(subscripts):
    operands = subscripts.replace(" ", "").split("->")[0].split(",")
    shapes = [(2,) * len(labels) for labels in operands]
    inputs, output, _ = opt_einsum.parser.parse_einsum_input((subscripts, *shapes), shapes=True)
    assert _plain(subscripts) == (inputs.split(","), output)


@pytest.mark.parametrize("subscripts", ["i...", "ij->jj", "ij->k", "i->j->k", "i-j", "i>j", "é->é", "i1"])
def test_other_subscripts_are_left_to_opt_einsum(subscripts):
    assert _plain(subscripts) is None


def test_einsum_is_one_product():
    text = str(
        pullback.make_jaxpr(lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y))(*_arrays((2, 3, 4, 5), (2, 6, 4, 5)))
    )
    assert text.count("dot_general[") == 1 and "reduce_sum" not in text


@pytest.mark.parametrize("dtype", ["int8", "int32", "bfloat16", "complex64"])
def test_types(dtype):
    x = jnp.arange(1, 7).reshape(2, 3).astype(dtype)
    assert (x @ x.T).dtype == dtype and jnp.einsum("ij,kj", x, x).dtype == dtype
    assert (
        jnp.matmul(x, x.T, preferred_element_type="float32" if dtype != "complex64" else "complex64").dtype != "float16"
    )
    np.testing.assert_allclose(np.asarray(x @ x.T).astype(complex), [[14, 32], [32, 77]])


def test_promotion():
    assert (jnp.ones((2, 2), "int8") @ jnp.ones((2, 2), "float16")).dtype == np.float16
    assert jnp.dot(1, 2).weak_type


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jnp.dot(x, x), TypeError, r"contracting dimensions must have equal lengths, got 3 .* and 2 "),
        (lambda x: x @ x, TypeError, "must have equal lengths"),
        (lambda x: jnp.matmul(x, 2.0), ValueError, "matmul: operand 1 is a scalar"),
        (lambda x: jnp.matmul(np.ones((2, 3, 3)), np.ones((4, 3, 3))), ValueError, "Incompatible shapes"),
        (lambda x: jnp.einsum("ij,jk", x, x), ValueError, r"Size of label 'j' for operand 1 \(2\) does not match"),
        (lambda x: jnp.einsum("ij,jk", x), ValueError, "Number of einsum subscripts, 2"),
        (lambda x: jnp.einsum("ij->ik", x), ValueError, "'k' did not appear in the input"),
        (lambda x: jnp.einsum("ij->iij", x), ValueError, "appeared more than once"),
        (lambda x: jnp.einsum("ijk", x), ValueError, "does not contain the correct number of indices"),
        (lambda x: jnp.tensordot(x, x, axes=3), TypeError, "do not both have so many"),
        (lambda x: jnp.tensordot(x, x, axes=([0], [0, 1])), TypeError, "lists of different lengths"),
        (lambda x: jnp.cross(np.ones(4), np.ones(4)), ValueError, "either 2 or 3"),
        (lambda x: jnp.dot([1.0], x), TypeError, "list"),
        (lambda x: jnp.vecdot(x, x.T), ValueError, "axes must match"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(jnp.ones((2, 3)))


def test_gradients():
    a, b, w = _arrays((2, 3), (3, 4), (2, 4))
    ga, gb = pullback.grad(lambda a, b: jnp.sum((a @ b) * w), (0, 1))(a, b)
    np.testing.assert_allclose(ga, w @ b.T, rtol=1e-5)
    np.testing.assert_allclose(gb, a.T @ w, rtol=1e-5)
    np.testing.assert_allclose(pullback.grad(lambda a: jnp.einsum("ii", a @ a.T))(a), 2 * a, rtol=1e-5)
    rows = pullback.vmap(lambda x: jnp.einsum("i,ij->j", x, b))(a)
    np.testing.assert_allclose(rows, a @ b, rtol=1e-5)


def test_products_of_other_sizes_and_narrower_types_are_refused():
    with pytest.raises(ValueError, match="matvec"):
        jnp.matvec(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match="vecmat"):
        jnp.vecmat(np.ones(3), np.ones((2, 2)))
    wide = np.ones((2, 2), np.int32)
    for narrow in (np.int16, np.float16):
        with pytest.raises(TypeError, match="narrower"):
            jnp.matmul(wide, wide, preferred_element_type=narrow)
    assert jnp.matmul(wide, wide, preferred_element_type=np.float32).dtype == np.float32


def test_integers_beside_others_are_not_wrapped_for_a_float_result():
    """int8 and uint32 have no common type of 32 bits; their product as floats needs none."""
    x, y = jnp.ones((2, 3), jnp.int8), jnp.full((3, 4), 1 << 31, jnp.uint32)
    of = {"preferred_element_type": jnp.float32}
    for found in (jnp.matmul(x, y, **of), jnp.dot(x, y, **of), jnp.einsum("ij,jk", x, y, **of)):
        assert found.dtype == np.float32 and (np.asarray(found) == 3.0 * 2**31).all()
    for found in (jnp.tensordot(x, y, 1, **of), jnp.inner(x, y.T, **of), jnp.vdot(x[0], y[:, 0], **of)):
        assert found.dtype == np.float32 and (np.asarray(found) == 3.0 * 2**31).all()
    assert pullback.jit(lambda x, y: jnp.matmul(x, y, **of))(x, y)[0, 0] == 3.0 * 2**31


def test_the_type_of_products_stands_in_the_program():
    x, y = jnp.ones((2, 3)), jnp.ones((3, 2))
    for f in (jnp.matmul, jnp.dot, lambda a, b: jnp.einsum("ij,jk", a, b), lambda a, b: jnp.tensordot(a, b, 1)):
        (eqn,) = pullback.make_jaxpr(f)(x, y).eqns
        assert eqn.params["preferred_element_type"] == np.float32
    # Where the type is given, operands stay what they are.
    a, b = jnp.full((2, 3), 0.5, jnp.float8_e4m3fn), jnp.full((3, 2), 3.0, jnp.bfloat16)
    for f in (jnp.matmul, lambda a, b, **kw: jnp.einsum("ij,jk", a, b, **kw)):
        out = f(a, b, preferred_element_type=np.float32)
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, np.full((2, 2), 4.5))
    scalar = jnp.dot(jnp.float8_e5m2(2), jnp.ones(3, jnp.float8_e5m2), preferred_element_type=np.float32)
    assert scalar.dtype == np.float32


def test_operands_of_products_keep_their_types():
    """As in JAX's programs; libraries whose arrays have rules of their own see no conversion."""
    x, y = jnp.full((4, 4), 100, jnp.int8), jnp.ones((4, 4), jnp.bfloat16)
    by_axes, by_names = lambda a, b: jnp.tensordot(a, b, 1), lambda a, b: jnp.einsum("ij,jk", a, b)
    for f in (jnp.matmul, jnp.dot, jnp.inner, by_axes, by_names):
        (eqn,) = pullback.make_jaxpr(f)(x, y).eqns
        assert [v.aval.dtype for v in eqn.invars] == [x.dtype, y.dtype]
        for out in (f(x, y), pullback.jit(f)(x, y)):
            assert out.dtype == y.dtype and (np.asarray(out, np.float32) == 400).all()
    assert pullback.grad(lambda b: jnp.matmul(x, b).sum(dtype=np.float32))(y)[0, 0] == 400
    # Sums of one operand alone, and products of two booleans, are made in the type of the result.
    assert (jnp.einsum("ij,k->i", x, jnp.ones(3)) == 1200).all()
    t = jnp.ones((4, 4), bool)
    assert (jnp.einsum("ij,jk,kl->il", t, t, jnp.ones((4, 4), jnp.int8)) == 16).all()
    with pullback.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion"):
        jnp.matmul(x, y)


@pytest.mark.parametrize("function", [jnp.tensordot, jnp.linalg.tensordot])
def test_a_failing_contraction_over_pairs_of_axes_is_not_the_axes_fault(function):
    with pytest.raises(TypeError, match="must have equal lengths") as caught:
        function(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=([0, 1], [0, 1]))
    assert "axes" not in str(caught.value) and "hashable" not in type(caught.value).__name__.lower()
    with pytest.raises(TypeError, match="axes"):
        function(jnp.ones((2, 3)), jnp.ones((3, 2)), axes="x")


@pytest.mark.parametrize("subscripts", ["i,j", "ij", "", "i->i"])
def test_einsum_of_no_operands(subscripts):
    with pytest.raises(ValueError, match="number of operands, 0"):
        jnp.einsum(subscripts)
    with pytest.raises(TypeError, match="followed by the list of its labels"):
        jnp.einsum([1, 2])
