"""Messages of protocol buffers, as the formats of profilers ask for them: bytes of fields, to be joined.

>>> (number(1, 150) + field(2, b"testing")).hex(" ")
'08 96 01 12 07 74 65 73 74 69 6e 67'
"""

from __future__ import annotations

from collections.abc import Sequence


def varint(value: int) -> bytes:
    """A whole number from 0 on."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(name: int, value: int) -> bytes:
    """A field with a whole number; a negative one as int64 has it."""
    return varint(name << 3) + varint(value & 0xFFFFFFFFFFFFFFFF)


def field(name: int, content: bytes) -> bytes:
    """A field with a message, a string or bytes."""
    return varint(name << 3 | 2) + varint(len(content)) + content


def packed(name: int, values: Sequence[int]) -> bytes:
    """A field with a list of whole numbers."""
    return field(name, b"".join(map(varint, values)))


class Strings(dict[str, int]):
    """The table of strings that profiles of pprof's have: each text once, by its number; the empty one is 0.

    >>> table = Strings()
    >>> table["a"], table["b"], table["a"], list(table)
    (1, 2, 1, ['', 'a', 'b'])
    """

    def __init__(self) -> None:
        super().__init__({"": 0})

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


__all__ = ["Strings", "field", "number", "packed", "varint"]
