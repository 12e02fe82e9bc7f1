"""Room for the frames of Python functions, so that no call in a loop asks the system for memory.

CPython keeps the frames of calls in chunks of 16 KiB. A call that does not fit into the last one maps another, and its
return gives that back. Where a loop happens to make its calls at that depth, each of them costs two system calls and
a page fault, some 10 us: emission of a convolution took 11 ms, and 27 or 42 from other depths of the stack.
A frame that is larger than a chunk gets one of its own, of the next power of two, and the calls from it share the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

WORDS = 1 << 14  # of the frame: its chunk is twice as large, and a call some twenty to sixty words


def with_room(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: the function's own calls find room for their frames."""

    def roomy(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    roomy.__code__ = roomy.__code__.replace(co_stacksize=WORDS)
    return functools.wraps(function)(roomy)


__all__ = ["with_room"]
