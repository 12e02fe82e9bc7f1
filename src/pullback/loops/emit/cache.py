"""A cache of object code on disk: keyed by the program's canonical text, the CPU and the version.

A file is magic, a digest of its name and the rest, slot names and sizes, facts, object code. It is written beside and
renamed into place, so readers see a whole file or none; one that is damaged or cut off fails the check and is written
anew. When the folder outgrows its limit the files used longest ago go first. No failure of the disk is an error: the
program is compiled then.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections import OrderedDict

from pullback.util.digest import digest_of
from pullback.util.record import NamedTuple

from .folder import Where, default_folder, read, usable, write
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
    return version_of(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def version_of(root: Where) -> str:
    """A digest of names, sizes and times of all sources and libraries below a folder; some 3 ms for the package.

    All of them: any may have a part in what code is made, a rule of lowering as well as a table of switches.
    """
    parts, folders = [], [os.fspath(root)]
    above = len(os.path.join(root, ""))
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".so", ".pyd")):
                    stat = entry.stat()
                    parts.append(f"{entry.path[above:]}:{stat.st_size}:{stat.st_mtime_ns}")
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return digest_of("\n".join(sorted(parts)).encode()).hexdigest()


def cache_key(text: str, how: str, target: str) -> str:
    """The name under which code is stored: a hash of all that determines it. `target`: what says which CPU and code
    generator it is for.
    """
    return digest_of("\0".join((text, how, target, code_version())).encode()).hexdigest()


def _digest(key: str, body: bytes) -> bytes:
    """A file that has got another's name is none."""
    return digest_of(key.encode() + body).digest()


class ObjectCache:
    """Object code in the files of `folder`, at most about `limit` bytes of them."""

    def __init__(self, folder: Where | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = os.fspath(folder or default_folder())
        self.limit = limit
        self._recent: OrderedDict[str, Entry] = OrderedDict()
        self._written = 0  # bytes since the last look at the whole folder

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key[2:])

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
        folders = (self.folder, os.path.dirname(self._path(key)))
        if all(usable(folder) or not os.path.lexists(folder) for folder in folders):
            write_later(lambda: self._write(key, entry))

    def _write(self, key: str, entry: Entry) -> None:
        names = json.dumps([entry.slots, entry.arena_bytes, len(entry.facts)]).encode()
        body = len(names).to_bytes(4, "little") + names + entry.facts + entry.code
        path = self._path(key)
        if not usable(self.folder, make=True) or not usable(os.path.dirname(path), make=True):
            return
        try:
            write(path, _MAGIC + _digest(key, body) + body)
        except OSError:
            return
        if (self._written == 0 and self._may_be_full(os.path.dirname(path))) or self._written > self.limit // 16:
            self._written = 0
            self._evict()
        self._written += len(body)

    def _may_be_full(self, sample: str) -> bool:
        """Whether one of the 256 folders inside holds its share of the limit; to look at all of them takes long."""
        with contextlib.suppress(OSError), os.scandir(sample) as entries:
            return 256 * sum(entry.stat().st_size for entry in entries) > self.limit
        return False

    def _evict(self) -> None:
        """Removes the files used longest ago until the folder is below three quarters of its limit."""
        import glob

        files = []
        for path in glob.iglob(os.path.join(glob.escape(self.folder), "??", "*")):
            with contextlib.suppress(OSError):
                stat = os.stat(path)
                files.append((stat.st_mtime, stat.st_size, path))
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for _, size, path in sorted(files):
            try:
                os.unlink(path)
            except OSError:
                continue
            total -= size
            if total <= self.limit * 3 // 4:
                return
