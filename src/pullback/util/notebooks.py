"""What notebooks show of arrays and of programs: small pieces of HTML, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

_EDGE = 4  # rows and columns shown at each end of an axis that is longer than twice that


def _shown(n: int) -> list[int | None]:
    """The indices of an axis that are shown; None stands for those left out."""
    return list(range(n)) if n <= 2 * _EDGE else [*range(_EDGE), None, *range(n - _EDGE, n)]


def array_html(array: Any) -> str:
    """Type, shape and sharding of an array, and the values at its ends if it has one or two dimensions."""
    head = f"<div><code>Array {escape(str(array.dtype))}{list(array.shape)}</code>"
    if array.is_deleted():
        return head + " deleted</div>"
    head += f" <small>{escape(str(array.sharding))}</small></div>"
    if array.ndim > 2 or array.size == 0 or not array.is_fully_addressable:
        return head
    values = np.asarray(array)
    if array.ndim == 0:
        return head + f"<pre>{escape(str(values))}</pre>"
    table = values.reshape(1, -1) if array.ndim == 1 else values
    rows = []
    for i in _shown(table.shape[0]):
        cells = ["…" if i is None or j is None else escape(str(table[i, j])) for j in _shown(table.shape[1])]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return head + f"<table>{''.join(rows)}</table>"


def program_html(lines: Sequence[tuple[str, str]]) -> str:
    """Lines of a program, each with the place in the user's code as its title, where it is known."""
    parts = [f'<span title="{escape(where)}">{escape(text)}</span>' if where else escape(text) for text, where in lines]
    return "<pre>" + "\n".join(parts) + "</pre>"


__all__ = ["array_html", "program_html"]
