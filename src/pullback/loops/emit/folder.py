"""Whom the files of the code cache belong to.

Who can write a file of the cache can run anything as the one who reads it. So folders and files count only if they are
the user's own (or root's) and nobody else may write them, but where PULLBACK_CACHE_SHARED says that all who may are
trusted. What is refused is said once.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import warnings
from typing import TypeAlias

from pullback.util.switches import switches

Where: TypeAlias = "str | os.PathLike[str]"  # texts here: to import pathlib takes a fifth of a warm start

_said: set[str] = set()


def default_folder() -> str:
    """PULLBACK_CACHE_DIR, or pullback in the user's cache folder; of a user without a home a temporary one."""
    chosen = os.environ.get("PULLBACK_CACHE_DIR")
    if chosen:
        return chosen
    home = os.path.expanduser("~")
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    if caches.startswith("~"):
        import tempfile

        return os.path.join(tempfile.gettempdir(), f"pullback-{os.getuid()}")
    return os.path.join(caches, "pullback")


def _fault(status: os.stat_result) -> str | None:
    if switches.cache_shared or not hasattr(os, "geteuid"):
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (number {status.st_uid})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "may be written by other users"
    return None


def _refuse(path: Where, fault: str) -> None:
    if str(path) in _said:
        return
    _said.add(str(path))
    warnings.warn(
        f"compiled programs are neither kept in nor read from {path}, as it {fault}. Have it belong to you alone "
        "(chown, chmod go-w), choose another folder by PULLBACK_CACHE_DIR, or set PULLBACK_CACHE_SHARED=1 if you trust "
        "all who may write there.",
        RuntimeWarning,
        stacklevel=2,
    )


def usable(folder: Where, make: bool = False) -> bool:
    """Whether the folder is there, and trusted; with `make` it is made, for this user alone."""
    try:
        status = os.stat(folder)
    except OSError:
        if not make:
            return False
        try:
            os.makedirs(os.path.dirname(os.path.abspath(folder)), exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, mode=0o777 if switches.cache_shared else 0o700)
            status = os.stat(folder)
        except OSError:
            return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    fault = _fault(status)
    if fault:
        _refuse(folder, fault)
    return not fault


def read(path: Where, most: int) -> bytes | None:
    """The bytes of a file of a usable folder; None if it is not there, no plain file, too large or not trusted."""
    try:
        # What is in its place must not stop us, and where a link leads is not ours.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return None
            fault = _fault(status)
            if fault:
                _refuse(path, fault)
                return None
            return file.read(most)
    except OSError:
        return None


def write(path: Where, content: bytes) -> None:
    """A file of a usable folder, put there as a whole, with the rights `read` asks for; OSError if that cannot be."""
    temporary = f"{os.path.dirname(path)}/.{os.getpid()}.{threading.get_ident()}.{time.monotonic_ns()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if switches.cache_shared:
            os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


__all__ = ["Where", "default_folder", "read", "usable", "write"]
