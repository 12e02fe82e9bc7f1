"""Writes the pages that come from docstrings: the reference of each module, and the index of errors."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

MODULES = {
    "pullback": "Transformations and devices",
    "pullback.numpy": "Functions of NumPy",
    "pullback.numpy.linalg": "Linear algebra",
    "pullback.numpy.fft": "Fourier transforms",
    "pullback.lax": "Primitives and control flow",
    "pullback.random": "Random numbers",
    "pullback.nn": "Functions of neural networks",
    "pullback.scipy.special": "Special functions",
    "pullback.export": "Programs for other processes and for C",
    "pullback.profiler": "Profiles",
    "pullback.debug": "Looking inside of programs",
}


def public(module: Any) -> list[tuple[str, Any]]:
    """The functions and classes of a module that are its own, by name."""
    found = []
    for name in sorted(set(getattr(module, "__all__", ())) or set(dir(module)), key=str.lower):
        if name.startswith("_"):
            continue
        value = getattr(module, name, None)
        where = getattr(value, "__module__", "") or ""
        if callable(value) and not inspect.ismodule(value) and where.startswith("pullback") and inspect.getdoc(value):
            found.append((name, value))
    return found


def signature(value: Any) -> str:
    """The parameters of a function, without the types."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    return "(" + ", ".join(str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters) + ")"


def fenced(text: str) -> str:
    """Text as it is."""
    fence = "````" if "```" in text else "```"
    return f"{fence}text\n{text}\n{fence}"


def write(path: Path, text: str) -> None:
    """Write a page if it is another one, so that what did not change is not built again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def write_module(folder: Path, name: str, title: str) -> None:
    """The page of one module."""
    entries = public(importlib.import_module(name))
    lines = [f"# `{name}`", "", f"{title}. {len(entries)} functions and classes.", ""]
    for each, value in entries:
        lines += [f"## `{each}`", "", fenced(f"{each}{signature(value)}\n\n{inspect.getdoc(value)}"), ""]
    write(folder / "api" / f"{name}.md", "\n".join(lines))


def write_errors(folder: Path) -> None:
    """The index of errors, to whose sections the notes below messages lead."""
    from pullback.explain import address, bases, explained

    known = explained()
    lines = [
        "# Errors",
        "",
        "Each class of error: what causes it, and what to do. `python -m pullback explain NAME` prints the same.",
        "",
        "| error | |",
        "| --- | --- |",
        *[f"| [`{name}`](#{name.lower()}) | {first_line(kinds[0])} |" for name, kinds in known.items()],
        "",
    ]
    for name, kinds in known.items():
        lines += [f"({name.lower()})=", f"## {name}", ""]
        for kind in kinds:
            lines += [f"`{address(kind)}`" + (f", a kind of {bases(kind)}." if bases(kind) else ".")]
            lines += ["", *explanation(inspect.getdoc(kind) or ""), ""]
    write(folder / "errors.md", "\n".join(lines))


def first_line(kind: type) -> str:
    """The sentence that a docstring begins with."""
    return (inspect.getdoc(kind) or "").splitlines()[0]


def explanation(text: str) -> list[str]:
    """A docstring in Markdown: what stands further to the right is a program."""
    lines: list[str] = []
    for part in text.split("\n\n"):
        is_code = part.startswith("    ")
        joined = lines and lines[-1] == "```" and is_code  # an empty line of a program
        if joined:
            lines[-1:] = [""]
        elif is_code:
            lines += ["```python"]
        lines += [line.removeprefix("    ") for line in part.splitlines()] if is_code else [part]
        lines += ["```"] if is_code else [""]
    return lines


def write_all(folder: Path) -> None:
    """All pages."""
    for name, title in MODULES.items():
        write_module(folder, name, title)
    rows = [f"| [`{name}`]({name}.md) | {title} |" for name, title in MODULES.items()]
    toctree = ["```{toctree}", ":hidden:", "", *MODULES, "```"]
    text = [
        "# Reference",
        "",
        "From the docstrings.",
        "",
        "| module | what |",
        "| --- | --- |",
        *rows,
        "",
        *toctree,
        "",
    ]
    write(folder / "api" / "index.md", "\n".join(text))
    write_errors(folder)
