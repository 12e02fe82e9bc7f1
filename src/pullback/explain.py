"""`python -m pullback explain [ERROR]`: what causes an error and what to do, as on the page of errors of the site."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys

from pullback import errors
from pullback.util.errors import Explained

# Modules that are not loaded with the package, and have errors of their own.
_LATE = (
    "experimental.checkify", "experimental.multihost_utils", "experimental.sparse", "core.check",
)  # fmt: skip


def explained() -> dict[str, list[type[Explained]]]:
    """The classes of errors by name, in the order of names."""
    for name in _LATE:
        importlib.import_module(f"pullback.{name}")
    found: dict[str, list[type[Explained]]] = {}
    stack = list(Explained.__subclasses__())
    while stack:
        kind = stack.pop()
        stack += kind.__subclasses__()
        same = found.setdefault(kind.__name__, [])
        if not kind.__name__.startswith("_") and kind.__module__.startswith(("pullback.", "jax.")) and kind not in same:
            same.append(kind)
    order = lambda kind: (kind.__module__ != Explained.__module__, kind.__module__)
    return {name: sorted(found[name], key=order) for name in sorted(found) if found[name]}


def address(kind: type) -> str:
    """Module and name by which users know an error."""
    module = "pullback.errors" if hasattr(errors, kind.__name__) else kind.__module__
    return f"{module}.{kind.__name__}"


def bases(kind: type) -> str:
    """The errors of this package and of Python that it is a kind of."""
    hidden = (kind, object, BaseException, Exception, Explained)
    return ", ".join(f"`{b.__name__}`" for b in kind.__mro__ if b not in hidden and b.__name__[0] != "_")


def text_of(name: str) -> str:
    """The explanation of an error; KeyError if there is none of that name."""
    parts = []
    for kind in explained()[name]:
        parts.append(f"{address(kind)}, a kind of {bases(kind).replace('`', '')}\n\n{inspect.getdoc(kind)}")
    return "\n\n".join(parts)


def _about(word: str, known: dict[str, list[type[Explained]]]) -> list[str]:
    """The errors in whose explanation a word stands, first those where it stands early; five at most."""
    places = {name: (inspect.getdoc(kinds[0]) or "").lower().find(word.lower()) for name, kinds in known.items()}
    return sorted((name for name, place in places.items() if place >= 0), key=places.__getitem__)[:5]


def main(arguments: list[str]) -> int:
    """The command: prints, and gives the exit status."""
    known = explained()
    if not arguments:
        for name, (kind, *_) in known.items():
            print(f"{name}: {(inspect.getdoc(kind) or '').splitlines()[0]}")
        return 0
    name = arguments[0].rpartition(".")[2]
    alike = [each for each in known if name.lower() in each.lower()]
    name = next((each for each in alike if each.lower() == name.lower()), name)
    if name not in known:
        close = alike[:5] or difflib.get_close_matches(name, known, 3) or _about(name, known)
        hint = f"; did you mean {', '.join(close)}?" if close else "; without a name all are listed"
        print(f"pullback explain: no error of this package is called {name!r}{hint}", file=sys.stderr)
        return 2
    print(text_of(name))
    return 0


__all__ = ["address", "bases", "explained", "main", "text_of"]
