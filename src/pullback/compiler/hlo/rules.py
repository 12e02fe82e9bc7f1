"""The HLO instructions of each primitive."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compiler.hlo.text import INDEX, TRUTH, Computation, braces, plain
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from pullback.core.lowering import InlineFunction
from pullback.core.types import CONSTRAINTS

# Primitives that are one operation without attributes; its name, where it is not the primitive's own.
_OPERATIONS = {
    **dict.fromkeys(("abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "complex", "erf", "floor", "imag", "log")),
    **dict.fromkeys(("logistic", "not", "or", "real", "reshape", "rsqrt", "sign", "sqrt", "tan", "tanh", "xor")),
    "add_any": "add",
    "bitcast_convert_type": "bitcast-convert",
    "clz": "count-leading-zeros",
    "convert_element_type": "convert",
    "cos": "cosine",
    "div": "divide",
    "exp": "exponential",
    "expm1": "exponential-minus-one",
    "is_finite": "is-finite",
    "log1p": "log-plus-one",
    "max": "maximum",
    "min": "minimum",
    "mul": "multiply",
    "neg": "negate",
    "optimization_barrier": "opt-barrier",
    "population_count": "popcnt",
    "pow": "power",
    "rem": "remainder",
    "shift_left": "shift-left",
    "shift_right_arithmetic": "shift-right-arithmetic",
    "shift_right_logical": "shift-right-logical",
    "sin": "sine",
    "squeeze": "reshape",
    "sub": "subtract",
}
_SAME = frozenset({"copy", "name", "stage", "stop_gradient", *CONSTRAINTS})
_FOLDS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor"}
_COMPARISONS = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})
_FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
_ROUNDINGS = ("round-nearest-afz", "round-nearest-even")

Rule = Callable[..., list[str]]
_RULES: dict[str, Rule] = {}


def write(c: Computation, eqn: JaxprEqn) -> None:
    """Write the instructions of an equation."""
    name = eqn.primitive.name
    operands = [c.read(a) for a in eqn.invars]
    avals = [v.aval for v in eqn.outvars]
    if "elementwise" in eqn.primitive.traits and name != "clamp":
        operands = [c.spread(x, a.aval, avals[0].shape) for x, a in zip(operands, eqn.invars)]
    if name in _SAME or (name == "convert_element_type" and avals[0].dtype == eqn.invars[0].aval.dtype):
        outs = operands
    elif name in _RULES:
        outs = _RULES[name](c, eqn, operands, avals)
    elif name in _COMPARISONS:
        outs = c.results(name, avals, "compare", operands, f"direction={name.upper()}")
    elif name in _OPERATIONS:
        outs = c.results(name, avals, _OPERATIONS[name] or name, operands)
    elif isinstance(eqn.primitive.lower, InlineFunction) and "movement" in eqn.primitive.traits:
        outs = c.run(eqn.primitive.lower.body(eqn), operands)
    else:
        outs = _call(c, eqn, operands, avals)
    c.values.update(zip(eqn.outvars, outs, strict=True))


def _call(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    """A call, where the equation has a program of its operands and results; else what HLO has no operation for."""
    name = eqn.primitive.name
    programs = [_closed(p) for p in eqn.params.values() if isinstance(p, Jaxpr | ClosedJaxpr)]
    if programs and len(programs[0].in_avals) == len(operands) and len(programs[0].out_avals) == len(avals):
        called = plain(str(eqn.params.get("name") or name))
        return c.results(called, avals, "call", operands, f"to_apply={c.function(called, programs[0])}")
    return custom(c, eqn, operands, avals)


def custom(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    """What HLO has no operation for."""
    name = eqn.primitive.name
    return c.results(name, avals, "custom-call", operands, f'custom_call_target="{name}"')


def _closed(program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())


def rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator: what writes the equations of these primitives."""

    def record(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return record


def _attributes(name: str, operation: str, *attributes: Callable[[dict[str, Any]], str]) -> None:
    """A primitive that is one operation, with attributes made of its parameters."""
    _RULES[name] = lambda c, eqn, operands, avals: c.results(
        name, avals, operation, operands, *(a(eqn.params) for a in attributes)
    )


_attributes("transpose", "transpose", lambda p: braces("dimensions", p["permutation"]))
_attributes("rev", "reverse", lambda p: braces("dimensions", p["dimensions"]))
_attributes("iota", "iota", lambda p: f"iota_dimension={p['dimension']}")
_attributes("concatenate", "concatenate", lambda p: f"dimensions={{{p['dimension']}}}")
_attributes("dynamic_slice", "dynamic-slice", lambda p: braces("dynamic_slice_sizes", p["slice_sizes"]))
_attributes("dynamic_update_slice", "dynamic-update-slice")
_attributes("cholesky", "cholesky", lambda p: "lower=true")
_attributes(
    "fft",
    "fft",
    lambda p: f"fft_type={_FFT_TYPES[int(p['fft_type'])]}",
    lambda p: braces("fft_length", p["fft_lengths"]),
)
_attributes(
    "reduce_precision",
    "reduce-precision",
    lambda p: f"exponent_bits={p['exponent_bits']}",
    lambda p: f"mantissa_bits={p['mantissa_bits']}",
)
_attributes(
    "pad",
    "pad",
    lambda p: "padding=" + "x".join(f"{lo}_{hi}" + (f"_{gap}" if gap else "") for lo, hi, gap in p["padding_config"]),
)


@rule("round")
def _round(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    return c.results("round", avals, _ROUNDINGS[int(eqn.params["rounding_method"])], operands)


@rule("conj")
def _conj(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    part = ShapedArray(avals[0].shape, np.empty(0, avals[0].dtype).real.dtype)
    real, imag = (c.emit(name, part, name, operands) for name in ("real", "imag"))
    return c.results("conj", avals, "complex", [real, c.emit("neg", part, "negate", [imag])])


@rule("square", "integer_pow")
def _power(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    """By repeated squaring."""
    name, (aval,), (factor,) = eqn.primitive.name, avals, operands
    left, result = abs(eqn.params.get("y", 2)), None
    while left:
        if left & 1:
            result = factor if result is None else c.emit(name, aval, "multiply", [result, factor])
        left >>= 1
        if left:
            factor = c.emit(name, aval, "multiply", [factor, factor])
    if result is not None and eqn.params.get("y", 2) > 0:
        return [result]
    scalar = ShapedArray((), aval.dtype)
    one = c.spread(c.constant(1, scalar), scalar, aval.shape)
    return [one if result is None else c.emit(name, aval, "divide", [one, result])]


@rule("select_n")
def _select(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    which, *cases = operands
    if len(cases) != 2 or eqn.invars[0].aval.dtype != np.bool_:
        return custom(c, eqn, operands, avals)
    return c.results("select_n", avals, "select", [which, cases[1], cases[0]])


@rule("slice")
def _slice(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    p = eqn.params
    strides = p["strides"] or [1] * len(p["start_indices"])
    parts = zip(p["start_indices"], p["limit_indices"], strides)
    text = (f"[{lo}:{hi}]" if step == 1 else f"[{lo}:{hi}:{step}]" for lo, hi, step in parts)
    return c.results("slice", avals, "slice", operands, f"slice={{{', '.join(text)}}}")


@rule("broadcast_in_dim")
def _broadcast(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    """HLO's broadcast repeats along new dimensions alone: those of one element go first."""
    (x,), source, dimensions = operands, eqn.invars[0].aval, eqn.params["broadcast_dimensions"]
    kept = [k for k, d in enumerate(dimensions) if source.shape[k] == avals[0].shape[d]]
    if len(kept) < len(dimensions):
        x = c.emit("reshape", ShapedArray([source.shape[k] for k in kept], source.dtype), "reshape", [x])
    return c.results("broadcast_in_dim", avals, "broadcast", [x], braces("dimensions", [dimensions[k] for k in kept]))


def _precision(said: Any) -> str:
    """The attribute of products: nothing by default, and algorithms by their name."""
    if said is None:
        return ""
    if not isinstance(said, tuple):
        return f"algorithm=dot_{str(said).rpartition('.')[2].lower()}"
    names = [str(p).rpartition(".")[2].lower() for p in said]
    return "" if set(names) <= {"default", "none"} else braces("operand_precision", names)


@rule("dot_general")
def _dot(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    contracting, batch = eqn.params["dimension_numbers"]
    said = [
        braces(f"{side}_{kind}_dims", dims)
        for kind, pair in (("batch", batch), ("contracting", contracting))
        for side, dims in zip(("lhs", "rhs"), pair)
        if len(dims)
    ]
    return c.results("dot_general", avals, "dot", operands, *said, _precision(eqn.params["precision"]))


def _window(sizes, strides, padding, base, window) -> str:
    """The attribute of what slides over an array; what is as usual is left out, the sizes are not."""
    parts = {
        "size": [str(s) for s in sizes],
        "stride": [str(s) for s in strides],
        "pad": [f"{lo}_{hi}" for lo, hi in padding],
        "lhs_dilate": [str(d) for d in base],
        "rhs_dilate": [str(d) for d in window],
    }
    usual = {"stride": {"1"}, "pad": {"0_0"}, "lhs_dilate": {"1"}, "rhs_dilate": {"1"}}
    said = [f"{name}={'x'.join(v)}" for name, v in parts.items() if v and not set(v) <= usual.get(name, set())]
    return f"window={{{' '.join(said)}}}"


@rule("conv_general_dilated")
def _convolution(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    p = eqn.params
    labels = []
    for spec, letters in zip(p["dimension_numbers"], ("bf", "oi", "bf")):
        where = dict(zip(spec, [*letters, *map(str, range(len(spec) - 2))]))
        labels.append("".join(where[axis] for axis in range(len(spec))))
    sizes = [eqn.invars[1].aval.shape[axis] for axis in p["dimension_numbers"][1][2:]]
    window = _window(sizes, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"])
    groups = [f"{k}={p[k]}" for k in ("feature_group_count", "batch_group_count") if p[k] != 1]
    said = (window, f"dim_labels={labels[0]}_{labels[1]}->{labels[2]}", *groups, _precision(p["precision"]))
    return c.results("conv_general_dilated", avals, "convolution", operands, *said)


def fold(c: Computation, name: str, operation: str, dtype: Any) -> str:
    """A computation of two scalars, for reductions."""
    inner, aval = Computation(c.module), ShapedArray((), dtype)
    return inner.finish("region", inner.emit(name, aval, operation, inner.parameters([aval, aval])))


def _neutral(c: Computation, kind: str, dtype: Any) -> str:
    """What a reduction begins with."""
    aval = ShapedArray((), dtype)
    if kind in ("max", "min") and dtype.kind in "iu":
        info = np.iinfo(dtype)
        return c.constant(info.min if kind == "max" else info.max, aval)
    if kind in ("max", "min") and dtype != np.bool_:
        return c.constant(-np.inf if kind == "max" else np.inf, aval)
    ones = -1 if dtype.kind == "i" else 1 if dtype == np.bool_ else 2 ** (8 * dtype.itemsize) - 1
    return c.constant({"prod": 1, "and": ones, "min": 1}.get(kind, 0), aval)


def _reduce(kind: str, c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    name, dtype = eqn.primitive.name, avals[0].dtype
    taken = [*operands, _neutral(c, kind, dtype)]
    region = fold(c, name, _FOLDS[kind], dtype)
    return c.results(name, avals, "reduce", taken, braces("dimensions", eqn.params["axes"]), f"to_apply={region}")


def _reduce_window(kind: str, c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    name, p, dtype = eqn.primitive.name, eqn.params, avals[0].dtype
    names = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    region = fold(c, name, _FOLDS[kind], dtype)
    taken = [*operands, _neutral(c, kind, dtype)]
    return c.results(name, avals, "reduce-window", taken, _window(*(p[n] for n in names)), f"to_apply={region}")


_RULES |= {f"reduce_{kind}": functools.partial(_reduce, kind) for kind in _FOLDS}
_RULES |= {f"reduce_window_{kind}": functools.partial(_reduce_window, kind) for kind in ("sum", "max", "min")}


@rule("gather")
def _gather(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    p, d = eqn.params, eqn.params["dimension_numbers"]
    said = [
        braces("offset_dims", d.offset_dims),
        braces("collapsed_slice_dims", d.collapsed_slice_dims),
        braces("start_index_map", d.start_index_map),
        braces("operand_batching_dims", d.operand_batching_dims) if d.operand_batching_dims else "",
        braces("start_indices_batching_dims", d.start_indices_batching_dims) if d.operand_batching_dims else "",
        f"index_vector_dim={eqn.invars[1].aval.ndim - 1}",
        braces("slice_sizes", p["slice_sizes"]),
        "indices_are_sorted=true" if p["indices_are_sorted"] else "",
    ]
    return c.results("gather", avals, "gather", operands, *said)


@rule("cond")
def _conditional(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    """Each branch takes a tuple."""
    branches = eqn.params["branches"]
    which, *rest = operands
    taken = [a.aval for a in eqn.invars[1:]]

    def computation(branch: ClosedJaxpr) -> str:
        return c.of_tuple("branch", taken, lambda inner, given: inner.tuple(inner.run(branch, given), branch.out_avals))

    names = [computation(_closed(b)) for b in branches]
    whole = c.tuple(rest, taken)
    found = c.emit("cond", avals, "conditional", [which, *[whole] * len(names)], braces("branch_computations", names))
    return c.elements(found, avals)


@rule("while")
def _while(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    """What its two programs close over is carried along."""
    p = eqn.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    carried = [a.aval for a in eqn.invars]

    def condition(inner: Computation, given: list[str]) -> str:
        return inner.run(p["cond_jaxpr"], [*given[:first], *given[second:]])[0]

    def body(inner: Computation, given: list[str]) -> str:
        outs = inner.run(p["body_jaxpr"], given[first:])
        return inner.tuple([*given[:second], *outs], carried)

    return _loop(c, "while", operands, carried, condition, body)[second:]


@rule("scan")
def _scan(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    """A loop over steps: it takes a row of each array from place i, and writes rows of results there."""
    p = eqn.params
    program, length = p["jaxpr"], p["length"]
    first, second = p["num_consts"], p["num_consts"] + p["num_carry"]
    stacked = avals[p["num_carry"] :]
    carried = [INDEX, *(a.aval for a in eqn.invars), *stacked]

    def condition(inner: Computation, given: list[str]) -> str:
        return inner.emit("lt", TRUTH, "compare", [given[0], inner.constant(length)], "direction=LT")

    def body(inner: Computation, given: list[str]) -> str:
        step, taken, results = given[0], given[1 : 1 + len(operands)], given[1 + len(operands) :]
        place = step
        if p["reverse"]:
            place = inner.emit("sub", INDEX, "subtract", [inner.constant(length - 1), step])
        sources = [a.aval for a in eqn.invars[second:]]
        rows = [_row(inner, x, a, place) for x, a in zip(taken[second:], sources)]
        outs = inner.run(program, [*taken[:second], *rows])
        made = zip(results, outs[p["num_carry"] :], stacked)
        written = [_with_row(inner, whole, row, aval, place) for whole, row, aval in made]
        after = inner.emit("add", INDEX, "add", [step, inner.constant(1)])
        state = [*taken[:first], *outs[: p["num_carry"]], *taken[second:]]
        return inner.tuple([after, *state, *written], carried)

    empty = []
    for aval in stacked:
        scalar = ShapedArray((), aval.dtype)
        empty.append(c.spread(c.constant(0, scalar), scalar, aval.shape))
    outs = _loop(c, "scan", [c.constant(0), *operands, *empty], carried, condition, body)
    return [*outs[1 + first : 1 + second], *outs[1 + len(operands) :]]


def _loop(c: Computation, name: str, operands, carried: list[Any], condition, body) -> list[str]:
    """A loop over a tuple; the elements of its last value."""
    names = c.of_tuple("condition", carried, condition), c.of_tuple("body", carried, body)
    start = c.tuple(operands, carried)
    found = c.emit(name, carried, "while", [start], f"condition={names[0]}", f"body={names[1]}")
    return c.elements(found, carried)


def _row(c: Computation, whole: str, aval: Any, place: str) -> str:
    sizes = (1, *aval.shape[1:])
    at = [place, *(c.constant(0) for _ in aval.shape[1:])]
    part = c.emit(
        "dynamic_slice", ShapedArray(sizes, aval.dtype), "dynamic-slice", [whole, *at],
        braces("dynamic_slice_sizes", sizes),
    )  # fmt: skip
    return c.emit("squeeze", ShapedArray(aval.shape[1:], aval.dtype), "reshape", [part])


def _with_row(c: Computation, whole: str, row: str, aval: Any, place: str) -> str:
    part = c.emit("reshape", ShapedArray((1, *aval.shape[1:]), aval.dtype), "reshape", [row])
    at = [place, *(c.constant(0) for _ in aval.shape[1:])]
    return c.emit("dynamic_update_slice", aval, "dynamic-update-slice", [whole, part, *at])
