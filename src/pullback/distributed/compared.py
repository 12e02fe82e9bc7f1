"""What processes compare before they run a program for the first time: the program, and what it takes to be the same.

Programs that differ end in an error on all of them, before anything is exchanged that the others would misread. Values
of one process (arguments that lie on its device, arrays that the function closes over) may differ on purpose, as inside
`shard_map` each device then has its own: a warning says so.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import ClosedJaxpr
from pullback.distributed import connection
from pullback.util.warning import warn_user

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_LONGEST = 200  # characters of a line that an error shows


class Compared:
    """A program, by what it does, operation by operation, and on which devices."""

    def __init__(self, closed: ClosedJaxpr, sites: Any, name: str, where: Sequence[str] = ()) -> None:
        self.closed, self.sites, self.name, self.where = closed, sites, name, where
        self.digest = hashlib.sha256(self.text().encode()).hexdigest()

    @property
    def number(self) -> int:
        """Of the program, for the tags of its messages."""
        return int(self.digest[:16], 16)

    def text(self) -> str:
        """Equal for equal programs, whose functions lie at other addresses in each process, on the same devices."""
        return _ADDRESS.sub("", "\n".join([str(self.closed.jaxpr), *self.where, *map(str, self.sites)]))

    def check(self, processes: tuple[int, ...], values: dict[str, Any]) -> None:
        """RuntimeError unless all processes that take part have come to this program. A warning where their `values`
        differ, which it takes to be the same on all; they are called by the keys.
        """
        types = ", ".join(a.short() for a in self.closed.in_avals)
        mine = [self.digest, f"{self.name}({types})", {called: _digest(value) for called, value in values.items()}]
        said = connection.gathered_bytes(json.dumps(mine).encode(), connection.FIRST_RUN, processes)
        found = {p: json.loads(text) for p, text in zip(processes, said)}
        if any(digest != self.digest for digest, *_ in found.values()):
            reason = (
                "processes have come to different programs, or to one with different shapes (those of each device's "
                f"part) or places: {'; '.join(f'process {p}: {name}' for p, (_, name, _) in found.items())}"
                f"{self._difference(processes)}"
            )
            _core.fail_processes(reason)
            raise RuntimeError(f"distributed: {reason}")
        first, *others = processes
        for called in values:
            other = next((p for p in others if found[p][2][called] != found[first][2][called]), None)
            if other is not None:
                warn_user(
                    f"{self.name}: {called} is not the same on processes {first} and {other}. What lies on one process "
                    "is taken to be the same on all, so results may be of neither: give all the same value "
                    "(multihost_utils.broadcast_one_to_all), or make an array of their parts "
                    "(make_array_from_process_local_data)"
                )

    def _difference(self, processes: tuple[int, ...]) -> str:
        """The first lines of the programs that differ."""
        texts = connection.gathered_bytes(self.text().encode(), "programs that differ", processes)
        first, other = next((0, k) for k, text in enumerate(texts) if text != texts[0])
        pairs = itertools.zip_longest(*(texts[k].decode().splitlines() for k in (first, other)), fillvalue="nothing")
        a, b = next(pair for pair in pairs if pair[0] != pair[1])
        shown = [line.strip()[:_LONGEST] for line in (a, b)]
        return f". They part where process {processes[first]} has {shown[0]!r}, process {processes[other]} {shown[1]!r}"


_EXACT = 1 << 20  # bytes up to which every one of them counts
_RUN = 1 << 16


def _digest(value: Any) -> str:
    """Of large values it is that of the sums of the words of each run of 64 kB, which are there in a thirtieth of the
    time: what differs only in the order of words within a run, or adds up to the same there, is taken to be equal.
    """
    data = np.ascontiguousarray(np.asarray(value)).reshape(-1).view(np.uint8)
    found = hashlib.blake2b(digest_size=8)
    if data.size > _EXACT:
        runs = data.size - data.size % _RUN
        found.update(np.add.reduce(data[:runs].view(np.uint64).reshape(-1, _RUN // 8), axis=1).data)
        data = data[runs:]
    found.update(data.data)
    return found.hexdigest()


__all__ = ["Compared"]
