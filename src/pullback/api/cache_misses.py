"""Why a jitted function is traced again: what differs from the call before that was most like this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pullback.core.source import user_source
from pullback.util.logs import TRACING, warn


def _differences(key: tuple, other: tuple, paths: Callable[[], Sequence[str]]) -> list[str]:
    """A line for each thing in which two keys (tree, types, static values, options) differ."""
    (tree, avals, statics, options), (old_tree, old_avals, old_statics, old_options) = key, other
    lines = []
    if tree != old_tree:
        lines.append(f"different structure of the arguments: now {tree}, before {old_tree}")
    elif avals != old_avals:
        for path, now, before in zip(paths(), avals, old_avals, strict=True):
            if now != before:
                weak = " (weakly typed)" * (now.weak_type and not before.weak_type)
                strong = " (weakly typed)" * (before.weak_type and not now.weak_type)
                lines.append(f"argument {path}: now {now.short()}{weak}, before {before.short()}{strong}")
    before_by_place = {where: (kind, form) for where, kind, form in old_statics}
    for where, kind, form in statics:
        if where not in before_by_place:
            lines.append(f"static argument {where!r}: now {form!r}, before not given")
        elif before_by_place[where] != (kind, form):
            lines.append(f"static argument {where!r}: now {form!r}, before {before_by_place[where][1]!r}")
    now_given = {where for where, _, _ in statics}
    lines += [f"static argument {where!r}: now not given" for where in before_by_place if where not in now_given]
    if options is not old_options:
        lines.append("different options: a value of jax.config, or a context manager around the call")
    return lines


def explain(name: str, fun: Callable, key: tuple, seen: Iterable[tuple], paths: Callable[[], Sequence[str]]) -> None:
    """Log at level WARNING why a call with this key is traced, beside the keys that were seen before."""
    code = getattr(fun, "__code__", None)
    defined = f" defined at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    lines = [f"TRACING CACHE MISS at {user_source()}:"]
    found = [_differences(key, other, paths) for other in seen]
    if not found:
        lines.append(f"  never seen function: {name}{defined}")
    else:
        lines.append(f"  for {name}{defined}, all previously seen calls differ. From the one most like this:")
        lines += [f"  * {line}" for line in min(found, key=len)]
    warn(TRACING, "\n".join(lines))


__all__ = ["explain"]
