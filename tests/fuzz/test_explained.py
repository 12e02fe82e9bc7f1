"""Kinds of differences explain what is proven, and not what is near to it."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

from fuzz.calls import Call
from fuzz.compare import Difference, compare
from fuzz.worker import Argument, Leaf, Raised


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "tools"))
    return importlib.import_module


def argument(array):
    return Argument("array", array.dtype.name, array.shape, array.tobytes())


def leaf(array):
    return Leaf(array.dtype.name, False, array.shape, array.tobytes())


def explained(tool, line, arguments, got, want):
    call = Call("special", f"def program(x0, x1):\n    return {line}\n", tuple(map(argument, arguments)), ())
    rest, name = tool("explained_values").excused(call, [leaf(got)], [leaf(want)])
    return name if compare(rest, [leaf(want)]) is None else ""


def test_powers_are_explained_by_the_bits_that_jax_reads(tool):
    base, exponent = np.array([5, 3, -3], np.int32), np.array([-1, 123, 2], np.int8)
    ours = np.array([0, 2019264077, 9], np.int32)
    ours[1] = np.array(pow(3, 123, 2**32), np.uint32).view(np.int32)
    theirs = np.array([pow(5, 63, 2**32), pow(3, 59, 2**32), 9], np.uint32).view(np.int32)
    assert explained(tool, "jnp.power(x0, x1)", (base, exponent), ours, theirs) == "large powers of integers"
    assert explained(tool, "jnp.power(x0, x1)", (base, exponent), ours, theirs + np.int32(1)) == ""


def test_polygamma_is_explained_where_ours_is_right(tool):
    x = np.array([-0.25, -1.5], np.float32)
    right = np.array([25.6332397, 9.37724686], np.float32)
    wrong = np.array([25.64, 9.3772469], np.float32)
    mpmath = pytest.importorskip("mpmath")
    right = np.array([mpmath.polygamma(1, float(v)) for v in x], np.float32)
    assert explained(tool, "special.polygamma(1, x0)", (x,), right, wrong) == "polygamma below 0"
    assert explained(tool, "special.polygamma(1, x0)", (x,), wrong, right) == ""


def test_padding_is_explained_beside_infinite_weights_alone(tool):
    x, line = np.zeros(3), "jnp.convolve(x0, x1, mode='same')"
    ours, theirs = np.array([np.nan, np.nan, np.nan]), np.array([0, np.nan, np.nan])
    assert explained(tool, line, (x, np.array([2, np.inf])), ours, theirs) == "padding beside infinite weights"
    assert explained(tool, line, (x, np.array([2, 1e30])), ours, theirs) == ""
    assert explained(tool, line, (x, np.array([2, np.inf])), theirs, ours) == ""


def test_owens_t_and_powers_are_explained_where_ours_is_right(tool):
    h, a = np.array([23.311278909397512, 1]), np.array([0.7271163264047511, 1])
    ours, theirs = np.array([8.517128079806e-121, 0.066741888]), np.array([8.38179510188362e-121, 0.066741888])
    assert explained(tool, "special.owens_t(x0, x1)", (h, a), ours, theirs) == "owens_t far out"
    assert explained(tool, "special.owens_t(x0, x1)", (h, a), theirs, ours) == ""
    z, ours, theirs = np.zeros(2, complex), np.array([0, 1 + 0j]), np.array([np.nan, 1 + 0j])
    line = "jax.jvp(lambda x0: jnp.vander(x0, 2), (x0,), (x1,))"
    assert explained(tool, line, (z, z), ours, theirs) == "derivatives of x ** 0"
    assert explained(tool, line.replace("vander", "sinc"), (z, z), ours, theirs) == ""


def test_orders_are_explained_if_they_sort(tool):
    x = np.array([1, 0, 1, 2], np.int32)
    one, other, no = (np.array(order, np.int32) for order in ([1, 0, 2, 3], [1, 2, 0, 3], [0, 1, 2, 3]))
    line = "jnp.argsort(x0, stable=False)"
    assert explained(tool, line, (x,), one, other) == "order of equal elements"
    assert explained(tool, line, (x,), one, no) == ""


def test_derivatives_of_sets_are_explained_without_a_size(tool):
    text = "jnp.unique(x0, return_index=True{})\n    return jax.jacfwd(lambda x0: f(x0))(x0)"
    x, none, some = np.ones(3, np.float32), np.zeros(3, np.float32), np.float32([1, 0, 0])
    name = "derivatives of different elements"
    assert explained(tool, text.format(""), (x,), some, none) == name
    assert explained(tool, text.format(""), (x,), none, some) != name
    assert explained(tool, text.format(", size=3"), (x,), some, none) != name


def test_zeta_and_norms_are_explained_where_numpy_and_scipy_are_as_ours(tool):
    s, q = np.array([5, 1, -2], np.int16), np.array([-2, 1, -1], np.int8)
    ours, theirs = np.array([np.inf, np.inf, np.nan], np.float32), np.array([np.nan, np.inf, np.inf], np.float32)
    assert explained(tool, "special.zeta(x0, x1)", (s, q), ours, theirs) == "poles"
    assert explained(tool, "special.zeta(x0, x1)", (s, q), np.float32([1, 1, 1]), theirs) == ""
    z = np.array([complex(np.nan, np.inf), 1], np.complex64)
    ours, theirs = np.array(np.inf, np.float32), np.array(np.nan, np.float32)
    assert explained(tool, "jnp.linalg.vector_norm(x0, ord=1)", (z,), ours, theirs) == "magnitudes at infinity"
    assert explained(tool, "jnp.linalg.vector_norm(x0, ord=1)", (z[1:],), ours, theirs) == ""


def test_box_cox_is_explained_where_ours_is_right(tool):
    pytest.importorskip("mpmath")
    x, power = np.array([-0.4118748643346964, -0.4049955393852567]), np.array(3.7)
    right = np.array([-0.23235306519500212, -0.23068595875961414])
    wrong = np.array([-0.2323530651950004, -0.230685958759613])
    assert explained(tool, "special.boxcox1p(x0, x1)", (x, power), right, wrong) == "Box-Cox transformations"
    assert explained(tool, "special.boxcox1p(x0, x1)", (x, power), wrong, right) == ""


def test_log1mexp_and_gamma_are_explained_where_ours_is_right(tool):
    pytest.importorskip("mpmath")
    x, right, wrong = (np.array([v]) for v in (0.8825669022446162, -0.5339570540880909, -0.5339570540880771))
    assert explained(tool, "nn.log1mexp(x0)", (x,), right, wrong) == "log1mexp"
    assert explained(tool, "nn.log1mexp(x0)", (x,), wrong, right) == ""
    z = np.array([-1 - 5.154488822025671e-67j])
    right, wrong = np.array([-0.42 - 1.9400565885930244e66j]), np.array([-2.5653050788007612e16 - 3.141592653589801j])
    assert explained(tool, "special.gamma(x0)", (z,), right, wrong) == "complex gamma at poles"
    assert explained(tool, "special.gamma(x0)", (z,), wrong, right) == ""


def test_rounding_errors_of_1_are_explained_next_to_0(tool):
    ours, theirs = np.float32([0.012044914998]), np.float32([0.012044855393])
    line = "jax.random.gumbel(jax.random.key(17), (2, 5))"
    assert explained(tool, line, (), ours, theirs) == "logarithms of logarithms"
    assert explained(tool, line, (), ours, theirs - np.float32(1e-6)) == ""
    x = np.array([1e223, -3.6e281, 1, 2], complex)
    line = "jnp.fft.fft(x0, norm='ortho')\n    return r.mean()"
    none, some = np.array(0j), np.array(-5.2e259 + 0j)
    assert explained(tool, line, (x,), none, some) == "means of transforms"
    assert explained(tool, line, (x,), none, some * 1e9) == ""
    z = np.array([-1e-25 + 1.3e-18j, 31], np.complex64)
    assert explained(tool, "lax.cumlogsumexp(x0)", (z,), z, z.real + 0 * z) == "first of running log-sum-exps"
    assert explained(tool, "lax.cumlogsumexp(x0)", (z,), z, z + np.complex64(1e-3j)) == ""


def test_exceptions_are_explained_by_what_they_say(tool):
    explain = tool("explained_differences").explain
    call = Call("nn", "def program(x0):\n    return nn.dot_product_attention(x0, x0, x0)\n", (), ())
    error = Raised(("ValueError", "Exception"), "The precision 'F16_F16_F32' is not supported by dot_general on CPU")
    difference, result = Difference("exception", ""), [leaf(np.zeros(2, np.float32))]
    assert explain(call, "jit", difference, result, error) == "errors inside of JAX"
    assert explain(call, "jit", difference, error, result) == ""
    assert explain(call, "jit", difference, result, error._replace(message="another")) == ""
    call = Call("shapes", "def program(x0):\n    return jax.eval_shape(lambda x0: special.f(x0), x0)\n", (), ())
    concrete = Raised(("ConcretizationTypeError", "TypeError", "Exception"), "Abstract tracer value")
    shape = Raised(("TypeError", "Exception"), "A ShapeDtypeStruct does not have a value")
    assert explain(call, "jit", difference, shape, concrete) == "concrete values"
    assert explain(call, "eager", difference, error, concrete) == ""


def test_random_gamma_grad_is_explained_where_ours_is_right(tool):
    pytest.importorskip("mpmath")
    x, at = np.array([204.4711, 1.5], np.float32), np.ones(2, np.float32)
    right, wrong = np.array([0.0261598, 0.9], np.float32), np.array([0.0260324, 0.9], np.float32)
    line = "lax.random_gamma_grad(x0, x1)"
    assert explained(tool, line, (x, at), right, wrong) == "random_gamma_grad far below"
    assert explained(tool, line, (x, at), wrong, right) == ""


def test_means_of_integers_are_explained_within_two_units_of_float32(tool):
    x, means = np.zeros((2, 3), np.int32), np.array([972769600, 100], np.int32)
    line = "jnp.pad(x0, 1, mode='mean')"
    assert explained(tool, line, (x,), means, means + np.array([64, 0], np.int32)) == "means of large integers"
    assert explained(tool, line, (x,), means, means + np.array([64, 1], np.int32)) == ""
    assert explained(tool, line, (x,), means, means + np.array([4096, 0], np.int32)) == ""


def test_start_values_are_explained_where_they_are_0(tool):
    text = "lax.reduce_window(x0, x1, lax.add, (2,), (2,), 'SAME')\n    return jax.jvp(f, (x1,), (x1,))"
    x, ones, none = np.zeros(4, np.float32), np.ones(2, np.float32), np.zeros(2, np.float32)
    assert explained(tool, text, (x, np.float32([0.0])), ones, none) == "start values of sums"
    assert explained(tool, text, (x, np.float32([2.0])), ones, none) == ""
    assert explained(tool, text, (x, np.float32([0.0])), none, ones) == ""


def test_exponentials_of_integers_are_explained_where_ours_is_nearer(tool):
    x = np.full((3, 3), 4, np.int8)
    true = np.expm1(12.0) / 3 + np.eye(3)
    ours, theirs = ((true * (1 + error)).astype(np.float32) for error in (1e-6, 4e-4))
    for kind in (np.float32, np.float64):  # as it is, or converted after it
        pair = ours.astype(kind), theirs.astype(kind)
        assert explained(tool, "linalg.expm(x0)", (x,), *pair) == "exponentials of integer matrices"
        assert explained(tool, "linalg.expm(x0)", (x,), *pair[::-1]) == ""
    x = np.array([[4, 2, -1], [-4, 4, 5], [1, 3, 3]], np.int8)
    true = scipy.linalg.expm(x.astype(float))
    few, many = ((true + error * np.max(true)).astype(np.float32) for error in (6e-7, 4e-6))
    assert explained(tool, "linalg.expm(x0)", (x,), few, true.astype(np.float32)) == "exponentials of integer matrices"
    assert explained(tool, "linalg.expm(x0)", (x,), many, true.astype(np.float32)) == ""
