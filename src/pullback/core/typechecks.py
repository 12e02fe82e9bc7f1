"""What parameters of calls, loops and branches must be to each other and to operands (check.py asks)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.check import JaxprTypeError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr


def same_types(what: str, got: Sequence[Any], wanted: Sequence[Any]) -> None:
    """JaxprTypeError unless types are as many and of the same shapes and dtypes; weak types go with strong ones."""
    if len(got) != len(wanted):
        raise JaxprTypeError(f"{what}: {len(got)} where {len(wanted)} are to be")
    for k, (one, other) in enumerate(zip(got, wanted)):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise JaxprTypeError(f"{what}: number {k} is {one.short()} where {other.short()} is to be")


def _body(name: str, body: Any) -> ClosedJaxpr:
    if not isinstance(body, ClosedJaxpr):
        raise JaxprTypeError(f"{name} is {body!r}, not a closed jaxpr")
    return body


def _count(name: str, value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise JaxprTypeError(f"{name} is {value!r}, not an integer") from None
    if count < 0:
        raise JaxprTypeError(f"{name} is {count}, below zero")
    return count


def check_call(*avals: Any, jaxpr: Any, **_: Any) -> None:
    """A call's program takes its operands."""
    if not isinstance(jaxpr, (ClosedJaxpr, Jaxpr)):
        raise JaxprTypeError(f"the program of a call is {jaxpr!r}, not a jaxpr")
    same_types("operands of a call", avals, [var.aval for var in jaxpr.invars])


def check_scan(*avals: Any, jaxpr: Any, length: Any, reverse: Any, num_consts: Any, num_carry: Any, **_: Any) -> None:
    """Operands are constants, a carry as the body gives it back, and stacks of what the body takes."""
    body = _body("scan: jaxpr", jaxpr)
    if not isinstance(reverse, (bool, np.bool_)):
        raise JaxprTypeError(f"scan: reverse is {reverse!r}, not a bool")
    consts, carry = _count("scan: num_consts", num_consts), _count("scan: num_carry", num_carry)
    takes, first = body.in_avals, consts + carry
    same_types("scan: constants and carry", avals[:first], takes[:first])
    same_types("scan: carry after a step", body.out_avals[:carry], takes[consts:first])
    stacked = [aval.update(shape=(length, *aval.shape)) for aval in takes[first:]]
    same_types("scan: stacked operands", avals[first:], stacked)


def check_cond(index: Any, *avals: Any, branches: Any, **_: Any) -> None:
    """All branches take the operands, and give the same types."""
    if not isinstance(branches, (tuple, list)) or not branches:
        raise JaxprTypeError(f"cond: branches are {branches!r}, not one or more closed jaxprs")
    if index.shape or np.dtype(index.dtype).kind not in "biu":
        raise JaxprTypeError(f"cond: the branch is chosen by {index.short()}, not by one bool or integer")
    for k, branch in enumerate(branches):
        body = _body(f"cond: branch {k}", branch)
        same_types(f"cond: operands of branch {k}", avals, body.in_avals)
        same_types(f"cond: results of branch {k}", body.out_avals, branches[0].out_avals)


def check_while(*avals: Any, cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: Any, body_nconsts: Any, **_: Any) -> None:
    """The condition and the body take constants of their own and the carry, which the body gives back."""
    tested, body = _body("while: cond_jaxpr", cond_jaxpr), _body("while: body_jaxpr", body_jaxpr)
    first, second = _count("while: cond_nconsts", cond_nconsts), _count("while: body_nconsts", body_nconsts)
    carry = avals[first + second :]
    same_types("while: operands of the condition", [*avals[:first], *carry], tested.in_avals)
    same_types("while: operands of the body", [*avals[first : first + second], *carry], body.in_avals)
    same_types("while: carry after a step", body.out_avals, carry)
