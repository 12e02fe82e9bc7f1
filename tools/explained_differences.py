"""Reasons for which pullback and JAX may differ, each with a predicate that is as narrow as it can be made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from fuzz.calls import Call
from fuzz.compare import Difference, near, wide
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
        return raised and ours in got.names and theirs in want.names and re.search(functions, call.text)

    return holds


def _differing(got: Outcome, want: Outcome) -> list[tuple[np.ndarray, np.ndarray]]:
    """The elements of both sides that differ."""
    if isinstance(got, Raised) or isinstance(want, Raised):
        return []
    pairs = [(g.value(), w.value()) for g, w in zip(got, want) if g.shape == w.shape and g.dtype == w.dtype]
    return [(x[bad], y[bad]) for x, y in pairs if np.any(bad := ~near(x, y))]


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
            if not np.all(np.abs(wide(x) - wide(y)) <= 24 * unit * (1 + np.abs(wide(y)))):
                return False
    return True


def _integers_shifted(call, x64, how, difference, got, want):
    shifted = re.search(r"softmax|standardize|logsumexp", call.text)
    kinds = {a.dtype[:3] for a in call.arguments if a.dtype != "bool"}
    return difference.what == "value" and shifted and kinds & {"uin", "int"}


def _large_index(call, x64, how, difference, got, want):
    return "lax.switch" in call.text and any(
        a.dtype in ("uint32", "uint64", "int64") and np.any(np.abs(a.value().astype(float)) >= 2**31)
        for a in call.arguments
    )


def _scalar_exponent(call, x64, how, difference, got, want):
    powers = re.search(r"\*\*|power|pow\(", call.text)
    scalar = any(a.shape == () and a.form != "python" and a.dtype[:3] in ("int", "uin") for a in call.arguments)
    return difference.what == "weak_type" and powers and scalar


def _norm_of_integers(call, x64, how, difference, got, want):
    whole = all(a.dtype[:3] in ("int", "uin", "boo") for a in call.arguments)
    return "vector_norm" in call.text and re.search(r"ord=(0|3)", call.text) and whole


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
        _both_raise("ValueError", "IndexError", "arg(max|min)"),
    ),
    Explained(
        "concrete values",
        "ours names the base class of JAX's error, as another step is the first to need the value",
        _both_raise("ConcretizationTypeError", "ConcretizationTypeError", "def program"),
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
        "branch numbers", "JAX cuts branch numbers of 2^31 and more to 32 bits; here they are clamped", _large_index
    ),
    Explained(
        "scalar exponents",
        "JAX looks into a concrete scalar exponent and multiplies, which keeps a weak type; here types alone decide",
        _scalar_exponent,
    ),
    Explained("norms of integers", "JAX computes roots in integers; ours are floats", _norm_of_integers),
)


def explain(call: Call, x64: bool, how: str, difference: Difference, got: Outcome, want: Outcome) -> str:
    """The name of the class that explains a difference, or nothing."""
    for c in CLASSES:
        if c.holds(call, x64, how, difference, got, want):
            return c.name
    return ""
