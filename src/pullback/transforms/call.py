"""Primitives that are a jaxpr: `jit`, `checkpoint`, and what they share.

Each transformation of a call is the same call of the transformed jaxpr.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.core import ClosedJaxpr, Primitive, UndefinedPrimal, Zero, eval_jaxpr, extended, hooks
from pullback.core.lowering import Inline
from pullback.core.typechecks import check_call
from pullback.sharding._shardings import UNSPECIFIED
from pullback.transforms.batching import batch_jaxpr_at
from pullback.transforms.discharge import discharge_call, with_outer
from pullback.transforms.jvp import jvp_jaxpr
from pullback.transforms.partial_eval import dce_jaxpr, partial_eval_by_splitting, used_inputs
from pullback.transforms.places import with_places
from pullback.transforms.policies import checkpoint_split
from pullback.transforms.remembered import remembered_p
from pullback.transforms.transpose import transpose_jaxpr
from pullback.util import config


def call_abstract_eval(*_avals, jaxpr: ClosedJaxpr, **_params):
    """The results' avals are the jaxpr's."""
    return jaxpr.out_avals


def call_effects(params):
    """The effects of a call are the jaxpr's."""
    return params["jaxpr"].effects


def call_jvp(primitive: Primitive, primals, tangents, *, jaxpr: ClosedJaxpr, **params):
    """Call the jaxpr that computes primals and tangents."""
    nonzeros = [type(t) is not Zero for t in tangents]
    jaxpr_dot, nonzeros_out = jvp_jaxpr(jaxpr, nonzeros)
    operands = [*primals, *(t for t in tangents if type(t) is not Zero)]
    outs = primitive.bind(*operands, **_of_program(params, jaxpr_dot))
    count = len(nonzeros_out)
    outs_dot = iter(outs[count:])
    return outs[:count], [
        next(outs_dot) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nonzeros_out, jaxpr.out_avals)
    ]


def call_transpose(primitive: Primitive, outs_bar, *args, jaxpr: ClosedJaxpr, with_residuals: bool = False, **params):
    """Call the jaxpr that runs backwards."""
    linear = [type(a) is UndefinedPrimal for a in args]
    backwards, nonzero_out = transpose_jaxpr(jaxpr, linear, outs_bar, with_residuals)
    operands = [a for a, lin in zip(args, linear) if not lin] + [bar for bar in outs_bar if type(bar) is not Zero]
    found = iter(primitive.bind(*operands, **_of_program(params, backwards)))
    nonzeros = iter(nonzero_out)
    return [
        (next(found) if next(nonzeros) else Zero(a.aval.to_cotangent_aval())) if lin else None
        for a, lin in zip(args, linear)
    ]


def call_batch(primitive: Primitive, axis, args, dims, *, jaxpr: ClosedJaxpr, **params):
    """Call the jaxpr on values with the mapped axes where they are: one that is moved is a copy."""
    jaxpr_batched, mapped_out = batch_jaxpr_at(jaxpr, axis, tuple(dims))
    moved = any(d is not None for d in dims)
    outs = primitive.bind(*args, **_of_program(params, jaxpr_batched, moved))
    dims_out = {k: dim for k, dim, _ in mapped_out}
    return outs, [dims_out.get(k) for k in range(len(outs))]


def call_dce(eqn, used: list[bool]):
    """The equation without the results that nobody needs, nor the arguments that only those needed."""
    closed: ClosedJaxpr = eqn.params["jaxpr"]

    def make():
        inner = dce_jaxpr(closed.jaxpr, used)
        kept = used_inputs(inner)
        return ClosedJaxpr(inner.replace(invars=[v for v, k in zip(inner.invars, kept) if k]), closed.consts), kept

    smaller, kept = closed.cached(("dce", tuple(used)), make)
    if all(kept) and all(used):
        return eqn
    return eqn.replace(
        invars=[a for a, k in zip(eqn.invars, kept) if k],
        outvars=[v for v, u in zip(eqn.outvars, used) if u],
        params=_of_program(eqn.params, smaller),
    )


def call_saving(eqn, unknown_in, _unknown_out, halves):
    """What a policy saves of the body is further results of the call, and its first arguments."""
    closed = eqn.params["jaxpr"]
    giving, taking = halves(closed, unknown_in)
    saved = giving.out_avals[len(eqn.outvars) :]
    return _of_program(eqn.params, giving), _of_program(eqn.params, taking), saved, 0


def places_said(ins: Sequence[Any], outs: Sequence[Any], mesh: Any) -> dict[str, Any]:
    """Parameters of `jit` that say where its arguments and results are to lie (None: not said), for who reads programs.

    What is to happen stands in the body, as constraints, so that transformations need not know of them.
    """
    return {
        "in_shardings": tuple([UNSPECIFIED if s is None else s for s in ins]),
        "out_shardings": tuple([UNSPECIFIED if s is None else s for s in outs]),
        "in_layouts": (None,) * len(ins),
        "out_layouts": (None,) * len(outs),
        "ctx_mesh": mesh,
    }


def _of_program(params: dict[str, Any], jaxpr: ClosedJaxpr, moved: bool = False) -> dict[str, Any]:
    """The params of a call of another program, which has other arguments (or `moved`: of other shapes)."""
    params = params | {"jaxpr": jaxpr}
    if "in_shardings" not in params:
        return params
    ins, outs = len(jaxpr.in_avals), len(jaxpr.out_avals)
    if moved or (ins, outs) != (len(params["in_shardings"]), len(params["out_shardings"])):
        params |= places_said((None,) * ins, (None,) * outs, params["ctx_mesh"])
    if ins != len(params["donated_invars"]):
        params["donated_invars"] = (False,) * ins
    return params


def running_once(effects: Iterable[Any]) -> list[Any]:
    """Those effects that must be as often as the function says (`must_run_once`, which libraries' own may lack)."""
    return [effect for effect in effects if getattr(effect, "must_run_once", False)]


def _outer(args, params):
    closed, outer = with_outer(params["jaxpr"], args)
    if not outer:
        return args, params
    return (*outer, *args), _of_program(params, closed)


def _rebuild_call(jaxpr, params, known):
    return _of_program(params, jaxpr)


def call_primitive(name: str, doc: str, evaluate: Callable, **fields) -> Primitive:
    """A primitive that is its 'jaxpr' parameter, with all rules."""
    kind = _Jit if name == "jit" else Primitive
    primitive = kind(name, doc=doc, multiple_results=True, effects=call_effects, evaluate=evaluate, **fields)
    _fill(primitive)
    return primitive


class _Jit(Primitive):
    def process(self, *args: Any, **params: Any) -> Any:
        return super().process(*args, **with_places(params))


def _fill(primitive: Primitive) -> None:
    """The rules of a primitive that is its 'jaxpr' parameter."""
    primitive.abstract_eval = call_abstract_eval
    primitive.dce = call_dce
    primitive.saving = call_saving
    primitive.jvp = functools.partial(call_jvp, primitive)
    primitive.transpose = functools.partial(call_transpose, primitive)
    primitive.batch_axis = functools.partial(call_batch, primitive)
    primitive.batch = _unnamed(primitive)
    primitive.reference = lambda *args, jaxpr, **_: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
    primitive.discharge = functools.partial(discharge_call, primitive)
    primitive.outer = _outer
    primitive.typecheck = check_call


def _unnamed(primitive):
    from pullback.transforms.batching import AxisData

    def batch(args, dims, **params):
        size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
        return primitive.batch_axis(AxisData(None, size), args, dims, **params)

    return batch


def _evaluate_jit(*args, jaxpr: ClosedJaxpr, **_params):
    return hooks.run(jaxpr, args)


jit_p = call_primitive("jit", "A function that is compiled as one program.", _evaluate_jit, lower=Inline())
jit_p.partial_eval = lambda interpreter, args, params: partial_eval_by_splitting(
    interpreter, jit_p, params["jaxpr"], args, params, _rebuild_call
)


# What transformations of concrete values remember. It is never transformed by these rules but as a whole
# (`Interpreter.call`), except for its transpose, and nobody's tracers see it.

_fill(remembered_p)
remembered_p.lower = Inline()

# checkpoint: the unknown half recomputes what it needs of the known half, instead of storing it.


def call_reference(*args, jaxpr: ClosedJaxpr, **_params):
    """Run the jaxpr."""
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


def _checkpoint_partial_eval(interpreter, args, params):
    """Known results now; the unknown ones from a checkpoint of the whole, given the known args and what the policy
    saves.
    """
    closed: ClosedJaxpr = params["jaxpr"]
    if bad := running_once(closed.effects):
        raise NotImplementedError(
            f"checkpoint: effects not supported in what the backward pass may compute again: {bad}"
        )
    unknown = tuple(map(interpreter.is_unknown, args))
    known, unknown_out, rest, kept = closed.cached(
        ("checkpoint", unknown, params["policy"]), lambda: checkpoint_split(closed, unknown, params["policy"])
    )
    known_args = [a for a, unk in zip(args, unknown) if not unk]
    if extended.checks_reuse():  # as one call, which knows what it does with keys
        known_outs = checkpoint_p.bind(*known_args, **params | {"jaxpr": known})
    else:
        known_outs = eval_jaxpr(known.jaxpr, known.consts, *known_args)
    count = len(unknown_out) - sum(unknown_out)
    operands = [*known_outs[count:], *[a for a, k in zip(args, kept) if k]]
    recorded = iter(
        interpreter.emit(checkpoint_p, operands, params | {"jaxpr": rest, "differentiated": True}, rest.out_avals)
    )
    results = iter(known_outs)
    return [next(recorded) if unk else next(results) for unk in unknown_out]


def _checkpoint_transpose(outs_bar, *args, jaxpr, **params):
    """Recompute and run backwards, where neither is merged with the first computation (`inline`)."""
    params["differentiated"] = True
    return call_transpose(checkpoint_p, outs_bar, *args, jaxpr=jaxpr, with_residuals=True, **params)


def _evaluate_checkpoint(*args, jaxpr: ClosedJaxpr, differentiated: bool, **_params):
    """Run the jaxpr. What it does with keys is checked at once, and when it is run again it is the same use."""
    if not extended.checks_reuse():
        return call_reference(*args, jaxpr=jaxpr)
    noted = None if differentiated else extended.reuse.called("checkpoint", jaxpr, args)
    with config.debug_key_reuse(False):
        outs = call_reference(*args, jaxpr=jaxpr)
    if noted is not None:
        extended.reuse.note_results(outs, noted)
    return outs


checkpoint_p = call_primitive(
    "remat2",
    "A function whose intermediate values are recomputed for its gradient.",
    _evaluate_checkpoint,
    lower=Inline(),
)
checkpoint_p.partial_eval = _checkpoint_partial_eval
checkpoint_p.transpose = _checkpoint_transpose
