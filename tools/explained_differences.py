"""Reasons for which exceptions and types of pullback and JAX may differ: a table, as narrow as it can be made.

Those for which values may differ are in explained_values.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from fuzz.calls import Call
from fuzz.compare import Difference
from fuzz.worker import Outcome, Raised


class Case(NamedTuple):
    """One difference with what it comes from."""

    call: Call
    how: str
    difference: Difference
    got: Outcome
    want: Outcome

    @property
    def raised(self) -> tuple[Raised | None, Raised | None]:
        """What ours raises, and what JAX raises."""
        return (
            self.got if isinstance(self.got, Raised) else None,
            self.want if isinstance(self.want, Raised) else None,
        )


Predicate = Callable[[Case], object]


class Explained(NamedTuple):
    """A kind of difference: its name, its reason, which programs can have it, and which differences it explains."""

    name: str
    reason: str
    text: str
    holds: Predicate


def _jax_raises(pattern: str) -> Predicate:
    """JAX raises something that reads so, and pullback gives a result."""

    def holds(c: Case) -> object:
        ours, theirs = c.raised
        return theirs and not ours and re.search(pattern, theirs.message)

    return holds


def _we_raise(pattern: str) -> Predicate:
    def holds(c: Case) -> object:
        ours, theirs = c.raised
        return ours and not theirs and re.search(pattern, ours.message)

    return holds


def _both_raise(here: str, there: str) -> Predicate:
    """Classes of both exceptions, alternatives with | between them."""

    def holds(c: Case) -> object:
        ours, theirs = c.raised
        return ours and theirs and here in ours.names and set(there.split("|")) & set(theirs.names)

    return holds


def _not_implemented(c: Case) -> object:
    return c.raised[1] and "NotImplementedError" in c.raised[1].names


CONCRETE = {"ConcretizationTypeError", "TracerBoolConversionError", "TracerArrayConversionError"}


def _concrete(c: Case) -> object:
    ours, theirs = c.raised
    if not theirs or not CONCRETE & set(theirs.names):
        return False
    traced = c.how == "jit" or re.search("jit|checkpoint|eval_shape", c.call.text)
    return "ConcretizationTypeError" in ours.names or _no_value(ours) if ours else traced


def _no_value(raised: Raised) -> bool:
    """A shape that eval_shape gave is no value, which jit cannot return."""
    return "ShapeDtypeStruct" in raised.message


def _types(ours: str, theirs: str) -> Predicate:
    """The first dtype that differs reads so here, and so there."""

    def holds(c: Case) -> object:
        if c.difference.what != "dtype" or any(c.raised):
            return False
        leaf = c.difference.leaf
        return re.fullmatch(ours, c.got[leaf].dtype) and re.fullmatch(theirs, c.want[leaf].dtype)

    return holds


def _weak(test: Callable[[Case], object]) -> Predicate:
    return lambda c: c.difference.what == "weak_type" and test(c)


def _weak_bool(c: Case) -> object:
    return not isinstance(c.got, Raised) and c.got[c.difference.leaf].dtype == "bool"


def _scalar_integer(c: Case) -> object:
    return any(a.shape == () and a.form != "python" and a.dtype[:3] in ("int", "uin") for a in c.call.arguments)


def _shape_of_nothing(c: Case) -> object:
    """Only in eval_shape, which jit cannot return: the other library raises before that."""
    ours, theirs = c.raised
    return c.how == "jit" and ours and theirs and _no_value(ours) != _no_value(theirs)


def _any_of(*tests: Predicate) -> Predicate:
    return lambda c: any(test(c) for test in tests)


CLASSES: tuple[Explained, ...] = (
    Explained("not implemented", "JAX raises NotImplementedError", "", _not_implemented),
    Explained(
        "halves and integers",
        "JAX takes float32 and float64 alone; ours also half precision and integers",
        "ndtr|spence|fft|convolve|correlate",
        _jax_raises("is not supported|not supported, see docstring|RFFT input must be"),
    ),
    Explained(
        "booleans",
        "JAX subtracts or negates booleans inside of the function, which raises; ours takes them as numbers",
        r"softmax|standardize|nn\.|cumulative|diff|cov|special|norm",
        _jax_raises("does not accept dtype bool"),
    ),
    Explained(
        "quantiles of integers",
        "JAX takes the floor of an integer inside of nanquantile and quantile, which raises",
        "quantile|percentile",
        _jax_raises("floor does not accept dtype"),
    ),
    Explained(
        "bounds of loops",
        "JAX wants both bounds of one type; a Python integer takes the other's here",
        "fori_loop",
        _jax_raises("fori_loop must have equal types"),
    ),
    Explained(
        "asserts",
        "JAX asserts; ours is a ValueError or a TypeError that says what is wrong",
        r"glu|clamp(.|\n)*vmap",
        _any_of(_both_raise("ValueError", "AssertionError"), _both_raise("TypeError", "AssertionError")),
    ),
    Explained(
        "axes",
        "JAX looks the axis up first (IndexError); ours is NumPy's ValueError",
        r"arg(max|min)|mean|std|var",
        _both_raise("ValueError", "IndexError"),
    ),
    Explained(
        "concrete values",
        "another step is the first to need the value, or none is, as what depends on no argument is computed at once",
        "",
        _concrete,
    ),
    Explained(
        "scalar exponents",
        "JAX looks into a concrete scalar exponent and multiplies, which keeps a weak type; here types alone decide",
        r"\*\*|power|pow\(",
        _weak(_scalar_integer),
    ),
    Explained(
        "weak booleans", "JAX marks some booleans as weakly typed; no promotion depends on it", "", _weak(_weak_bool)
    ),
    Explained(
        "types of norms",
        "JAX's norms of integers are integers, or raise, as they ask NumPy for a float's limits; ours are floats",
        "norm",
        _any_of(_types("float.*", "u?int.*"), _jax_raises("(int|bool).*not inexact")),
    ),
    Explained(
        "types of products",
        "JAX rounds the operands to the type that is preferred, though it cannot hold the products; here a TypeError",
        "",
        _we_raise("cannot hold products"),
    ),
    Explained(
        "products of integers beside halves",
        "JAX asks for products of two integer arrays of several in the result's type, and raises if it is narrower",
        r"multi_dot|einsum",
        _jax_raises("must not be narrower"),
    ),
    Explained(
        "pieces beyond the end",
        "jnp.split at places beyond the end gives empty pieces, as in NumPy; JAX raises",
        "split",
        _jax_raises("passed to split must be"),
    ),
    Explained(
        "windows with a start value",
        "reduce_window from a start value can be differentiated and mapped here; JAX raises",
        "reduce_window",
        _jax_raises("init_value_tangent|Linearization failed|axis spec None|not implemented for initial"),
    ),
    Explained(
        "shapes of what does not run",
        "JAX's eval_shape of a decomposition in a type for which there is none gives the shape; here it raises at once",
        r"(linalg|special|signal|fft)(.|\n)*eval_shape",
        _any_of(_we_raise("Unsupported dtype|not supported|does not accept dtype"), _shape_of_nothing),
    ),
    Explained(
        "integers in derivatives",
        "JAX's rule takes the logarithm of an integer argument, which raises",
        "xlog|rel_entr|kl_div|entr",
        _jax_raises("does not accept dtype (u?int|bool)"),
    ),
    Explained(
        "types of owens_t",
        "JAX gives the default float's type for narrower ones",
        "owens_t",
        _types("b?float16|float32", "float32|float64"),
    ),
    Explained(
        "types in bfloat16",
        "JAX asks NumPy whether bfloat16 is a float, which it denies, and raises",
        "interp|logspace|geomspace|linspace",
        _jax_raises("bfloat16'> not inexact"),
    ),
    Explained(
        "errors of one call",
        "both raise, for reasons of which each library sees another first",
        r"cumlogsumexp|bitcast_convert_type",
        _both_raise("TypeError", "OverflowError|ValueError"),
    ),
    Explained(
        "types of decompositions",
        "NotImplementedError here, TypeError there, for a matrix of a type that has no decomposition",
        r"linalg\.",
        _both_raise("NotImplementedError", "TypeError"),
    ),
    Explained(
        "errors inside of JAX",
        "JAX fails in its own lowering, or converts float0, the type of tangents of booleans",
        r"special|jac(fwd|rev)|dot_product_attention|\.apply\(|grad\((.|\n)*lax\.pad|lax\.pad(.|\n)*grad\(",
        _jax_raises(
            "No constant handler for type|a bytes-like object is required|supported by dot_general|"
            "jaxpr with verifier errors|Called multiply with a float0 array|"
            "interpreting argument to reduce_sum"  # of padding by nothing but removal
        ),
    ),
    Explained(
        "complex owens_t",
        "JAX puts complex numbers into a formula that is for real ones; here a ValueError says so",
        r"owens_t\(",
        _we_raise("owens_t does not support complex"),
    ),
    Explained(
        "second derivatives of gamma samples",
        "JAX differentiates the steps of its loop in a; no formula is published: NotImplementedError here",
        r"random_gamma_grad",
        _we_raise("no published formula is implemented for the second derivative of a gamma variate"),
    ),
    Explained(
        "second derivatives by gamma samples",
        "JAX's loop for the derivative of a sample has no reverse mode; here the second derivative has a formula",
        r"random_gamma_grad",
        _jax_raises("does not work for lax.while_loop"),
    ),
    Explained(
        "shapes under vmap",
        "both raise for shapes that don't go together: ValueError here as without vmap, where JAX's is a TypeError",
        r"ldexp(.|\n)*vmap",
        _both_raise("ValueError", "TypeError"),
    ),
    Explained(
        "axes of running products",
        "JAX reverses first, which raises TypeError; here the axis is looked at first (ValueError)",
        r"lax\.cum\w+\(.*reverse=True",
        _both_raise("ValueError", "TypeError"),
    ),
)


def explain(call: Call, how: str, difference: Difference, got: Outcome, want: Outcome) -> str:
    """The name of the class that explains a difference of exceptions or types, or nothing."""
    if difference.what in ("exception", "dtype", "weak_type"):
        case = Case(call, how, difference, got, want)
        for c in CLASSES:
            if re.search(c.text, call.text) and c.holds(case):
                return c.name
    return ""
