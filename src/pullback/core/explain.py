"""Calls that fail because an argument is of another kind than the function takes: which argument, what came, what is
accepted.

Functions check what costs nothing to check, and otherwise compute. Where that fails, the arguments are compared with
what the tables of the packages (`_parameters.py`) say of them, and the first that does not fit is named; the error that
came up stays its cause. So calls with good arguments pay for no checks. Where all arguments are of the right kinds, and
the message does not say which function it comes from, the one that the user called is added to it.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from pullback.core.asked import asked
from pullback.core.dimensions import Dimension
from pullback.core.kinds import Kind, Kinds, is_arraylike
from pullback.core.tracer import Array as AnyArray
from pullback.core.tracer import Tracer
from pullback.util.absent import own_name
from pullback.util.errors import (
    ArgumentError,
    DimensionsError,
    JAXTypeError,
    TracedArgumentError,
    TracedFlagError,
    UnhashableArgumentError,
    class_shown,
)
from pullback.util.other_arrays import ARGUMENTS_OF_TORCH
from pullback.util.static import is_hashable
from pullback.util.tracebacks import shorten

# What a call with an argument of the wrong kind may end in. What user programs raise themselves is never replaced where
# the arguments are as they should be.
_MISTAKES = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError)
_PACKAGE = __file__.rpartition("core")[0]
_NUMPY, _STANDARD = (os.path.dirname(inspect.getfile(module)) + os.sep for module in (np, os))
_NONE: dict[str, Any] = {}
# What users do not call themselves.
_UNCALLED = {
    "__class_getitem__",
    "__hash__",
    "__init_subclass__",
    "__reduce__",
    "__repr__",
    "tree_flatten",
    "tree_unflatten",
}
_LONGEST = 60  # characters of a value that are shown
_MOST = 8  # arguments that are shown


def shown(x: Any) -> str:
    """A value and its type, short enough for a message."""
    if isinstance(x, (np.ndarray, AnyArray, Tracer)):
        return f"an array of type {getattr(x, 'dtype', '?')}{list(getattr(x, 'shape', ()))}"
    try:
        text = repr(x)
    except Exception:  # of an object with tracers in it, perhaps, which must not take the place of the error (jax-md)
        return f"an object of type {type(x).__name__}"
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{text} of type {type(x).__name__}"


def type_shown(x: Any) -> str:
    """The type of a value as messages have it: arrays with dtype and shape, classes of ours without module."""
    if isinstance(x, (AnyArray, Tracer)):
        return f"jax.Array ({'traced ' if isinstance(x, Tracer) else ''}{x.dtype}{list(x.shape)})"
    return class_shown(type(x))


def mismatch(fun: Callable[..., Any], name: str, kinds: Kinds, args: tuple, kwargs: dict[str, Any]) -> Exception | None:
    """What to raise for the first argument that is not of the kind that the table gives for its name."""
    try:
        signature = inspect.signature(fun)
        bound = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # too few or too many arguments: Python's own error says so
        return None
    for argument, value in bound.items():
        parameter, kind = signature.parameters[argument], kinds.get(argument)
        values: Iterable[Any] = (value,)
        if parameter.kind is parameter.VAR_POSITIONAL:
            values = value
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        if kind is None or (parameter.default is None and value is None):
            continue
        for x in values:
            if x is not parameter.default and not kind.accepts(x):
                return _error(f"{name}: argument '{argument}' must be {kind.words}", kind, x)
    return None


def check(function: str, kind: Kind, **values: Any) -> None:
    """Raises for the first value that is not of the kind; for arguments with which a function would not fail."""
    for argument, x in values.items():
        if not kind.accepts(x):
            raise _error(f"{function}: argument '{argument}' must be {kind.words}", kind, x)


def _error(text: str, kind: Any, x: Any) -> Exception:
    members = x if isinstance(x, (list, tuple)) else (x,)
    tracer = next((m for m in members if isinstance(m, Tracer)), None)
    if kind.static and tracer is not None:
        return (TracedFlagError if kind.decides else TracedArgumentError)(tracer, text)
    if kind.static and not is_hashable(x):
        return UnhashableArgumentError(f"Non-hashable static arguments are not supported: {text}, got {shown(x)}")
    if kind.holds_arrays and not isinstance(x, (np.ndarray, AnyArray, Tracer)):
        text = f"{text}, got {shown(x)}; {type_shown(x)} is not a valid JAX type"
        return ArgumentError(text + ("; convert it first with asarray" if isinstance(x, (list, tuple)) else ""))
    return ArgumentError(f"{text}, got {shown(x)}")


def _too_flat(
    fun: Callable[..., Any], name: str, kinds: Kinds, args: tuple, kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """What to raise where a shape was asked for a dimension that it does not have: it names the smallest array."""
    if not str(error).endswith("tuple index out of range"):
        return None
    bound = inspect.signature(fun).bind(*args, **kwargs).arguments
    arrays = {k: x for k, x in bound.items() if k in kinds and kinds[k].holds_arrays and is_arraylike(x)}
    if not arrays:
        return None
    argument = min(arrays, key=lambda k: np.ndim(arrays[k]))
    return DimensionsError(
        f"{name}: argument '{argument}' must have at least {np.ndim(arrays[argument]) + 1} dimensions, got "
        f"{shown(arrays[argument])}"
    )


def _is_deliberate(error: Exception) -> bool:
    """Whether a `raise` of this package made the error, which then says what is wrong, if not of which argument."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None or not at.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        return False
    return at.tb_frame.f_code.co_code[at.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _called_with(fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> str:
    """The arguments of a call by name: dtypes and shapes of arrays, other values as they are."""

    def value(x: Any) -> str:
        if isinstance(x, (np.ndarray, np.generic, AnyArray, Tracer)):
            return f"{getattr(x, 'dtype', '?')}{list(getattr(x, 'shape', ()))}"
        if isinstance(x, (list, tuple)) and any(isinstance(v, (np.ndarray, AnyArray, Tracer)) for v in x):
            return f"[{', '.join(map(value, x[:_MOST]))}{', ...' if len(x) > _MOST else ''}]"
        text = getattr(x, "__name__", None) or repr(x)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

    bound = inspect.signature(fun).bind(*args, **kwargs)
    arrays = (AnyArray, Tracer)  # the only objects with methods of which a type says enough
    given = [f"{name}={value(x)}" for name, x in bound.arguments.items() if name != "self" or isinstance(x, arrays)]
    return ", ".join(given[:_MOST] + ["..."] * (len(given) > _MOST))


def _is_ours(error: BaseException) -> bool:
    """Whether no function of the user's was running when the error came up."""
    at = error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        standard = file.startswith((_STANDARD, "<frozen")) and "site-packages" not in file
        if not (standard or file.startswith((_PACKAGE, _NUMPY)) or f"{os.sep}opt_einsum{os.sep}" in file):
            return False
        at = at.tb_next
    return True


def _is_outermost(frame: FrameType) -> bool:
    """Whether the user's own code called this explained function, not another one that did."""
    above = frame.f_back
    while above is not None and above.f_code.co_filename.startswith(_PACKAGE):
        if above.f_code is frame.f_code:
            return False
        above = above.f_back
    return True


def _name_function(error: Exception, fun: Callable[..., Any], name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Add the function that the user called, and with what, to the message of an error that does not name it."""
    text, shown_as = str(error), name.lstrip("_")
    if error.args != (text,) or re.search(rf"\b{re.escape(name)}\b", text) or not _is_ours(error):
        return
    try:
        if args or kwargs:
            error.args = (f"{text}\n(in {shown_as}({_called_with(fun, args, kwargs)}))",)
    except Exception:  # arguments that do not go together or cannot be shown: Python's own error says so
        return


_UNKNOWN = re.compile(r"(?:\w+\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def _name_parameters(error: Exception, fun: Callable[..., Any]) -> None:
    """Add what parameters there are, and which one was meant, to Python's error for a misspelt keyword."""
    found = _UNKNOWN.match(str(error))
    if not isinstance(error, TypeError) or not found or found[1] != fun.__name__.lstrip("_"):
        return
    import difflib  # 3 ms

    public = [p for p in inspect.signature(fun).parameters.values() if p.name[0] != "_" and p.name != "self"]
    keywords = [p.name for p in public if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    close = difflib.get_close_matches(found[2], keywords, n=1)
    other = ARGUMENTS_OF_TORCH.get(found[2])
    close = close or [name for name in keywords if name == other]
    meant = f"did you mean '{close[0]}'? " if close else ""
    taken = ", ".join([str(p.replace(annotation=p.empty, default=p.empty)) for p in public])
    error.args = (f"{found[0]}; {meant}{found[1]} takes {taken}",)


def with_held_arrays(x: Any) -> Any:
    """x with the arrays of objects that have `__jax_array__`, at any depth of lists, tuples and dictionaries; None if
    there are none. Functions need not ask each argument: one that fails is called again with these."""
    if type(x) in (list, tuple):
        members = [with_held_arrays(m) for m in x]
        if all(m is None for m in members):
            return None
        return type(x)(m if c is None else c for m, c in zip(x, members))
    if type(x) is dict:
        values = with_held_arrays(list(x.values()))
        return None if values is None else dict(zip(x, values))
    if isinstance(x, (AnyArray, Tracer, Dimension, np.ndarray, np.generic, type)) or not hasattr(x, "__jax_array__"):
        return None
    return x.__jax_array__()


def explained(fun: Callable[..., Any], kinds: Kinds, name: str | None = None) -> Callable[..., Any]:
    """`fun`, whose mistakes with arguments that the table knows are named."""
    name = name or fun.__name__
    shown_as = name[1:] if name[:1] == "_" != name[1:2] else name  # a method's function is private

    def mend(error: Exception, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call again, with the arrays that objects hold, or else raises what the user is to see."""
        # What a function of the user's raised is not the arguments' fault, and it is not to run twice.
        try:
            converted = with_held_arrays((args, kwargs)) if _is_ours(error) else None
            found = None
            if converted is None:
                found = mismatch(fun, shown_as, kinds, args, kwargs)
                found = found or _too_flat(fun, shown_as, kinds, args, kwargs, error)
        except RecursionError:  # a list that contains itself
            raise error from None
        if converted is not None:
            return call(*converted[0], **converted[1])
        if found is None:
            _name_parameters(error, fun)
            if _is_outermost(sys._getframe(1)):
                _name_function(error, fun, name, args, kwargs)
            raise error
        if _is_deliberate(error):
            if not isinstance(error, (TypeError, ValueError)) or isinstance(error, LookupError):
                raise error
            if isinstance(error, JAXTypeError) and not isinstance(found, JAXTypeError):
                raise error  # a tracer, where another argument is of the wrong kind
            said = str(error).splitlines()
            names_function = re.search(rf"(?<!\w){re.escape(shown_as)}\b", str(error))
            if not names_function or re.search(r" at position \d+", str(error)):  # not the argument as users know it
                more = [line for line in str(found).splitlines() if line not in said]
                ends = {line.partition(": ")[2] for line in more}  # which a function that it calls says of its own
                said = [line for line in said if line.partition(": ")[2] not in ends] + more
            found.args = ("\n".join(said),)
        raise found from error

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                if "out_sharding" in kwargs and kwargs["out_sharding"] is not None:
                    with asked(kwargs["out_sharding"]):
                        return fun(*args, **kwargs)
                return fun(*args, **kwargs)
            except _MISTAKES as error:
                return mend(error, args, kwargs)
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    return call


def explain_all(
    namespace: dict[str, Any], kinds: Kinds = _NONE, own: dict[str, Kinds] = _NONE, skip: Iterable[str] = ()
) -> None:
    """Replace the public functions of a package, in it and in the modules that define them, by explained ones; `own`
    has what differs for single functions."""
    package, skip = own_name(namespace["__name__"]), frozenset(skip)
    for name, fun in list(namespace.items()):
        if name.startswith("_") or name in skip or not isinstance(fun, FunctionType):
            continue
        if not fun.__module__.startswith(package) or hasattr(fun, "__explained__"):
            continue
        made = explained(fun, {**kinds, **own.get(name, {})}, name)
        made.__explained__ = True  # type: ignore[attr-defined]
        namespace[name] = made
        module = sys.modules[fun.__module__]
        if vars(module).get(name) is fun:  # not `getattr`: a package may look for what it imports late
            setattr(module, name, made)


def explain_methods(cls: type, kinds: dict[str, Kinds] | None = None) -> None:
    """Replace methods of a class by explained ones: those of the table, else the public ones and the operators."""
    if kinds is None:
        made = {name for name, x in vars(cls).items() if isinstance(x, (FunctionType, classmethod, staticmethod))}
        kinds = {name: _NONE for name in made - _UNCALLED if name[0] != "_" or name[:2] == "__"}
    for name, table in kinds.items():
        given = inspect.getattr_static(cls, name)
        wrap = type(given) if isinstance(given, (staticmethod, classmethod)) else (lambda f: f)
        fun = getattr(given, "__func__", given)
        shown_as = cls.__name__ if name == "__init__" else f"{cls.__name__}.{name}"
        setattr(cls, name, wrap(explained(fun, table, shown_as)))
