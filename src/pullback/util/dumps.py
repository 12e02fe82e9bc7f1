"""Stages of programs, written out where PULLBACK_DUMP asks for them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pullback.util.switches import switches


def dump(stage: str, name: str, text: Callable[[], str]) -> None:
    """Write a stage of a program out if PULLBACK_DUMP asks for it."""
    wanted = switches.dump
    if stage not in wanted.stages or wanted.function not in name:
        return
    if wanted.folder is None:
        print(f"==== {stage} of {name}\n{text()}", file=sys.stderr)
        return
    folder = Path(wanted.folder)
    folder.mkdir(parents=True, exist_ok=True)
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    path = folder / f"{safe}.{stage}.txt"
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{safe}.{number}.{stage}.txt"
    path.write_text(text())
