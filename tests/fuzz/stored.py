"""Results of JAX for random calls in one compressed file: texts and types as JSON, elements in one row of bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.calls import Call
from fuzz.worker import Argument, Leaf, Outcome, Raised


def write_stored(path: Path, stored: list[tuple[Call, bool, Outcome]]) -> None:
    """Write calls with whether 64 bits were on and what JAX gave."""
    index: list[dict[str, Any]] = []
    data: list[bytes] = []
    for call, x64, want in stored:
        entry: dict[str, Any] = {"text": call.text, "x64": x64}
        entry["arguments"] = [(a.form, a.dtype, a.shape) for a in call.arguments]
        data += [a.data for a in call.arguments]
        if isinstance(want, Raised):
            entry["raised"] = want.names
        else:
            entry["leaves"] = [(x.dtype, x.weak, x.shape, len(x.data)) for x in want]
            data += [x.data for x in want]
        entry["lengths"] = [len(a.data) for a in call.arguments]
        index.append(entry)
    text = np.frombuffer(json.dumps(index, separators=(",", ":")).encode(), np.uint8)
    np.savez_compressed(path, index=text, data=np.frombuffer(b"".join(data), np.uint8))


def read_stored(path: Path) -> list[tuple[Call, bool, Outcome]]:
    """What `write_stored` has written."""
    with np.load(path) as file:
        index, data = json.loads(file["index"].tobytes()), file["data"].tobytes()
    place, found = 0, []

    def take(count: int) -> bytes:
        nonlocal place
        place += count
        return data[place - count : place]

    for entry in index:
        arguments = tuple(
            Argument(form, dtype, tuple(shape), take(n))
            for (form, dtype, shape), n in zip(entry["arguments"], entry["lengths"])
        )
        want: Outcome
        if "raised" in entry:
            want = Raised(tuple(entry["raised"]), "")
        else:
            want = [Leaf(dtype, weak, tuple(shape), take(n)) for dtype, weak, shape, n in entry["leaves"]]
        found.append((Call("", entry["text"], arguments, ()), entry["x64"], want))
    return found
