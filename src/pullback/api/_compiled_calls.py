"""What a compiled function asks of the arguments of a call, for which nothing is traced again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import typeof
from pullback.core.avals import AbstractRef, type_of_operand
from pullback.sharding._layout import Layout
from pullback.util.pytree import PyTreeDef, equality_errors, keystr


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if number < len(names) else str(number)


def check_tree(compiled: PyTreeDef, given: PyTreeDef, has_static: bool) -> None:
    """TypeError for a call whose (args, kwargs) form another tree than those of the compiled function."""
    if given == compiled:
        return
    trees = (tree.unflatten([0] * tree.num_leaves) for tree in (compiled, given))
    errors = [
        f"    * at {('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}, seen {expected} but now given {found}, so {why}"
        for path, expected, found, why in equality_errors(*trees)
    ]
    static = "\n(static arguments are left out in the call)" if has_static else ""
    raise TypeError(
        f"Function compiled with input pytree of another structure than this call's; {len(errors)} places differ:\n"
        + "\n".join(errors)
        + static
    )


def check_types(names: Sequence[str], avals: Sequence[Any], leaves: Sequence[Any]) -> None:
    """TypeError for arguments of other types than those that the function was compiled for."""
    types = [type_of_operand(leaf) for leaf in leaves]
    lines = [
        f"Argument '{_name(names, i)}' compiled with {aval.str_short(False)} and called with {given.str_short(False)}"
        for i, (given, aval) in enumerate(zip(types, avals))
        if not _fits(given, aval)
    ]
    if lines:
        raise TypeError(
            "Argument types differ from those of the compiled function; call the jitted function itself, which "
            "compiles for new types, or convert the arguments. (Another jax_enable_x64 than at compile time changes "
            "types, too.) These differ:\n" + "\n".join(lines)
        )


def _fits(given: Any, aval: Any) -> bool:
    is_reference = isinstance(given, AbstractRef) == isinstance(aval, AbstractRef)
    return is_reference and given.shape == aval.shape and given.dtype == aval.dtype


def check_shardings(names: Sequence[str], shardings: Sequence[Any], leaves: Sequence[Any]) -> None:
    """ValueError for arrays that lie elsewhere than the function was compiled for (None: it does not take them)."""
    lines = [
        f"Argument {_name(names, i)} with shape {typeof(x).str_short()}:\n"
        f"  Passed sharding: {x.sharding}\n  Required sharding: {wanted}"
        for i, (x, wanted) in enumerate(zip(leaves, shardings))
        if wanted is not None and getattr(x, "_device", None) is not None
        if not x.sharding.is_equivalent_to(wanted, x.ndim)
    ]
    if lines:
        raise ValueError(
            f"{len(lines)} arguments lie elsewhere than the compiled function takes them; move them with "
            "jax.device_put to the required sharding:\n" + "\n".join(lines)
        )


def check_layouts(names: Sequence[str], layouts: Sequence[Any], leaves: Sequence[Any]) -> None:
    """ValueError for arrays in another layout than the function was compiled for."""
    lines = [
        f"Argument {_name(names, i)} with shape {typeof(x).str_short()}:\n"
        f"  Passed layout: {x.format.layout}\n  Required layout: {wanted.in_full()}"
        for i, (x, wanted) in enumerate(zip(leaves, layouts))
        if isinstance(wanted, Layout) and getattr(x, "_device", None) is not None
        if x.format.layout != wanted.in_full()
    ]
    if lines:
        raise ValueError(
            f"{len(lines)} arguments have another order in memory than the compiled function takes; give them the "
            "required layout with jax.device_put and a Format:\n" + "\n".join(lines)
        )
