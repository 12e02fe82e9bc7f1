"""Stands for jax._src.pretty_printer: documents that break their lines where these are too long.

haliax gives them to equinox. The layout is that of P. Wadler's "A prettier printer" (2003): a group that fits on its
line is written on it, else its breaks are line ends.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any


class Color(enum.IntEnum):
    """Colours of a terminal."""

    BLACK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, WHITE = range(30, 38)
    RESET = 39


class Intensity(enum.IntEnum):
    """How bright text of a terminal is."""

    BRIGHT, DIM, NORMAL = 1, 2, 22


class Doc:
    """A document; `a + b` is one after the other."""

    def __init__(self, kind: str, parts: Sequence[Any]) -> None:
        self.kind, self.parts = kind, tuple(parts)

    def __add__(self, other: Doc) -> Doc:
        return concat([self, other])

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.parts))})"

    def __str__(self) -> str:
        return self.format()

    def format(
        self,
        width: int = 80,
        *,
        use_color: bool | None = None,
        output_format: Any = None,
        separable_lines: bool = False,
        annotation_prefix: str = " # ",
        source_map: list[Any] | None = None,
    ) -> str:
        """The text in lines of `width` characters, where its breaks allow that; with `use_color`, escape sequences.

        What is annotated ends its line with `annotation_prefix` and the note. `source_map`, a list, gets a list for
        each line, of (first column, column after the last, source).
        """
        writer = _Writer(width, bool(use_color), annotation_prefix)
        writer.write(self)
        if source_map is not None:
            source_map.extend(writer.sources)
        return "\n".join(line.rstrip() if separable_lines else line for line in writer.lines())


class _Writer:
    """Lines as they are written: for each its text, notes and sources."""

    def __init__(self, width: int, colors: bool, prefix: str) -> None:
        self.width, self.colors, self.prefix = width, colors, prefix
        self.texts: list[str] = [""]
        self.notes: list[list[str]] = [[]]
        self.sources: list[list[tuple[int, int, Any]]] = [[]]
        self.column = 0  # of what is seen, escape sequences not counted

    def lines(self) -> list[str]:
        """The lines with the notes, which stand below each other."""
        column = max((len(t) for t, notes in zip(self.texts, self.notes) if notes), default=0)
        return [
            text if not notes else f"{text:<{column}}{self.prefix}{'; '.join(notes)}"
            for text, notes in zip(self.texts, self.notes)
        ]

    def write(self, doc: Doc) -> None:
        """Write what is to be done from a stack: (indentation, whether breaks are line ends, document or action)."""
        todo: list[tuple[int, bool, Any]] = [(0, True, doc)]
        while todo:
            indent, broken, at = todo.pop()
            if callable(at):
                at()
            elif at.kind == "text":
                self._text(*at.parts)
            elif at.kind == "break":
                self._line(indent) if broken else self._text(at.parts[0])
            elif at.kind == "concat":
                todo += [(indent, broken, child) for child in reversed(at.parts)]
            elif at.kind == "nest":
                todo.append((indent + at.parts[0], broken, at.parts[1]))
            elif at.kind == "group":
                todo.append((indent, broken and not self._fits(at.parts[0], todo), at.parts[0]))
            else:
                todo += [(indent, broken, act) for act in self._around(at)]

    def _fits(self, doc: Doc, after: list[tuple[int, bool, Any]]) -> bool:
        """Whether a group, and what follows up to the next line end, fits on this line."""
        room = self.width - self.column
        todo: list[tuple[bool, Any]] = [(False, doc)]
        rest = len(after)
        while room >= 0:
            if not todo:
                if not rest:
                    return True
                rest -= 1
                todo.append(after[rest][1:])
            broken, at = todo.pop()
            if callable(at):
                continue
            if at.kind == "text":
                room -= len(at.parts[0])
            elif at.kind == "break":
                if broken:
                    return True
                room -= len(at.parts[0])
            elif at.kind == "concat":
                todo += [(broken, child) for child in reversed(at.parts)]
            elif at.kind == "group":
                todo.append((False, at.parts[0]))
            else:
                todo.append((broken, at.parts[1 if at.kind == "nest" else 0]))
        return False

    def _text(self, text: str, note: str | None = None) -> None:
        self.texts[-1] += text
        self.column += len(text)
        if note is not None:
            self.notes[-1].append(note)

    def _line(self, indent: int) -> None:
        self.texts.append(" " * indent)
        self.notes.append([])
        self.sources.append([])
        self.column = indent

    def _around(self, doc: Doc) -> list[Any]:
        """What is done for a coloured or mapped document, last first: an action, the document, another action."""
        if doc.kind == "color":
            if not self.colors:
                return [doc.parts[0]]
            on = "".join(f"\033[{code}m" for code in doc.parts[1:] if code is not None)
            return [
                functools.partial(self._escape, "\033[39;49;22m"),
                doc.parts[0],
                functools.partial(self._escape, on),
            ]
        place: list[int] = []

        def begin() -> None:
            place.extend((len(self.sources), self.column))

        def end() -> None:
            first = place[1] if place[0] == len(self.sources) else 0
            self.sources[-1].append((first, self.column, doc.parts[1]))

        return [end, doc.parts[0], begin]

    def _escape(self, codes: str) -> None:
        self.texts[-1] += codes


def nil() -> Doc:
    """Nothing."""
    return concat([])


def text(text: str, annotation: str | None = None, anchor: str | None = None, href: str | None = None) -> Doc:
    """Words; `annotation` is a note at the end of their line. `anchor` and `href` are for HTML, not written here."""
    return Doc("text", (text,) if annotation is None else (text, annotation))


def concat(children: Sequence[Doc]) -> Doc:
    """One after the other."""
    return Doc("concat", children)


def brk(text: str = " ") -> Doc:
    """`text`, or the end of a line where the group does not fit on one."""
    return Doc("break", (text,))


def nest(n: int, doc: Doc) -> Doc:
    """With lines that begin `n` columns further to the right."""
    return Doc("nest", (n, doc))


def group(doc: Doc) -> Doc:
    """On one line if it fits, else with all its breaks."""
    return Doc("group", (doc,))


def join(sep: Doc, docs: Sequence[Doc]) -> Doc:
    """The documents with `sep` between them."""
    docs = list(docs)
    return concat([part for doc in docs[:-1] for part in (doc, sep)] + docs[-1:])


def color(
    child: Doc,
    foreground: Color | None = None,
    background: Color | None = None,
    intensity: Intensity | None = None,
) -> Doc:
    """In colours of a terminal, which `format` writes if it is asked for them."""
    return Doc("color", (child, foreground, None if background is None else background + 10, intensity))


def source_map(doc: Doc, source: Any) -> Doc:
    """With where it is from, for the list `source_map` of `format`."""
    return Doc("source_map", (doc, source))


type_annotation = functools.partial(color, intensity=Intensity.NORMAL, foreground=Color.MAGENTA)
keyword = functools.partial(color, intensity=Intensity.BRIGHT, foreground=Color.BLUE)

__all__ = [
    "Color", "Doc", "Intensity", "brk", "color", "concat", "group", "join", "keyword", "nest", "nil", "source_map",
    "text", "type_annotation",
]  # fmt: skip
