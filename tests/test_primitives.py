"""Every primitive, from its record: compiled against reference, second derivatives two ways, vmap against a loop."""

from __future__ import annotations

import numpy as np
import pytest
from primitive_calls import as_list, assert_close, calls

import pullback
from pullback import lax
from pullback.core import ZERO, ClosedJaxpr, Jaxpr, JaxprEqn, Var, hooks, registry, typeof
from pullback.core.lowering import Inline
from pullback.core.primitive import load_late
from pullback.util import dtypes

load_late()
NAMES = sorted(name for name, p in registry.items() if p.samples is not None)
CALLS_FOR_DERIVATIVES = 6


pytestmark = pytest.mark.usefixtures("x64")


def closed_call(primitive, call) -> ClosedJaxpr:
    """A program of one equation."""
    avals = [typeof(x) for x in call.operands]
    invars = [Var(a) for a in avals]
    outvars = [Var(a) for a in as_list(primitive.abstract_eval(*avals, **call.params))]
    return ClosedJaxpr(Jaxpr([], invars, outvars, [JaxprEqn(invars, outvars, primitive, call.params)]), [])


def function(primitive, call):
    """The primitive as a function of its operands that gives a list."""

    def fun(*operands):
        return as_list(primitive.bind(*operands, **call.params))

    return fun


@pytest.mark.parametrize("name", NAMES)
def test_reference_has_the_abstract_type(name):
    primitive = registry[name]
    for call in calls(primitive):
        with np.errstate(all="ignore"):
            outs = as_list(primitive.reference(*call.operands, **call.params))
        avals = as_list(primitive.abstract_eval(*[typeof(x) for x in call.operands], **call.params))
        assert len(outs) == len(avals)
        for out, aval in zip(outs, avals):
            assert np.shape(out) == aval.shape and np.asarray(out).dtype == aval.dtype, (
                f"{name}{call}: reference gives {np.asarray(out).dtype}{np.shape(out)}, abstract rule {aval}"
            )


@pytest.mark.parametrize(
    "name", [n for n in NAMES if registry[n].has_rule("lower") and not isinstance(registry[n].lower, Inline)]
)
def test_compiled_matches_reference(name):
    primitive = registry[name]
    for call in calls(primitive):
        closed = closed_call(primitive, call)
        with np.errstate(all="ignore"):
            wanted = as_list(primitive.reference(*call.operands, **call.params))
            found = hooks.run(closed, [hooks.asarray(x) for x in call.operands])
        for got, want in zip(found, wanted):
            assert_close(got, want, call.ulp, call.tolerance, f"{name}{call}")


def differentiable_calls(primitive):
    """A few calls in float64 or complex128 whose derivatives differences can resolve."""
    found = []
    for call in calls(primitive):
        if not call.derivatives or not call.operands:
            continue
        widened = tuple(
            x.astype(np.float64)
            if x.dtype.kind == "f" or x.dtype.name == "bfloat16"
            else x.astype(np.complex128)
            if x.dtype.kind == "c"
            else x
            for x in call.operands
        )
        if not any(x.dtype.kind in "fc" and x.size for x in widened) or not all(
            np.isfinite(x).all() for x in widened if x.dtype.kind in "fc"
        ):
            continue
        try:
            primitive.abstract_eval(*[typeof(x) for x in widened], **call.params)
        except TypeError:
            continue
        found.append(call._replace(operands=widened))
    return found[:CALLS_FOR_DERIVATIVES]


def directions(rng, operands):
    """Random tangents; float0 ones for integers."""
    out = []
    for x in operands:
        if x.dtype.kind == "f":
            out.append(rng.standard_normal(x.shape))
        elif x.dtype.kind == "c":
            out.append(rng.standard_normal(x.shape) + 1j * rng.standard_normal(x.shape))
        else:
            out.append(np.zeros(x.shape, dtypes.float0))
    return out


def numbers(values):
    """The inexact results as one float64 or complex vector."""
    parts = [np.asarray(v).ravel() for v in values if np.asarray(v).dtype.kind in "fc"]
    return np.concatenate(parts) if parts else np.zeros(0)


def along(fun, operands, tangents, step=1e-6):
    """Derivative of fun along the tangents by central differences."""

    def moved(s):
        return numbers(fun(*[x + s * t if x.dtype.kind in "fc" else x for x, t in zip(operands, tangents)]))

    return (moved(step) - moved(-step)) / (2 * step)


DIFFERENTIABLE = [
    n
    for n in NAMES
    if registry[n].has_rule("jvp") and registry[n].jvp is not ZERO and differentiable_calls(registry[n])
]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_jvp_to_second_order(name):
    primitive = registry[name]
    rng = np.random.default_rng(1)
    for call in differentiable_calls(primitive):
        fun = function(primitive, call)
        tangents = directions(rng, call.operands)

        def first(*xs, fun=fun, tangents=tangents):
            return pullback.jvp(fun, xs, tuple(tangents))[1]

        got = numbers(first(*call.operands))
        want = along(fun, call.operands, tangents)
        scale = 1 + np.max(np.abs(want), initial=0)
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5 * scale, err_msg=f"first derivative of {name}{call}")

        second = numbers(pullback.jvp(first, call.operands, tuple(tangents))[1])
        want = along(first, call.operands, tangents)
        scale = 1 + np.max(np.abs(want), initial=0)
        np.testing.assert_allclose(
            second, want, rtol=2e-4, atol=2e-5 * scale, err_msg=f"second derivative of {name}{call}"
        )


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_reverse_mode_by_inner_products(name):
    """<J v, w> = <v, J^T w>, also for the second derivative; no step size is involved."""
    primitive = registry[name]
    if not registry[name].has_rule("transpose") and "linear" in primitive.traits:
        raise AssertionError(f"{name} is linear and has no transpose rule")
    rng = np.random.default_rng(2)
    for call in differentiable_calls(primitive):
        fun = function(primitive, call)
        tangents = directions(rng, call.operands)
        outs, outs_dot = pullback.jvp(fun, call.operands, tuple(tangents))
        outs, pull = pullback.vjp(fun, *call.operands)
        bars = directions(rng, [np.asarray(o) for o in outs])
        got = pull(list(bars))
        left = sum(np.sum(np.asarray(d) * b) for d, b in zip(outs_dot, bars) if b.dtype.kind in "fc")
        right = sum(np.sum(np.asarray(g) * t) for g, t in zip(got, tangents) if t.dtype.kind in "fc")
        magnitude = 1 + sum(np.sum(np.abs(np.asarray(d) * b)) for d, b in zip(outs_dot, bars) if b.dtype.kind in "fc")
        # The pairing of complex numbers is Re(v w): what is not holomorphic has only that.
        assert abs(np.real(left) - np.real(right)) <= 1e-9 * magnitude, (
            f"{name}{call}: <Jv, w> = {left}, <v, J^T w> = {right}"
        )


@pytest.mark.parametrize("name", [n for n in NAMES if registry[n].has_rule("batch")])
def test_vmap_matches_a_loop(name):
    primitive = registry[name]
    rng = np.random.default_rng(3)
    chosen = [c for c in calls(primitive) if all(x.size for x in c.operands) and c.operands][:4]
    for call in chosen:
        fun = function(primitive, call)
        n = len(call.operands)
        patterns = [tuple(0 for _ in range(n))] + [tuple(0 if i == k else None for i in range(n)) for k in range(n)]
        patterns.append(tuple(x.ndim for x in call.operands))
        for axes in dict.fromkeys(patterns):
            stacked = [
                x if a is None else np.stack([x, np.roll(x, 1) if rng.random() < 0.5 else x, x], a)
                for x, a in zip(call.operands, axes)
            ]
            got = pullback.vmap(fun, in_axes=axes)(*stacked)
            rows = [fun(*[x if a is None else np.take(x, i, a) for x, a in zip(stacked, axes)]) for i in range(3)]
            for k, out in enumerate(got):
                want = np.stack([np.asarray(row[k]) for row in rows])
                assert_close(out, want, 4 * call.ulp, max(call.tolerance, 1e-6), f"vmap({name}, {axes}){call}")


@pytest.mark.parametrize("name", NAMES)
def test_record_is_complete(name):
    """Each rule is there, or says why it is not."""
    primitive = registry[name]
    for field in ("abstract_eval", "reference", "jvp", "transpose", "batch", "lower"):
        rule = getattr(primitive, field)
        reason = getattr(rule, "reason", None)
        assert reason != "none was given", f"{name}: no {field} rule, and no reason"


def test_public_functions_have_docstrings():
    for name in dir(lax):
        function = getattr(lax, name)
        if callable(function) and not name.startswith("_") and not isinstance(function, type):
            assert getattr(function, "__doc__", None), f"lax.{name} has no docstring"
