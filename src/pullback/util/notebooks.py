"""What notebooks show of arrays, shardings and programs: small pieces of HTML for any theme, all text escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

_WHOLE = 200  # elements of an array that are all shown; of a larger one, the ends of each axis
_EDGE = 4
_HTML = "text/html"
_CELL = "border:1px solid;padding:.2em .8em;text-align:center"


def _escape(text: object) -> str:
    from html import escape  # needed by none but notebooks

    return escape(str(text))


def shown_by(html_of: Callable[[Any], str]) -> Callable[..., dict[str, str]]:
    """The method `_repr_mimebundle_` that shows an object by this HTML.

    IPython asks for it as it does for `_repr_html_`. That one would also be found by libraries that show objects in
    their own way (treescope, of penzai), and what JAX has no HTML of they would show twice.
    """

    def _repr_mimebundle_(
        self: Any, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        wanted = (include is None or _HTML in include) and _HTML not in (exclude or ())
        return {_HTML: html_of(self)} if wanted else {}

    return _repr_mimebundle_


def array_html(array: Any) -> str:
    """Type and shape of an array, where it lies if on several devices, and its values or those at its ends."""
    head = f"<div><code>{_escape(array.dtype)}{list(array.shape)}</code>"
    if array.is_deleted():
        return head + " deleted</div>"
    head += "</div>"
    if len(array.sharding.device_set) > 1:
        head += blocks_html(array.shape, array.sharding)
    if not array.is_fully_addressable:
        return head
    with np.printoptions(threshold=_WHOLE, edgeitems=_EDGE):
        return head + f"<pre>{_escape(np.asarray(array))}</pre>"


def blocks_html(shape: Sequence[int], sharding: Any) -> str:
    """The parts of an array of one or two dimensions as a table with the devices of each, else the sharding's text."""
    if len(shape) not in (1, 2) or 0 in shape:
        return f"<div>{_escape(sharding)}</div>"
    parts: dict[tuple[Any, ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        part = tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))
        parts.setdefault(part if len(part) == 2 else ((0, 1), *part), []).append(device)
    rows, columns = (sorted({part[axis] for part in parts}) for axis in (0, 1))
    return _table([[_devices(parts[row, column]) for column in columns] for row in rows])


def mesh_html(mesh: Any) -> str:
    """Names and sizes of a mesh's axes, and its devices as a table: the first axis goes down."""
    head = f"<div><code>{_escape(mesh)}</code></div>"
    devices = getattr(mesh, "devices", None)
    if devices is None or not 1 <= devices.ndim <= 2:
        return head
    return head + _table([[_devices([device]) for device in row] for row in np.atleast_2d(devices)])


def named_sharding_html(sharding: Any, cuts: Sequence[Sequence[Any]]) -> str:
    """For each dimension of the spec the axes of `cuts` that it is cut along, in how many parts, and the mesh."""
    said = []
    for number, axes in enumerate(cuts):
        along = " and ".join(f"<code>{_escape(axis)}</code>" for axis in axes)
        count = math.prod(sharding.mesh.shape[axis] for axis in axes)
        said.append(f"<li>dimension {number}: " + (f"{count} parts along {along}" if axes else "whole") + "</li>")
    head = f"<div><code>NamedSharding {_escape(sharding.spec)}</code></div>"
    return head + f"<ul>{''.join(said)}</ul>" + mesh_html(sharding.mesh)


def _devices(devices: Sequence[Any]) -> tuple[str, int]:
    """(text, number that decides on a colour) of the devices that hold one part."""
    numbers = sorted(device.id for device in devices)
    return f"{devices[0].platform.upper()} {', '.join(map(str, numbers))}", numbers[0]


def _table(rows: Sequence[Sequence[tuple[str, int]]]) -> str:
    """Cells of (text, number); neighbours in number are of colours that are far apart."""
    lines = []
    for row in rows:
        cells = (f"background:hsla({n * 137 % 360},70%,50%,.25);{_CELL}" for _, n in row)
        lines.append("".join(f'<td style="{s}">{_escape(text)}</td>' for s, (text, _) in zip(cells, row)))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="margin:.3em 0">{body}</table>'


def program_html(lines: Sequence[tuple[str, str]]) -> str:
    """Lines of a program, each with the place in the user's code as its title, where it is known."""
    parts = [
        f'<span title="{_escape(where)}">{_escape(text)}</span>' if where else _escape(text) for text, where in lines
    ]
    return "<pre>" + "\n".join(parts) + "</pre>"


__all__ = ["array_html", "blocks_html", "mesh_html", "named_sharding_html", "program_html", "shown_by"]
