"""A debugger at a point of a program: commands are read while the program waits in a callback.

The frames of the user's functions are taken while the program is traced. Arrays among their variables become operands
of the callback, so that what is printed are the values of this run.
"""

from __future__ import annotations

import cmd
import inspect
import pprint
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from pullback.core import Array, Tracer
from pullback.core.source import is_users
from pullback.lax.control.callback import debug_callback, pure_callback
from pullback.lax.movement.creation import stop_gradient
from pullback.util.pytree import tree_flatten, tree_map, tree_unflatten
from pullback.util.record import frozen_record

_SHOWN = 5  # lines before and after the current one that `list` shows
_SHOWN_AFTER_MOVES = 3  # the same after `up` and `down`


@frozen_record
class Frame:
    """A call of one of the user's functions: where it is, its source, its variables."""

    file: str
    line: int
    first: int  # the line of the file at which `source` begins
    source: Sequence[str]
    variables: dict[str, Any]
    globals: dict[str, Any]

    @property
    def current(self) -> str:
        """The line that the call is at."""
        at = self.line - self.first
        return self.source[at].strip() if 0 <= at < len(self.source) else "<no source>"

    def listing(self, around: int) -> str:
        """The lines about the current one, which is marked."""
        at = self.line - self.first
        first = max(at - around, 0)
        shown = self.source[first : at + around + 1]
        marked = [("->  " if first + n == at else "    ") + line for n, line in enumerate(shown)]
        return "\n".join([f"> {self.file}({self.line})", *marked])


def calls(innermost: FrameType | None, of_users_alone: bool, most: int | None) -> list[Frame]:
    """The frames from the innermost outwards; those of libraries and of this package only if they are wanted."""
    found: list[Frame] = []
    frame = innermost
    while frame is not None and (most is None or len(found) < most):
        if not of_users_alone or is_users(frame.f_code.co_filename):
            found.append(_frame(frame))
        frame = frame.f_back
    return found


def _frame(frame: FrameType) -> Frame:
    try:
        lines, first = inspect.getsourcelines(frame)
    except OSError:  # no file, as in an interactive session
        lines, first = [], frame.f_lineno
    source = "".join(lines).split("\n")
    return Frame(frame.f_code.co_filename, frame.f_lineno, max(first, 1), source, dict(frame.f_locals), frame.f_globals)


class Debugger(cmd.Cmd):
    """Reads commands and carries them out, until it is told to go on."""

    prompt = "(jdb) "

    def __init__(self, frames: list[Frame], stdin: Any, stdout: Any):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames, self.at = frames, 0

    def say(self, text: str) -> None:
        """Print a line."""
        self.stdout.write(text + "\n")

    def run(self) -> None:
        """The session."""
        self.say("Entering jdb:")
        self.cmdloop()

    def evaluated(self, expression: str, shown: Callable[[Any], str]) -> None:
        """Print the value of an expression in the current frame, or the error that it raises."""
        frame = self.frames[self.at]
        try:
            self.say(shown(eval(expression, frame.globals, frame.variables)))
        except Exception as error:
            self.say("*** " + traceback.format_exception_only(type(error), error)[-1].strip())

    def default(self, line: str) -> None:
        """What is no command is an expression."""
        self.evaluated(line, repr)

    def emptyline(self) -> bool:
        """Nothing, where cmd.Cmd would repeat the last command."""
        return False

    def do_p(self, arg: str) -> None:
        """p EXPRESSION: its value here, as repr shows it."""
        self.evaluated(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp EXPRESSION: its value here, over several lines if it is long."""
        self.evaluated(arg, pprint.pformat)

    def do_up(self, _arg: str) -> None:
        """up, u: to the call that made this one."""
        self.move(1, "At topmost frame.")

    def do_down(self, _arg: str) -> None:
        """down, d: to the call that this one made."""
        self.move(-1, "At bottommost frame.")

    def move(self, step: int, at_end: str) -> None:
        """To another frame, and show where it is."""
        if 0 <= self.at + step < len(self.frames):
            self.at += step
        else:
            self.say(at_end)
        self.say(self.frames[self.at].listing(_SHOWN_AFTER_MOVES))

    def do_list(self, arg: str) -> None:
        """list, l [LINES]: the source around the current line."""
        if arg and not arg.isdigit():
            self.say(f"*** list takes a number of lines, got {arg!r}")
            return
        self.say(self.frames[self.at].listing(int(arg) if arg else _SHOWN))

    def do_where(self, _arg: str) -> None:
        """where, w, bt: the calls that led here, the innermost last."""
        self.say("Traceback:")
        for frame in reversed(self.frames):
            self.say(f'  File "{frame.file}", line {frame.line}\n    {frame.current}')

    def do_continue(self, _arg: str) -> bool:
        """continue, cont, c: the program runs on."""
        return True

    def do_quit(self, _arg: str) -> bool:
        """quit, q, exit: end the program (SystemExit)."""
        raise SystemExit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_EOF = do_exit = do_quit


def stop(frames: list[Frame], ordered: bool, token: Any, stdin: Any, stdout: Any) -> Any:
    """Bind a callback that runs the debugger; the token, which then waits for it."""
    variables, tree = tree_flatten([frame.variables for frame in frames])
    is_array = [isinstance(v, (Array, Tracer)) for v in variables]
    arrays = [v for v, kept in zip(variables, is_array) if kept]

    def enter(*values: Any) -> None:
        known = iter(values)
        now = tree_unflatten(tree, [next(known) if kept else v for v, kept in zip(variables, is_array)])
        at = [Frame(f.file, f.line, f.first, f.source, names, f.globals) for f, names in zip(frames, now)]
        Debugger(at, stdin, stdout if stdout is not None else sys.stdout).run()

    if token is None:
        debug_callback(enter, *arrays, ordered=ordered)
        return None

    def enter_with_token(given: Any, *values: Any) -> Any:
        enter(*values)
        return given

    token, arrays = stop_gradient((token, arrays))
    types = tree_map(lambda leaf: getattr(leaf, "aval", leaf), token)
    return pure_callback(enter_with_token, types, token, *arrays, vmap_method="sequential")
