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

    The text has no colours, and `scale` nothing to stretch. Raises ValueError for other ranks.
    """
    del use_color, scale, color_map
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    parts: dict[tuple[int, int], list[int]] = {}
    rows = shape if len(shape) == 2 else (1, *shape)
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        whole = index if len(index) == 2 else (slice(None), *index)
        start = tuple(s.indices(n)[0] for s, n in zip(whole, rows, strict=True))
        parts.setdefault(start, []).append(device.id)  # type: ignore[arg-type]
    lines = sorted({row for row, _ in parts})
    columns = sorted({column for _, column in parts})
    names = {at: "CPU " + ",".join(map(str, sorted(ids))) for at, ids in parts.items()}
    width = min(max(min_width, *(len(name) + 2 for name in names.values())), max(max_width // len(columns), 1))
    rule = "+" + "+".join("-" * width for _ in columns) + "+"
    text = [rule]
    for row in lines:
        text += ["|" + "|".join(names.get((row, c), "").center(width)[:width] for c in columns) + "|", rule]
    sys.stdout.write("\n".join(text) + "\n")


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print boxes with the devices on which the parts of an array lie; see visualize_sharding."""
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


__all__ = ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]
