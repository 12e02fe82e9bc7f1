"""Reasons for which pullback and JAX may differ, each with a predicate that is as narrow as it can be made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from fuzz.calls import Call
from fuzz.compare import Difference, is_float, near, precision, wide
from fuzz.worker import Outcome, Raised

Predicate = Callable[[Call, bool, str, Difference, Outcome, Outcome], Any]


class Explained(NamedTuple):
    """A kind of difference: its name, its reason, and which differences it explains."""

    name: str
    reason: str
    holds: Predicate


def _never(*_: Any) -> bool:
    return False


def _raises(pattern: str, functions: str) -> Predicate:
    """JAX raises something that reads so, in a program that calls one of the functions; pullback gives a result."""

    def holds(call, x64, how, difference, got, want):
        return (
            isinstance(want, Raised)
            and not isinstance(got, Raised)
            and re.search(pattern, want.message)
            and re.search(functions, call.text)
        )

    return holds


def _both_raise(ours: str, theirs: str, functions: str) -> Predicate:
    def holds(call, x64, how, difference, got, want):
        raised = isinstance(got, Raised) and isinstance(want, Raised)
        found = raised and ours in got.names and set(theirs.split("|")) & set(want.names)
        return found and re.search(functions, call.text)

    return holds


def _differing(got: Outcome, want: Outcome) -> list[tuple[np.ndarray, np.ndarray]]:
    """The elements of both sides that differ."""
    if isinstance(got, Raised) or isinstance(want, Raised):
        return []
    pairs = [(g.value(), w.value()) for g, w in zip(got, want) if g.shape == w.shape and g.dtype == w.dtype]
    return [(x[bad], y[bad]) for x, y in pairs if np.any(bad := ~near(x, y))]


def _concrete(call, x64, how, difference, got, want):
    names = {"ConcretizationTypeError", "TracerBoolConversionError", "TracerArrayConversionError"}
    if not isinstance(want, Raised) or not names & set(want.names):
        return False
    return "ConcretizationTypeError" in got.names if isinstance(got, Raised) else "jit" in call.text or how == "jit"


def _complex_overflow(call, x64, how, difference, got, want):
    found = _differing(got, want)
    return difference.what == "value" and found and all(
        x.dtype.kind == "c" and not np.any(np.isfinite(x)) and not np.any(np.isfinite(y)) for x, y in found
    )  # fmt: skip


def _gamma(call, x64, how, difference, got, want):
    if difference.what != "value" or not re.search(r"gamma|beta|factorial|poch|comb", call.text):
        return False
    with np.errstate(all="ignore"):
        for x, y in _differing(got, want):
            if x.dtype.kind != "f":
                return False
            unit = 4e-7 if x.dtype == np.float32 else 4e-15 if x.dtype == np.float64 else 0
            grows = 1 + np.log1p(np.abs(wide(y)))  # of an exponential the error is that of its argument
            if not np.all(np.abs(wide(x) - wide(y)) <= 24 * unit * grows * (1 + np.abs(wide(y)))):
                return False
    return True


def _given(call: Call) -> np.ndarray:
    """All elements of the arguments, as complex numbers."""
    with np.errstate(all="ignore"):
        return np.concatenate([np.zeros(0), *(a.value().astype(complex).reshape(-1) for a in call.arguments)])


Mask = Callable[[Call, np.ndarray, np.ndarray], np.ndarray]


class Element(NamedTuple):
    """A kind of difference between elements: which programs can have it, and where in a result it is."""

    name: str
    reason: str
    text: str
    mask: Mask


def _subnormal(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "f" and x.dtype.name != "bfloat16":
        return np.zeros(x.shape, bool)
    return (y == 0) & (np.abs(wide(x)) < precision(x)[1])


def _nan_there(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.isnan(wide(y)) & ~np.isnan(wide(x))


def _nan_here(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found = np.isnan(wide(x)) & ~np.isnan(wide(y))
    return found if np.any(np.isnan(_given(call))) else np.zeros(x.shape, bool)


def _pole_there(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.isnan(wide(y)) & np.isinf(wide(x))


def _float32_below_zero(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.full(x.shape, x.dtype == np.float32 and ("-x0" in call.text or bool(np.any(_given(call).real < 0))))


def _nan_for_zero(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.isnan(wide(y)) & (wide(x) == 0)


def _with_infinite(mask: Mask) -> Mask:
    """The same, if there is an infinite or NaN argument."""

    def holds(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return mask(call, x, y) if not np.all(np.isfinite(_given(call))) else np.zeros(x.shape, bool)

    return holds


def _both_infinite(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ~np.isfinite(wide(x)) & ~np.isfinite(wide(y))


def _half_lost(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (np.isnan(wide(y)) | (wide(y) == 0)) & (x.dtype.name in ("float16", "bfloat16"))


def _range_left(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """One is 0, infinite or NaN, and the other is another of these, or so large or small that a part of it was."""
    lost_x, lost_y = ((wide(v) == 0) | ~np.isfinite(wide(v)) for v in (x, y))
    size = np.abs(_given(call))
    extreme = np.any(size > 1e15) or np.any((size < 1e-15) & (size > 0))
    return (lost_x | lost_y) & bool(extreme)


def _half_overflow(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """One of both is not finite, or 0 as the inverse of that, in a type that ends at 65504 or for such arguments."""
    halves = x.dtype.name == "float16" or any(a.dtype == "float16" for a in call.arguments) or "float16" in call.text
    other = np.isfinite(wide(x)) != np.isfinite(wide(y))
    if np.nanmax(np.abs(_given(call)), initial=0) > 256:  # whose square overflows
        other |= (wide(x) == 0) != (wide(y) == 0)
    return other & halves


SPECIAL = r"special\.|lax\.(igamma|zeta|polygamma|betainc|digamma|lgamma|random_gamma|bessel)"
ELEMENTS: tuple[Element, ...] = (
    Element("subnormal numbers", "JAX makes numbers below the least normal one 0", "", _subnormal),
    Element(
        "complex order",
        "of complex numbers one of which is NaN JAX takes the other; here NaN wins, as in NumPy",
        r"max|min|clip|sort|median|ptp|elu",
        _nan_here,
    ),
    Element(
        "poles",
        "JAX gives NaN at poles of the gamma functions, here the limit from the argument's side, as in SciPy",
        r"gamma|factorial|beta|poch|comb|zeta",
        _pole_there,
    ),
    Element(
        "overflow inside",
        "JAX's gamma functions overflow on the way to a result that is finite, and give NaN",
        r"poch|comb|beta",
        _nan_there,
    ),
    Element(
        "polygamma below 0",
        "JAX's reflection loses digits next to a pole, in float32 up to all of them, as mpmath shows",
        r"polygamma",
        _float32_below_zero,
    ),
    Element(
        "special functions at infinity",
        "JAX gives NaN at infinity or NaN in the other argument, where the function has a limit",
        SPECIAL,
        _with_infinite(_nan_there),
    ),
    Element(
        "outside of the domain",
        "the derivative of what is constant outside of a function's domain: NaN in JAX, 0 here",
        r"(entr|kl_div|boxcox|log_ndtr|expn)\(.*\n.*(grad|jac|vjp|jvp|linearize)",
        _nan_for_zero,
    ),
    Element(
        "extremes that are NaN",
        "where NaN is the extreme, JAX's derivative in reverse is NaN for all elements, here 0",
        r"(max|min|median|quantile|percentile|ptp|sort)\w*\((.|\n)*(grad|jacrev|vjp|hessian)",
        _with_infinite(_nan_for_zero),
    ),
    Element(
        "infinite elements that others meet",
        "JAX multiplies by 0 what it does not want, or subtracts sums, so that infinity becomes NaN elsewhere",
        r"trapezoid|hankel|toeplitz|circulant|companion|fiedler|segment|average|interp|select|choose|cross|kron",
        _with_infinite(_nan_there),
    ),
    Element(
        "sums of infinities",
        "products that overflow before they are added: inf or NaN, as the order and the fusion of both steps have it",
        r"dot|matmul|einsum| @ |inner|vecdot|matvec|vecmat|tensordot|conv|correlate|cov|corrcoef|outer|fft",
        _both_infinite,
    ),
    Element(
        "exponential integrals in half precision",
        "JAX's expn overflows to NaN or 0 in float16 and bfloat16, here it is that of float32, rounded",
        r"expn\(",
        _half_lost,
    ),
    Element(
        "products of extreme numbers",
        "running products that leave the range: JAX multiplies in another order, and 0 meets infinity",
        r"cumprod|cumulative_prod|lax.mul|prod\(",
        _range_left,
    ),
    Element(
        "derivatives at infinity",
        "of an infinite argument: inf or NaN, as the terms of the derivative are multiplied or chosen",
        r"grad|jac|vjp|jvp|hessian|linearize",
        _with_infinite(_both_infinite),
    ),
    Element(
        "float16",
        "JAX keeps float32 between operations that it has fused, or adds in float16: one of both overflows 65504",
        "",
        _half_overflow,
    ),
)


def excused(call: Call, got: Outcome, want: Outcome) -> tuple[Outcome, str]:
    """Our outcome with JAX's elements where a kind of difference explains them, and the name of the first kind."""
    if isinstance(got, Raised) or isinstance(want, Raised):
        return got, ""
    leaves, name = [], ""
    for g, w in zip(got, want):
        x, y = g.value().copy(), w.value()
        if x.shape == y.shape and x.dtype == y.dtype and is_float(x):
            with np.errstate(all="ignore"):
                for kind in ELEMENTS:
                    bad = ~near(x, y)
                    if np.any(bad) and re.search(kind.text, call.text):
                        found = bad & kind.mask(call, x, y)
                        name = name or (kind.name if np.any(found) else "")
                        x[found] = y[found]
        leaves.append(g._replace(data=np.ascontiguousarray(x).tobytes()) if g.dtype != "void" else g)
    return leaves, name


def _integers_shifted(call, x64, how, difference, got, want):
    shifted = re.search(r"softmax|standardize|logsumexp", call.text)
    kinds = {a.dtype[:3] for a in call.arguments if a.dtype != "bool"}
    return difference.what == "value" and shifted and kinds & {"uin", "int"}


def _large_index(call, x64, how, difference, got, want):
    return ("lax.switch" in call.text or call.group == "indexing") and any(
        a.dtype in ("uint32", "uint64", "int64") and np.any(np.abs(a.value().astype(float)) >= 2**31)
        for a in call.arguments
    )


def _scalar_exponent(call, x64, how, difference, got, want):
    powers = re.search(r"\*\*|power|pow\(", call.text)
    scalar = any(a.shape == () and a.form != "python" and a.dtype[:3] in ("int", "uin") for a in call.arguments)
    return difference.what == "weak_type" and powers and scalar


def _norm_of_integers(call, x64, how, difference, got, want):
    whole = all(a.dtype[:3] in ("int", "uin", "boo") for a in call.arguments)
    return "norm" in call.text and whole


def _log_ndtr(call, x64, how, difference, got, want):
    """JAX subtracts from 1 before it takes the logarithm, which costs half of the digits by x = 5."""
    return (
        difference.what == "value"
        and "log_ndtr" in call.text
        and all(
            x.dtype.kind == "f" and np.all(np.abs(wide(x) - wide(y)) <= 4 * precision(x)[0])
            for x, y in _differing(got, want)
        )
    )


def _one_plus_tanh(call, x64, how, difference, got, want):
    """1 + tanh(u) for u << 0 keeps what 1 leaves of it, in either library."""
    return (
        difference.what == "value"
        and "gelu" in call.text
        and all(np.all(np.abs(wide(x) - wide(y)) <= 64 * precision(x)[0]) for x, y in _differing(got, want))
    )


def _windows_end(call, x64, how, difference, got, want):
    return (
        difference.what == "value"
        and re.search("blackman|hamming|hanning|bartlett", call.text)
        and all(np.all(np.abs(wide(x) - wide(y)) <= precision(x)[0]) for x, y in _differing(got, want))
    )


def _divided(call, x64, how, difference, got, want):
    if difference.what != "value" or " / 3" not in call.text:
        return False
    whole = "bitcast" in call.text
    return whole or all(np.all(near(x.astype(np.complex64), y.astype(np.complex64))) for x, y in _differing(got, want))


def _attention(call, x64, how, difference, got, want):
    if difference.what != "value" or "dot_product_attention" not in call.text:
        return False
    return all(
        x.dtype == np.float64 and np.all(np.abs(x - y) <= 2e-6 * (1 + np.abs(y))) for x, y in _differing(got, want)
    )


def _narrow(call, x64, how, difference, got, want):
    """Elements are within some units of the largest, in the coarsest type of the arguments and the text."""
    if difference.what != "value" or isinstance(got, Raised) or isinstance(want, Raised):
        return False
    text = call.text + "".join(a.dtype for a in call.arguments)
    eps = 2.0**-7 if "bfloat16" in text else 2.0**-10 if "float16" in text else 0.0
    with np.errstate(all="ignore"):
        for g, w in zip(got, want):
            x, y = wide(g.value()), wide(w.value())
            if x.dtype.kind not in "fc" or x.shape != y.shape or not eps:
                return False
            size = np.max(np.abs(np.where(np.isfinite(y), y, 0)), initial=0)
            if not np.all(near(x, y) | (np.abs(x - y) <= 16 * eps * size)):
                return False
    return bool(
        re.search(r"sum|prod|mean|std|var|average|trapezoid|norm|dot|matmul|conv|correlate|astype\(float", call.text)
    )


def _single_inside(call, x64, how, difference, got, want):
    """Elements are within some units in float32 of the largest."""
    kinds = {a.dtype for a in call.arguments if a.form != "python"}
    if difference.what != "value" or not kinds & {"float32", "int8", "int16", "int32", "uint8", "uint16", "uint32"}:
        return False
    for g, w in zip(got, want):
        x, y = wide(g.value()), wide(w.value())
        if x.dtype.kind not in "fc" or y.dtype.kind not in "fc":
            if not np.array_equal(x, y):
                return False
            continue
        size = np.max(np.abs(np.where(np.isfinite(y), y, 0)), initial=0)
        if g.dtype not in ("float64", "complex128") and not np.all(near(g.value(), w.value())):
            return False
        with np.errstate(all="ignore"):
            if x.shape != y.shape or not np.all(near(g.value(), w.value()) | (np.abs(x - y) <= 2.0**-19 * size)):
                return False
    return True


def _cancelling_integers(call, x64, how, difference, got, want):
    large = any(
        a.dtype[:3] in ("int", "uin") and np.any(np.abs(a.value().astype(float)) > 2**24) for a in call.arguments
    )
    found = _differing(got, want)
    return difference.what == "value" and large and found and all(
        np.all(y == y.astype(np.float32)) and np.all(np.abs(wide(x) - wide(y)) <= 1e-4 * np.abs(wide(y)))
        for x, y in found
    )  # fmt: skip


def _negative_powers(call, x64, how, difference, got, want):
    whole = [a for a in call.arguments if a.dtype[:3] in ("int", "uin")]
    negative = any(np.any(a.value().astype(float) < 0) for a in whole)
    return difference.what == "value" and len(whole) > 1 and negative and re.search(r"power|pow\(|\*\*", call.text)


def _complex_special(call, x64, how, difference, got, want):
    named = re.search(r"(gamma|loggamma|gammaln|factorial|cumlogsumexp|erfcx|owens_t|fresnel|sici|spence)\(", call.text)
    refused = isinstance(got, Raised) and re.search("complex", got.message)
    return named and refused


CLASSES: tuple[Explained, ...] = (
    Explained("condition", "both are within what a unit in the last place of the arguments changes", _never),
    Explained("peer", "JAX's result is further from that of wider arguments, on which both agree, than ours", _never),
    Explained(
        "not implemented",
        "JAX raises NotImplementedError",
        lambda call, x64, how, d, got, want: isinstance(want, Raised) and "NotImplementedError" in want.names,
    ),
    Explained(
        "halves and integers",
        "JAX takes float32 and float64 alone; ours also half precision and integers",
        _raises(
            "is not supported|not supported, see docstring|RFFT input must be", "ndtr|spence|fft|convolve|correlate"
        ),
    ),
    Explained(
        "booleans",
        "JAX subtracts or negates booleans inside of the function, which raises; ours takes them as numbers",
        _raises("does not accept dtype bool", "softmax|standardize|nn\\.|kron|cumulative|diff|cov|vander|special|norm"),
    ),
    Explained(
        "quantiles of integers",
        "JAX takes the floor of an integer inside of nanquantile and quantile, which raises",
        _raises("floor does not accept dtype", "quantile|percentile"),
    ),
    Explained(
        "bounds of loops",
        "JAX wants both bounds of one type; a Python integer takes the other's here",
        _raises("lower and upper arguments to fori_loop must have equal types", "fori_loop"),
    ),
    Explained(
        "asserts",
        "JAX asserts; ours is a ValueError that says what is wrong",
        _both_raise("ValueError", "AssertionError", "glu"),
    ),
    Explained(
        "axes",
        "JAX looks the axis up first (IndexError); ours is NumPy's ValueError",
        _both_raise("ValueError", "IndexError", r"arg(max|min)|mean|std|var"),
    ),
    Explained(
        "concrete values",
        "another step is the first to need the value, or none is, as what depends on no argument is computed at once",
        _concrete,
    ),
    Explained(
        "complex overflow",
        "after an overflow no part of either complex number is finite; which are inf and which NaN is open",
        _complex_overflow,
    ),
    Explained("gamma", "JAX's log-gamma cancels near its zeros at 1 and 2, and far out", _gamma),
    Explained(
        "integers shifted",
        "JAX subtracts the largest or the mean in the integers' own type, which wraps",
        _integers_shifted,
    ),
    Explained(
        "large numbers of branches and places",
        "JAX cuts branch numbers and indices of 2^31 and more to 32 bits; here they lie outside, and are clamped",
        _large_index,
    ),
    Explained(
        "scalar exponents",
        "JAX looks into a concrete scalar exponent and multiplies, which keeps a weak type; here types alone decide",
        _scalar_exponent,
    ),
    Explained("norms of integers", "JAX computes roots in integers; ours are floats", _norm_of_integers),
    Explained("attention in float64", "JAX's attention computes its logits in float32, here in float64", _attention),
    Explained(
        "narrow sums",
        "sums in float16 or bfloat16, or converted to float64 after steps in these: each order rounds differently",
        _narrow,
    ),
    Explained(
        "large integers",
        "integers of more than 24 bits lose digits as float32, after which differences of them cancel",
        _cancelling_integers,
    ),
    Explained(
        "division by constants",
        "x / 3 is rounded correctly here; JAX multiplies by the inverse; bits and wider types show the last digit",
        _divided,
    ),
    Explained(
        "order of equal elements",
        "an order that is not stable may have equal elements in any order, and any of them may be given a derivative",
        lambda call, x64, how, d, got, want: (
            d.what == "value"
            and (
                "stable=False" in call.text
                or bool(re.search(r"(union1d|intersect1d|unique|setxor1d)(.|\n)*(jac|grad|vjp|jvp)", call.text))
            )
        ),
    ),
    Explained(
        "negative powers of integers",
        "JAX's repeated squaring reads a negative exponent's bits; here the inverse is 0, or 1 and -1 of these",
        _negative_powers,
    ),
    Explained(
        "complex powers of 0",
        "JAX's logarithm of 0 makes powers of 0 NaN, here 0 as in NumPy",
        lambda call, x64, how, d, got, want: (
            d.what == "value"
            and bool(re.search(r"power|pow\(|\*\*", call.text))
            and bool(_differing(got, want))
            and all(x.dtype.kind == "c" and np.all((x == 0) & np.isnan(y)) for x, y in _differing(got, want))
        ),
    ),
    Explained(
        "atan2 of large complex numbers",
        "JAX squares and so overflows; both are an angle of the same point or of its mirror image",
        lambda call, x64, how, d, got, want: (
            d.what == "value"
            and "atan2" in call.text
            and any(a.dtype.startswith("complex") for a in call.arguments)
            and np.max(np.abs(_given(call)), initial=0) > 1e15
        ),
    ),
    Explained(
        "norms at kinks",
        "a subgradient where the norm has no gradient: at zeros, and where infinities are equal",
        lambda call, x64, how, d, got, want: (
            d.what == "value"
            and bool(re.search(r"norm(.|\n)*(grad|jac|vjp)", call.text))
            and bool(np.any((_given(call) == 0) | ~np.isfinite(_given(call))))
        ),
    ),
    Explained(
        "types of products",
        "JAX rounds the operands to the type that is preferred, though it cannot hold the products; here a TypeError",
        lambda call, x64, how, d, got, want: (
            isinstance(got, Raised) and "cannot hold products" in got.message and not isinstance(want, Raised)
        ),
    ),
    Explained(
        "pieces beyond the end",
        "jnp.split at places beyond the end gives empty pieces, as in NumPy; JAX raises",
        _raises("Sizes passed to split must be nonnegative", "split"),
    ),
    Explained(
        "windows with a start value",
        "reduce_window from a start value can be differentiated and mapped here; JAX raises",
        _raises("init_value_tangent|Linearization failed|axis spec None|not implemented for initial", "reduce_window"),
    ),
    Explained(
        "shapes of what does not run",
        "JAX's eval_shape of a decomposition in a type for which there is none gives the shape; here it raises at once",
        lambda call, x64, how, d, got, want: (
            isinstance(got, Raised)
            and "eval_shape" in call.text
            and bool(re.search("Unsupported dtype|not supported|does not accept dtype", got.message))
            and not isinstance(want, Raised)
            and call.group in ("linalg", "special", "products")
        ),
    ),
    Explained(
        "complex special functions",
        "JAX's gamma functions and cumlogsumexp take complex numbers, too; here a TypeError or ValueError says that "
        "they do not",
        _complex_special,
    ),
    Explained(
        "integers in derivatives",
        "JAX's rule takes the logarithm of an integer argument, which raises",
        _raises("log does not accept dtype int|does not accept dtype (u?int|bool)", "xlog|rel_entr|kl_div|entr"),
    ),
    Explained(
        "owens_t in halves",
        "JAX gives float32 for half precision",
        lambda call, x64, how, d, got, want: (
            d.what == "dtype"
            and "owens_t" in call.text
            and not isinstance(got, Raised)
            and got[0].dtype in ("bfloat16", "float16")
        ),
    ),
    Explained(
        "types in bfloat16",
        "JAX asks NumPy whether bfloat16 is a float, which it denies, and raises",
        _raises("bfloat16'> not inexact", "interp|logspace|geomspace|linspace"),
    ),
    Explained(
        "weak booleans",
        "JAX marks some booleans as weakly typed; no promotion depends on it",
        lambda call, x64, how, d, got, want: (
            d.what == "weak_type" and not isinstance(got, Raised) and got[d.leaf].dtype == "bool"
        ),
    ),
    Explained(
        "inverse Hilbert matrices",
        "whole numbers here; JAX computes them by logarithms",
        lambda call, x64, how, d, got, want: (
            d.what == "value"
            and bool(re.search("invhilbert|invpascal", call.text))
            and all(np.all(x == np.round(x)) for x, _ in _differing(got, want))
        ),
    ),
    Explained(
        "running log-sum-exps after infinity",
        "after an infinite element the derivative is that of inf - inf: NaN here; JAX gives a number of its scheme",
        lambda call, x64, how, d, got, want: (
            d.what == "value" and "cumlogsumexp" in call.text and bool(np.any(~np.isfinite(_given(call))))
        ),
    ),
    Explained(
        "logarithms of the normal distribution",
        "JAX's log_ndtr loses digits for x between 1 and 5, as mpmath shows; here it does not",
        _log_ndtr,
    ),
    Explained(
        "gelu far below 0",
        "1 + tanh(u) cancels, in JAX and here: both are off by some 1e-8 in float32, by mpmath",
        _one_plus_tanh,
    ),
    Explained("ends of windows", "where the terms of a window sum to 0, their rounding errors stay", _windows_end),
    Explained(
        "errors of one call",
        "both raise, for reasons of which each library sees another first",
        _both_raise("TypeError", "OverflowError|ValueError", r"cumlogsumexp|bitcast_convert_type"),
    ),
    Explained(
        "types of decompositions",
        "NotImplementedError here, TypeError there, for a matrix of a type that has no decomposition",
        _both_raise("NotImplementedError", "TypeError", r"linalg\."),
    ),
    Explained(
        "errors inside of JAX",
        "JAX fails in its own lowering, or converts float0, the type of tangents of booleans",
        _raises("No constant handler for type|a bytes-like object is required", r"special|jac(fwd|rev)"),
    ),
    Explained(
        "folds from a start value",
        "JAX's derivative of lax.reduce goes to the extreme element also where the start value is beyond it",
        lambda call, x64, how, d, got, want: (
            d.what == "value"
            and bool(re.search(r"lax\.reduce\(.*lax\.(max|min)(.|\n)*(grad|jac|vjp|jvp|linearize)", call.text))
        ),
    ),
    Explained(
        "single precision inside",
        "of float32 and integers that become it: the steps round in float32, though the result is float64",
        _single_inside,
    ),
    Explained(
        "derivatives that are 0",
        "the derivative of a sum that is always 1 is 0: rounding errors of 1 stay",
        lambda call, x64, how, d, got, want: (
            d.what == "value"
            and "softmax" in call.text
            and "sum" in call.text
            and all(
                max(np.max(np.abs(wide(x))), np.max(np.abs(wide(y)))) <= 16 * precision(x)[0]
                for x, y in _differing(got, want)
            )
        ),
    ),
    Explained(
        "axes of running products",
        "JAX reverses first, which raises TypeError; here the axis is looked at first (ValueError)",
        _both_raise("ValueError", "TypeError", r"lax\.cum\w+\(.*reverse=True"),
    ),
)


def explain(call: Call, x64: bool, how: str, difference: Difference, got: Outcome, want: Outcome) -> str:
    """The name of the class that explains a difference, or nothing."""
    for c in CLASSES:
        if c.holds(call, x64, how, difference, got, want):
            return c.name
    return ""
