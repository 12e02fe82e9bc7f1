"""The user's own line: where in their code an equation or an error came from, and in which named scopes."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import types
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from pullback._ext import _core
from pullback.util.pytree import (
    LEAF,
    PyTreeDef,
    default_registry,
    keystr,
    register_pytree_node,
    tree_flatten_with_path,
    tree_unflatten,
)
from pullback.util.record import NamedTuple
from pullback.util.tracebacks import excluded

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _around(transformations: Sequence[str], text: str) -> str:
    for name in reversed(transformations):
        text = f"{name}({text})"
    return text


class NameStack(tuple):
    """The named scopes and transformations around an operation, outermost first: 'name' or ('transformation',).

    As text: outer/vmap(jvp(inner))/innermost; transformations are put around the scope that comes next.
    """

    __slots__ = ()

    def __str__(self):
        parts, around = [], []
        for item in self:
            if isinstance(item, tuple):
                around.append(item[0])
            else:
                parts.append(_around(around, item))
                around = []
        return "/".join([*parts, _around(around, "")] if around else parts)

    def __add__(self, other):
        return NameStack((*self, *other))

    @property
    def stack(self):
        """The scopes and transformations."""
        return tuple(self)

    def extend(self, name):
        """The stack with a scope more, inside of all others."""
        return self + (name,)

    def inside(self) -> NameStack:
        """What remains after the scopes in force, where it begins with them."""
        outer = _names.get()
        return NameStack(self[len(outer) :]) if self[: len(outer)] == outer else self


_no_names = NameStack()
MAX_JOINED = 1 << 12
_names: ContextVar[NameStack] = ContextVar("pullback_name_stack", default=_no_names)


class names_inside:
    """Context manager: operations inside also belong to `items`, inside the scopes in force (or only to them:
    `fresh`)."""

    __slots__ = ("fresh", "items", "token")

    def __init__(self, *items, fresh: bool = False):
        self.items, self.fresh = items, fresh

    def __enter__(self):
        outer = _no_names if self.fresh else _names.get()
        stack = _joined.get((outer, self.items))
        if stack is None:
            stack = _join(outer, self.items)
        self.token = _names.set(stack)
        return stack

    def __exit__(self, *exc):
        _names.reset(self.token)
        return False


_joined: dict[tuple[NameStack, tuple], NameStack] = {}


def _join(outer: NameStack, items: tuple) -> NameStack:
    if len(_joined) >= MAX_JOINED:
        _joined.clear()
    stack = _joined[outer, items] = outer + items
    return stack


class SourceInfo(NamedTuple):
    """A line of the user's code, the scopes around it, and where in it."""

    file: str
    line: int
    function: str
    name_stack: NameStack = _no_names
    column: int = 0
    qualified: str = ""  # the name of the function with those that it is in

    @property
    def traceback(self) -> SourceInfo | None:
        """The line, which is what is kept of a traceback: for `user_context`."""
        return None if self.file == UNKNOWN.file else self

    @property
    def as_line(self) -> SourceInfo:
        """The line alone: without scopes, wherever in it."""
        return SourceInfo(self.file, self.line, self.function)

    @property
    def in_full(self) -> str:
        """The place as JAX writes it beside equations."""
        return f"{self.file}:{self.line}:{self.column} ({self.qualified or self.function})"

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})"


UNKNOWN = SourceInfo("<unknown>", 0, "<unknown>")


class Origin(NamedTuple):
    """What is being traced, for messages: the user's function, for which transformation, and the names of its
    arguments' leaves."""

    fun: Any
    transformation: str
    names: Callable[[], Sequence[str]] | None = None

    def __str__(self):
        return f"the function {located(self.fun)} for {self.transformation}"


def located(fun: Any) -> str:
    """A function as 'name at file:line'."""
    name, file, line = _code_of(fun)
    return f"{name} at {file}:{line}" if file else name


def named_at(name: str, fun: Any) -> str:
    """'name at file:line', of the function that is known by another name."""
    _, file, line = _code_of(fun)
    return f"{name} at {file}:{line}" if file else name


def lasting(fun: Any, names: Callable[[Any], Sequence[str]]) -> Any:
    """The names that a function gives of `fun`'s parameters, when they are asked for; until then nothing but the code
    of `fun` is kept alive.
    """
    inner = inspect.unwrap(fun) if type(fun) is types.FunctionType else fun
    if type(inner) is not types.FunctionType or hasattr(inner, "__signature__"):
        return names(fun)
    code = inner.__code__
    return lambda: names(types.FunctionType(code, {}, closure=tuple([types.CellType() for _ in code.co_freevars])))


def with_marks(tree: Any) -> Any:
    """The tree with a mark in the place of each leaf."""
    try:
        return tree_unflatten(tree, [_Mark()] * tree.num_leaves)
    except Exception:  # a class of the user's that is made of numbers alone
        return _made_apart(tree)


def _made_apart(tree: Any) -> Any:
    """The same, with `_Children` in the place of nodes whose classes take no marks."""
    data = tree.node_data()
    if data is None:
        return _Mark()
    children = [_made_apart(child) for child in tree.children()]
    try:
        flat = PyTreeDef.from_node_data_and_children(default_registry, data, [LEAF] * len(children))
        return tree_unflatten(flat, children)
    except Exception:
        return _Children(children)


class _Mark:
    """Stands for a leaf."""


class _Children(tuple):
    """Stands for a node that cannot be made of marks: its children, known by number."""

    __slots__ = ()


register_pytree_node(_Children, lambda node: (node, None), lambda _, children: _Children(children))


def result_names(trees: Sequence[Any]) -> Callable[[], list[str]]:
    """What gives the names of the leaves of a result, whose tree is in a list once it is known."""
    return lambda: ["result" + keystr(path) for path, _ in tree_flatten_with_path(with_marks(trees[0]))[0]]


def _code_of(fun: Any) -> tuple[str, str, int]:
    """(name, file, first line) of the function that wrappers are of; no file where it is not written in Python."""
    while hasattr(fun, "__wrapped__") or (hasattr(fun, "func") and not hasattr(fun, "__code__")):
        fun = fun.__wrapped__ if hasattr(fun, "__wrapped__") else fun.func
    name = getattr(fun, "__name__", None) or type(fun).__name__
    code = getattr(fun, "__code__", None)
    return (name, "", 0) if code is None else (name, code.co_filename, code.co_firstlineno)


class _IsUsers(dict[str, bool]):
    """file name -> whether it is outside of this package, and of what Python and NumPy freeze or generate. What is
    typed at a prompt, in a notebook or given to exec() is the user's.
    """

    def __missing__(self, file: str) -> bool:
        found = self[file] = not file.startswith((_PACKAGE, "<frozen ", "<__array_function__"))
        return found


_is_users = _IsUsers()


def exclude(file: str) -> None:
    """Take the lines of this file for those of a library, not for the user's own."""
    excluded.append(file)
    _is_users[file] = False


def is_users(file: str) -> bool:
    """Whether a file is neither of this package nor of a library that said so."""
    return _is_users[file]


def scopes() -> NameStack:
    """The named scopes in force."""
    return _names.get()


# () -> SourceInfo | None: the innermost frame outside this package. In C, as every equation that is traced asks.
calling_line: Callable[[], SourceInfo | None] = functools.partial(_core.calling_line, _is_users, _names, SourceInfo)
_line: ContextVar[tuple[SourceInfo | None, SourceInfo] | None] = ContextVar("pullback_line", default=None)


class at_line:
    """Context manager: what the line `here` (of `calling_line`) asks for inside belongs to the line of `source` (None:
    as without it); what functions of the user's ask for that are called inside has their own lines.

    So the operations of a derivative belong to the line that is differentiated, not to that of `grad`.
    """

    __slots__ = ("moved", "token")

    def __init__(self, here: SourceInfo | None, source: SourceInfo | None):
        self.moved = _line.get() if source is None else (here, source)

    def __enter__(self):
        self.token = _line.set(self.moved)

    def __exit__(self, *exc):
        _line.reset(self.token)
        return False


ANY_CALLERS = SourceInfo("", 0, "")


def at_any_callers(fun: Any) -> at_line:
    """Context manager for tracing a function that many lines share: if it is none of the user's, its operations belong
    to no line, so that later they get that of each call."""
    return at_line(calling_line(), None if is_users(_code_of(fun)[1]) else ANY_CALLERS)


def user_source() -> SourceInfo | None:
    """The user's line that what happens now belongs to; None if there is none, or any (`at_any_callers`)."""
    found, moved = calling_line(), _line.get()
    if moved is None or found is None:
        return found
    here, source = moved
    if here is None or found.line != here.line or found.file != here.file:
        return found
    if source is ANY_CALLERS:
        return None
    return source._replace(name_stack=found.name_stack)


# The fix of an assignment to an element, in the user's own words.

_IN_PLACE = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}


def item_assignment(index: Any, value: Any) -> str:
    """The message for x[index] = value: the user's line, and the line to write instead."""
    text = (
        "JAX arrays are immutable: items cannot be assigned. x = x.at[idx].set(y) gives a new array with y there; "
        ".at[idx] has add, multiply, min and max as well"
    )
    source = user_source()
    line = linecache.getline(source.file, source.line).strip() if source is not None else ""
    fix = _as_update(line)
    if fix is None:
        return f"{text}: x = x.at[{_index_text(index)}].set({_short(value)})" + (f" ({source})" if source else "")
    return f"{text}.\n  {source}: {line}\n  write instead: {fix}"


def _as_update(line: str) -> str | None:
    """The statement `x[i] = y` as `x = x.at[i].set(y)`; None for a line that has none, or several."""
    try:
        tree = ast.parse(line)
    except SyntaxError:
        return None
    found = [fix for node in ast.walk(tree) if (fix := _update(node)) is not None]
    return found[0] if len(found) == 1 else None


def _update(node: ast.AST) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Subscript() as target]):
            method = "set"
        case ast.AugAssign(target=ast.Subscript() as target, op=op) if type(op) in _IN_PLACE:
            method = _IN_PLACE[type(op)]
        case _:
            return None
    whole, index = ast.unparse(target.value), ast.unparse(target.slice)
    index = index[1:-1] if isinstance(target.slice, ast.Tuple) and index.startswith("(") else index
    return f"{whole} = {whole}.at[{index}].{method}({ast.unparse(node.value)})"


def _index_text(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index))
    if isinstance(index, slice):
        parts = [index.start, index.stop, index.step]
        return ":".join("" if p is None else _short(p) for p in (parts if index.step is not None else parts[:2]))
    return "..." if index is Ellipsis else "None" if index is None else _short(index, "idx")


def _short(value: Any, otherwise: str = "y") -> str:
    return repr(value) if isinstance(value, (int, float, complex, bool)) else otherwise
