"""Ports for the servers of tests."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def free_port(host: str = "127.0.0.1") -> Iterator[int]:
    """A port at which one server may listen meanwhile, if it sets SO_REUSEADDR, and which nobody else is given.

    A port that is asked for and closed again may be another process's when the server comes to it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, 0))
        yield holder.getsockname()[1]
