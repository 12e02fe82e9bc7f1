"""How arrays lie on devices, as text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pullback import tree_util
from pullback.core import Tracer
from pullback.lax.collectives.sharding import inspect_sharding_p
from pullback.sharding import Sharding


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], Any]) -> None:
    """Call `callback` with the sharding of each array in `value`; inside of jit when the program is made, for values as
    they lie there. TypeError for a callback that is no function.
    """
    if not callable(callback):
        raise TypeError(f"inspect_array_sharding: argument 'callback' must be a function, got {callback!r}")
    for leaf in tree_util.tree_leaves(value):
        if isinstance(leaf, Tracer):
            inspect_sharding_p.bind(leaf, callback=callback)
        else:
            callback(leaf.sharding)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print boxes with the devices on which the parts of an array of one or two dimensions lie.

    `scale` stretches the boxes of matrices; boxes are at least `min_width` wide, all together at most `max_width`. The
    text has no colours. Raises ValueError for other ranks.
    """
    del use_color, color_map
    if len(shape) not in (1, 2):
        raise ValueError(
            f"visualize_sharding: expected a shape of one or two dimensions, which can be drawn; got {tuple(shape)}"
        )
    parts: dict[tuple[int, int], list[int]] = {}
    rows = shape if len(shape) == 2 else (1, *shape)
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        whole = index if len(index) == 2 else (slice(None), *index)
        start = tuple(s.indices(n)[0] for s, n in zip(whole, rows, strict=True))
        parts.setdefault(start, []).append(device.id)  # type: ignore[arg-type]
    starts = [sorted(set(axis)) for axis in zip(*parts)]
    names = [
        ["CPU " + ",".join(map(str, sorted(parts.get((row, column), ())))) for column in starts[1]] for row in starts[0]
    ]
    height, width = _extent(shape, scale)
    widest = max(len(name) for row in names for name in row)
    widths = [max(min_width, width // len(starts[1])) - 2] * len(starts[1])
    widths = [max(w, widest) for w in widths]
    room = max_width - len(widths) - 1
    if sum(widths) > room:
        widths = [max(room // len(widths) + (k < room % len(widths)), 1) for k in range(len(widths))]
    lines = max(height // len(starts[0]) - 1, 1)
    text = [_rule("┌┬┐", widths)]
    for number, row in enumerate(names):
        blank = "│" + "│".join(" " * w for w in widths) + "│"
        told = "│" + "│".join(_centred(name, w) for name, w in zip(row, widths, strict=True)) + "│"
        above = (lines - 1) // 2
        text += [blank] * above + [told] + [blank] * (lines - 1 - above)
        text.append(_rule("├┼┤" if number < len(names) - 1 else "└┴┘", widths))
    sys.stdout.write("\n".join(text) + "\n")


_LINES = 10  # of a matrix's picture
_COLUMNS_PER_LINE = 2.5  # of a square, as characters are higher than wide


def _extent(shape: Sequence[int], scale: float) -> tuple[int, int]:
    """(lines, columns) of the whole picture; vectors have as few as their names need."""
    if len(shape) == 1:
        return 0, 0
    height = int(_LINES * scale)
    return height, int(height * (shape[1] / max(shape[0], 1)) * _COLUMNS_PER_LINE)


def _rule(ends: str, widths: Sequence[int]) -> str:
    return ends[0] + ends[1].join("─" * w for w in widths) + ends[2]


def _centred(name: str, width: int) -> str:
    left = max(width - len(name), 0) // 2
    return (" " * left + name).ljust(width)[:width]


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print boxes with the devices on which the parts of an array lie; see visualize_sharding."""
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


__all__ = ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]
