"""Writes the pages that come from docstrings: the reference of each module, and the index of errors."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

MODULES = {
    "pullback": "Transformations and devices",
    "pullback.numpy": "Functions of NumPy",
    "pullback.numpy.linalg": "Linear algebra",
    "pullback.numpy.fft": "Fourier transforms",
    "pullback.lax": "Primitives and control flow",
    "pullback.lax.linalg": "Factorizations and solvers",
    "pullback.random": "Random numbers",
    "pullback.nn": "Functions of neural networks",
    "pullback.nn.initializers": "Initial values of weights",
    "pullback.tree": "Trees",
    "pullback.tree_util": "Trees, under their long names",
    "pullback.image": "Images",
    "pullback.ops": "Sums over segments",
    "pullback.scipy.special": "Special functions",
    "pullback.scipy.linalg": "SciPy's linear algebra",
    "pullback.scipy.stats": "Distributions and statistics",
    "pullback.scipy.signal": "Signals",
    "pullback.scipy.ndimage": "Interpolation in arrays",
    "pullback.scipy.fft": "Cosine transforms",
    "pullback.scipy.interpolate": "Interpolation on grids",
    "pullback.scipy.integrate": "Integrals of samples",
    "pullback.scipy.cluster.vq": "Nearest codes",
    "pullback.scipy.optimize": "Minimization",
    "pullback.scipy.sparse.linalg": "Solvers that need products alone",
    "pullback.sharding": "Layouts over devices",
    "pullback.experimental.sparse": "Sparse arrays",
    "pullback.export": "Programs for other processes and for C",
    "pullback.profiler": "Profiles",
    "pullback.debug": "Looking inside of programs",
    "pullback.monitoring": "Listeners to what programs record",
    "pullback.stages": "What jit makes on the way to a program",
    "pullback.custom_derivatives": "Derivatives of your own",
    "pullback.custom_batching": "Rules for vmap of your own",
    "pullback.ad_checkpoint": "What derivatives keep",
    "pullback.ref": "Mutable arrays",
    "pullback.ffi": "Functions in C",
    "pullback.extend.core": "What libraries ask of programs and traces",
    "pullback.extend.random": "Random generators of your own",
    "pullback.interpreters.ad": "Derivative rules of primitives",
    "pullback.dtypes": "Dtypes",
    "pullback.dlpack": "Exchange of arrays",
    "pullback.flatten_util": "Trees as vectors",
    "pullback.distributed": "Several processes",
    "pullback.experimental.multihost_utils": "What processes do together",
    "pullback.experimental.mesh_utils": "Devices as arrays",
    "pullback.experimental.checkify": "Checks that are values",
    "pullback.experimental.ode": "Differential equations",
    "pullback.experimental.jet": "Taylor series",
    "pullback.experimental.serialize_executable": "Compiled functions as bytes",
    "pullback.example_libraries.optimizers": "Optimizers",
    "pullback.example_libraries.stax": "Layers of networks",
    "pullback.scipy.spatial.transform": "Rotations",
}

# The heads of the sections of a docstring, as `pullback.manual` has them.
SECTION = re.compile(r"^(Arguments|Returns|Raises|Unlike [\w.]+):$", re.MULTILINE)


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


class Shown:
    """The default of a parameter, as a program would write it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        if isinstance(self.value, enum.Enum):
            return str(self.value)
        text = re.sub(r"(?!^)<class '(?:\w+\.)*(\w+)'>", r"\1", repr(self.value))
        return getattr(self.value, "__name__", "...") if text.startswith("<") else text


def signature(value: Any) -> str:
    """How a function is called, without the types; of other things, nothing."""
    if isinstance(value, type) and issubclass(value, (enum.Enum, BaseException)):
        return ""
    empty = inspect.Parameter.empty
    try:
        called = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        p.replace(annotation=empty, default=empty if p.default is empty else Shown(p.default))
        for p in called.parameters.values()
    ]
    return str(called.replace(parameters=parameters, return_annotation=empty))


def broken(call: str) -> str:
    """A call in lines of at most 72 characters, which fit the column of text."""
    head, _, _ = call.partition("(")
    indent = " " * min(len(head) + 1, 12)
    return textwrap.fill(call, 72, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def members(value: Any) -> str:
    """The values of an enumeration."""
    if not (isinstance(value, type) and issubclass(value, enum.Enum)):
        return ""
    return "\n\n**Values**\n\n" + ", ".join(f"`{name}`" for name in value.__members__)


def fenced(text: str) -> str:
    """Text as it is."""
    fence = "````" if "```" in text else "```"
    return f"{fence}text\n{text}\n{fence}"


def prose(text: str) -> str:
    """Sentences as Markdown; a paragraph in which some lines stand further to the right stays as it is."""
    parts = re.split(r"\n{2,}", text.strip())
    return "\n\n".join(fenced(part) if re.search("^ ", part, re.MULTILINE) else _escaped(part) for part in parts)


def described(text: str) -> str:
    """A docstring as Markdown: its sentences, arguments as a list, the other sections, and examples as code."""
    example = re.search(r"^>>> ", text, re.MULTILINE)
    text, code = (text[: example.start()], text[example.start() :]) if example else (text, "")
    said, *sections = SECTION.split(text)
    lines = [prose(said)]
    for head, body in zip(sections[::2], sections[1::2]):
        body = inspect.cleandoc(body)
        if head == "Arguments":
            entries = re.split(r"\n(?=\S)", body)
            body = "\n".join("- **`{}`**: {}".format(*_entry(entry)) for entry in entries)
        else:
            body = _escaped(body)
        lines.append(f"**{head}**" + (f"\n\n{body}" if head == "Arguments" or "\n\n" in body else f": {body}"))
    if code:
        lines.append(f"```pycon\n{code.strip()}\n```")
    return "\n\n".join(lines)


def _entry(text: str) -> tuple[str, str]:
    """The name of an argument, and what is said of it."""
    name, _, said = text.partition(": ")
    return name, _escaped(" ".join(said.split()))


def _escaped(text: str) -> str:
    """Text whose signs are none of Markdown's; what stands between backticks stays code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_<>|$\[\]])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


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
        lines += [f"## `{each}`", "", f"```python\n{broken(each + signature(value))}\n```", ""]
        lines += [described(inspect.getdoc(value) or "") + members(value), ""]
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
    entries = [f"{name.removeprefix('pullback.')} <{name}>" for name in MODULES]  # the sidebar is narrow
    toctree = ["```{toctree}", ":hidden:", "", *entries, "```"]
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
