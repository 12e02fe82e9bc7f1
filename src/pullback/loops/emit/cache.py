"""A cache of object code on disk: keyed by the program's canonical text, the CPU and the version.

A file is magic, SHA-256 of its name and the rest, slot names and sizes, facts, object code. It is written beside and
renamed into place, so readers see a whole file or none; one that is damaged or cut off fails the check and is written
anew. When the folder outgrows its limit the files used longest ago go first. No failure of the disk is an error: the
program is compiled then.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from pullback.util.record import NamedTuple

from .folder import default_folder, read, usable, write
from .writer import finish_writing, write_later

_MAGIC = b"pullback-object-3\n"
DEFAULT_LIMIT = 1 << 28
RECENT = 128  # entries kept in memory


class Entry(NamedTuple):
    """What is needed to load a program."""

    code: bytes  # object file
    slots: tuple[str, ...]
    arena_bytes: int
    facts: bytes = b""  # what else the owner of the program wants to know of it


@functools.cache
def code_version() -> str:
    """Changes whenever a file of the package does: it is upgraded, or a checkout edited."""
    return version_of(Path(__file__).parents[2])


def version_of(root: Path) -> str:
    """A digest of names, sizes and times of all sources and libraries below a folder; some 3 ms for the package.

    All of them: any may have a part in what code is made, a rule of lowering as well as a table of switches.
    """
    above = len(os.path.join(root, ""))
    parts = [f"{path[above:]}:{size}:{time}" for path, size, time in sorted(_sources(str(root)))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _sources(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".so", ".pyd")):
                stat = entry.stat()
                yield entry.path, stat.st_size, stat.st_mtime_ns
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path)


def cache_key(text: str, how: str, target: str) -> str:
    """The name under which code is stored: a hash of all that determines it. `target`: what says which CPU and code
    generator it is for.
    """
    return hashlib.sha256("\0".join((text, how, target, code_version())).encode()).hexdigest()


def _digest(key: str, body: bytes) -> bytes:
    """A file that has got another's name is none."""
    return hashlib.sha256(key.encode() + body).digest()


class ObjectCache:
    """Object code in the files of `folder`, at most about `limit` bytes of them."""

    def __init__(self, folder: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder or default_folder()
        self.limit = limit
        self._recent: OrderedDict[str, Entry] = OrderedDict()
        self._written = 0  # bytes since the last look at the whole folder

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]

    def _remember(self, key: str, entry: Entry) -> Entry:
        self._recent[key] = entry
        self._recent.move_to_end(key)
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return entry

    def get(self, key: str) -> Entry | None:
        """What is stored under `key`; None if nothing, or not intact."""
        known = self._recent.get(key)
        if known is not None:
            return self._remember(key, known)
        finish_writing()  # it may have been stored by another of this process
        path = self._path(key)
        raw = read(path, self.limit) if usable(self.folder) else None
        if raw is None:
            return None
        head = len(_MAGIC)
        body = raw[head + 32 :]
        if raw[:head] != _MAGIC or _digest(key, body) != raw[head : head + 32]:
            return None
        size = int.from_bytes(body[:4], "little")
        slots, arena_bytes, facts = json.loads(body[4 : 4 + size])
        code = 4 + size + facts
        with contextlib.suppress(OSError):
            os.utime(path)  # used now: evicted later
        return self._remember(key, Entry(body[code:], tuple(slots), arena_bytes, body[4 + size : code]))

    def admit(self, key: str, entry: Entry) -> None:
        """Keeps an entry in memory for now."""
        self._remember(key, entry)

    def put(self, key: str, entry: Entry, later: bool = False) -> None:
        """Stores an entry; silently only in memory where the disk does not let it. `later`: who calls does not wait.

        Beside the rest of a compilation the writer would cost more than it saves (six kernels and a training step took
        1.03 of the time): each of its calls of the system ends with a wait for Python's lock.
        """
        self._remember(key, entry)
        if not later:
            self._write(key, entry)
            return
        # Who called is told of folders that are not trusted; those that are not there yet, the writer makes.
        folders = (self.folder, self._path(key).parent)
        if all(usable(folder) or not os.path.lexists(folder) for folder in folders):
            write_later(lambda: self._write(key, entry))

    def _write(self, key: str, entry: Entry) -> None:
        names = json.dumps([entry.slots, entry.arena_bytes, len(entry.facts)]).encode()
        body = len(names).to_bytes(4, "little") + names + entry.facts + entry.code
        path = self._path(key)
        if not usable(self.folder, make=True) or not usable(path.parent, make=True):
            return
        try:
            write(path, _MAGIC + _digest(key, body) + body)
        except OSError:
            return
        if (self._written == 0 and self._may_be_full(path.parent)) or self._written > self.limit // 16:
            self._written = 0
            self._evict()
        self._written += len(body)

    def _may_be_full(self, sample: Path) -> bool:
        """Whether one of the 256 folders inside holds its share of the limit; to look at all of them takes long."""
        with contextlib.suppress(OSError), os.scandir(sample) as entries:
            return 256 * sum(entry.stat().st_size for entry in entries) > self.limit
        return False

    def _evict(self) -> None:
        """Removes the files used longest ago until the folder is below three quarters of its limit."""
        files = []
        for path in self.folder.glob("??/*"):
            try:
                stat = path.stat()
            except OSError:
                continue
            files.append((stat.st_mtime, stat.st_size, path))
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for _, size, path in sorted(files):
            try:
                path.unlink()
            except OSError:
                continue
            total -= size
            if total <= self.limit * 3 // 4:
                return
