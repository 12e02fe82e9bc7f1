"""Compares the public names of pullback, and their signatures, with those of an installed JAX.

    python tools/api_coverage.py --peer /path/to/venv/bin/python --page docs/coverage.md \\
        --list tests/data/public_names.txt

A line of the list is a name and its parameters, in which `=` says that there is a default; `class` and `value` say what
else a name is. A name is public if its module's `__all__` has it, or if the module defines it or imports it `as`
itself. The exit status is 1 if a name is missing, or a signature differs, without a reason in
tests/data/other_signatures.txt.
"""

from __future__ import annotations

import argparse
import ast
import collections
import fnmatch
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What is not Python on CPUs: languages for kernels of other machines, and bridges to other frameworks.
SKIPPED = (
    "jax.experimental.pallas", "jax.experimental.mosaic", "jax.experimental.jax2tf", "jax.tools", "jax.jaxlib",
    "jax.experimental.array_serialization", "jax.experimental.colocated_python", "jax.experimental.roofline",
    "jax.experimental.mosaic_gpu", "jax.experimental.slab", "jax.cloud_tpu_init", "jax.collect_profile",
    "jax.experimental.sparse.test_util", "jax.extend.mlir.dialects.", "jax.extend.backend.ifrt_proxy",
    "jax.extend.ifrt_programs.ifrt_programs",
)  # fmt: skip

# Modules whose classes are tools of JAX's own: that they are there counts, their attributes do not.
INTERNAL = (
    "jax.core", "jax.extend", "jax.interpreters", "jax.experimental.EArray", "jax.experimental.hijax",
    "jax.experimental.jet", "jax.experimental.source_mapper", "jax.experimental.topologies",
    "jax.experimental.transfer", "jax.experimental.buffer_callback", "jax.experimental.sparse.transform",
    "jax.experimental.sparse.bcoo", "jax.experimental.sparse.SparseTracer", "jax.experimental.sparse.coo.",
)  # fmt: skip
HELPERS = ("map", "zip", "unzip2", "annotations", "Dtype", "Shape")  # what modules name for their own use
BEGIN, END = "<!-- names: written by tools/api_coverage.py -->", "<!-- end of names -->"


def parameters(found: object) -> str:
    """The parameters of a callable, `=` for a default; `?` if Python does not know them."""
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "?"
    plain = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else DEFAULT)
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


class _Default:
    def __repr__(self) -> str:
        return ""


DEFAULT = _Default()


def method_parameters(found: object) -> str:
    """The parameters of a method without the first, whose name nobody writes."""
    text = parameters(found)
    for first in ("(self, /, ", "(self, ", "(a, ", "(x, /"):
        if text.startswith(first):
            return "(" + text.removeprefix(first)
    return "()" if text in ("(self)", "(self, /)", "(a)", "(x)") else text


def kind_of(found: object) -> str:
    """What stands behind a name in the list."""
    if isinstance(found, type):
        return " class"
    if isinstance(found, types.ModuleType):
        return " module"
    return parameters(found) if callable(found) else " value"


def declared(module: types.ModuleType) -> list[str]:
    """The public names of a module: of `__all__`, or defined in it or imported `as` themselves; and the old ones."""
    if hasattr(module, "__all__"):
        names = set(module.__all__)
    else:
        names = set()
        for node in ast.walk(ast.parse(inspect.getsource(module))) if getattr(module, "__file__", None) else ():
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.col_offset == 0:
                names.add(node.name)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.col_offset == 0:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(t.id for t in targets if isinstance(t, ast.Name))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names.update(a.name.rpartition(".")[2] for a in node.names if a.asname == a.name.rpartition(".")[2])
    names |= {n for n, (_, to) in getattr(module, "_deprecations", {}).items() if to is not None}
    return sorted(n for n in names if not n.startswith("_") and n not in HELPERS)


def modules(root: str) -> list[str]:
    """The public modules under a package."""
    package = importlib.import_module(root)
    names = [root]
    for found in pkgutil.walk_packages(package.__path__, f"{root}.", onerror=lambda _: None):
        hidden = any(part.startswith("_") for part in found.name.split("."))
        if not hidden and not found.name.startswith(SKIPPED):
            names.append(found.name)
    return names


def facts_of_class(whole: str, found: type) -> list[str]:
    """The public attributes of a class of JAX's own."""
    if (
        issubclass(found, BaseException)
        or whole.startswith(INTERNAL)
        or not found.__module__.startswith(("jax", "jaxlib"))
    ):
        return []
    lines = [f"{whole}.__init__{parameters(found)}"] if "__init__" in vars(found) else []
    for name in dir(found):
        if name.startswith("_") or any(
            name in vars(base) for base in (tuple, dict, str, int) if issubclass(found, base)
        ):
            continue
        value = inspect.getattr_static(found, name)
        plain = isinstance(value, (staticmethod, classmethod, types.FunctionType))
        if plain:
            lines.append(f"{whole}.{name}{method_parameters(getattr(found, name))}")
        elif whole == "jax.Array":  # attributes of other classes may be there in their objects alone
            lines.append(f"{whole}.{name} value")
    return lines


def facts(root: str) -> list[str]:
    """Every public name of a package with what it is."""
    warnings.simplefilter("ignore")
    lines, shown = [], set()
    for name in modules(root):
        try:
            module = importlib.import_module(name)
        except Exception as error:  # what an installation lacks
            print(f"{name}: {error!r}", file=sys.stderr)
            continue
        lines.append(f"{name} module")
        for public in declared(module):
            try:
                found = getattr(module, public)
            except Exception as error:
                print(f"{name}.{public}: {error!r}", file=sys.stderr)
                continue
            lines.append(f"{name}.{public}{kind_of(found)}")
            if isinstance(found, type) and id(found) not in shown:
                shown.add(id(found))
                lines += facts_of_class(f"{name}.{public}", found)
    config = importlib.import_module(root).config
    lines += [f"config.{option} value" for option in sorted(config.values)]
    return lines


def parse(line: str) -> tuple[str, str]:
    """(name, what it is) of a line of a list."""
    at = min(k for k in (line.find("("), line.find(" "), line.find("?")) if k >= 0)
    return line[:at], line[at:].strip()


def find(name: str) -> object:
    """What `jax.x.y` is here; ImportError or AttributeError if it is not there."""
    if name.startswith("jax.Array."):  # arrays are of classes that are `Array` for isinstance alone
        return getattr(type(importlib.import_module("pullback.numpy").zeros(())), name.removeprefix("jax.Array."))
    parts = ["pullback", *name.split(".")[1:]]
    for k in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError as error:
            if error.name is None or not ".".join(parts[:k]).startswith(error.name):
                raise
            continue
        for part in parts[k:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


def difference(line: str) -> str | None:
    """What is wrong with a name here: `missing`, its signature, or nothing."""
    name, want = parse(line)
    if name.startswith("config."):
        config = importlib.import_module("pullback").config
        return None if name.partition(".")[2] in config.values else "missing"
    try:
        if name.endswith(".__init__"):
            got = parameters(find(name.removesuffix(".__init__")))
        else:
            found = find(name)
            member = isinstance(find(name.rpartition(".")[0]), type) and not isinstance(found, type)
            got = method_parameters(found) if member and callable(found) else kind_of(found).strip()
            if want == "value" or (want == "class" and callable(found)):
                return None
    except NotImplementedError:  # an attribute of what is not here
        return None
    except (AttributeError, ImportError):
        return "missing"
    return None if got == want or want in ("?", "module") else got


def compare(lines: list[str]) -> dict[str, str]:
    """What is missing or differs here, by name."""
    warnings.simplefilter("ignore")
    found = ((line, difference(line)) for line in lines)
    return {line: wrong for line, wrong in found if wrong is not None}


def explained() -> list[tuple[str, str]]:
    """(pattern, reason) of the names that may differ."""
    text = (ROOT / "tests" / "data" / "other_signatures.txt").read_text()
    return [tuple(line.split("  ", 1)) for line in text.splitlines() if line and line[0] != "#"]  # type: ignore[misc]


def reason_of(name: str) -> str | None:
    """Why a name may differ."""
    return next((reason for pattern, reason in explained() if fnmatch.fnmatch(name, pattern)), None)


def page(lines: list[str], wrong: dict[str, str]) -> str:
    """The part of a page about names: how many a module has, and what is not here, and why."""
    from pullback.util.absent_table import REASONS, TABLE

    def module_of(name: str) -> str:
        return ".".join(name.split(".")[1:3]) if name.startswith("jax.experimental.") else name.split(".")[1]

    shown = [parse(line)[0] for line in lines if not line.endswith(" module")]
    options = sum(name.startswith("config.") for name in shown)
    names = [name for name in shown if not name.startswith("config.")]
    counts = collections.Counter(module_of(n) if n.count(".") > 1 else "jax" for n in names)
    absent: collections.Counter[str] = collections.Counter()
    for module, entries in TABLE.items():
        place = "jax" if module == "pullback" else module
        parts = place.split(".")
        absent[".".join(parts[:2]) if parts[0] == "experimental" else parts[0]] += len(entries)
    missing = sum(what == "missing" for what in wrong.values())
    text = [
        BEGIN,
        "",
        "## Public names",
        "",
        f"Of JAX's {len(names)} public names and {options} options each is here, but",
        f"for {missing}; {len(wrong) - missing} have other parameters (tests/data/other_signatures.txt says why).",
        "Names of what is not here raise NotImplementedError with the reason where they are used",
        "(`util/absent_table.py`). Options that change nothing are in `util/other_options.py`, with reasons.",
        "`tools/api_coverage.py` compares with an installed JAX, and writes this part.",
        "",
        "| module | names | of these not here |",
        "| --- | ---: | ---: |",
        *[f"| `{m}` | {n} | {absent[m] or ''} |" for m, n in sorted(counts.items())],
        "",
        "| not here | why |",
        "| --- | --- |",
    ]
    for reason, words in REASONS.items():
        found = {m: [e.partition("(")[0] for r, e in entries if r == reason] for m, entries in TABLE.items()}
        found = {m.replace("jax_names.src", "_src"): names for m, names in found.items()}  # as users write it
        short = [
            f"`{m}`: " + (", ".join(es) if len(es) <= 5 or reason == "unwritten" else f"{len(es)} names")
            for m, es in found.items() if es
        ]  # fmt: skip
        text.append(f"| {'; '.join(short)} | {words} |")
    return "\n".join([*text, "", END])


def main() -> int:
    parse_options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse_options.add_argument("--peer", help="an interpreter that has JAX")
    parse_options.add_argument("--facts", metavar="PACKAGE", help="print the list of a package that is installed here")
    parse_options.add_argument("--list", help="the list of JAX's names: written with --peer, else read")
    parse_options.add_argument("--page", help="the page whose table of names is written")
    options = parse_options.parse_args()
    if options.facts:
        print("\n".join(facts(options.facts)))
        return 0
    if options.peer:
        done = subprocess.run(
            [options.peer, __file__, "--facts", "jax"], stdout=subprocess.PIPE, text=True, check=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )  # fmt: skip
        lines = done.stdout.splitlines()
        if options.list:
            Path(options.list).write_text("\n".join(lines) + "\n")
    else:
        lines = Path(options.list).read_text().splitlines()
    wrong = compare(lines)
    if options.page:
        path, part = Path(options.page), page(lines, wrong)
        text = path.read_text()
        begin, end = text.find(BEGIN), text.find(END)
        path.write_text(f"{text.rstrip()}\n\n{part}\n" if begin < 0 else text[:begin] + part + text[end + len(END) :])
    unexplained = {line: what for line, what in wrong.items() if reason_of(parse(line)[0]) is None}
    for line, what in unexplained.items():
        print(f"{line}    here: {what}")
    missing = sum(what == "missing" for what in wrong.values())
    print(f"{len(lines)} names, {missing} missing, {len(wrong)} differ, {len(unexplained)} without a reason")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
