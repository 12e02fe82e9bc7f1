"""`pullback.progress()`: how far the loops inside of compiled programs are, and how long they will take.

Programs say which step they are at where they ask for Ctrl-C anyway (loops/emit/interrupt.py, ext/programs/progress.h),
and a thread looks some times a second. So a program is the same whether somebody watches or not: it is compiled once,
and code from the cache on disk has a bar, too.

Three faces, since each place reads something else: tqdm's bar in notebooks and terminals where tqdm is installed, as
that is what users know and what other bars get along with; a line that is written again in other terminals; lines in
logs.

Measured, watched against not, in turns, three loops from 1.5 ns a step up: 1.007, 1.000 and 0.990 by the least times,
0.996, 1.001 and 0.993 by the medians.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import warnings
from typing import Any, TextIO

from pullback._ext import _core
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.util.locks import Lock

DELAY = 0.5  # seconds; what takes less is over before anybody could read it
BETWEEN = {"line": 0.1, "tqdm": 0.1, "log": 10.0}  # seconds between two looks, or two lines of a log

_lock = Lock()
_shown: _Watcher | None = None  # a program has one bar, however many functions ask for one


class progress(contextlib.ContextDecorator):
    """Context manager or decorator: a bar for each compiled loop (scan, fori_loop, while_loop) that takes over 0.5 s.

    The outermost loop of a program is counted; of several in turn each has a bar. Loops of known length show the time
    that is left, and others, as while_loop, do where `total` says how many steps to expect. Inside another `progress`
    it does nothing.

    description: in front of the bar; else the name of the jitted function. file: what is written to, sys.stderr if
    None. style: "tqdm", "line", "log", or None to choose by the file: tqdm's bar in terminals and notebooks if tqdm is
    installed, a line that is written again and again in other terminals, and lines every 10 seconds elsewhere. every:
    seconds between two of them. TypeError, ValueError for other arguments; ImportError for style "tqdm" without tqdm.

    >>> import pullback as pb
    >>> with pb.progress():
    ...     y = pb.jit(lambda x: pb.lax.fori_loop(0, 1000, lambda i, x: x / 2, x))(1.0)
    """

    def __init__(
        self,
        description: str | None = None,
        *,
        total: int | None = None,
        style: str | None = None,
        every: float | None = None,
        file: TextIO | None = None,
    ) -> None:
        if description is not None and not isinstance(description, str):
            raise TypeError(f"progress: argument 'description' must be a string or None, got {description!r}")
        if total is not None and (isinstance(total, bool) or not hasattr(total, "__index__")):
            raise TypeError(f"progress: argument 'total' must be a number of steps or None, got {total!r}")
        if total is not None and int(total) < 1:
            raise ValueError(f"progress: argument 'total' must be at least 1, got {total}")
        if style not in (None, *BETWEEN):
            raise ValueError(f"progress: argument 'style' must be 'tqdm', 'line', 'log' or None, got {style!r}")
        if every is not None and (isinstance(every, bool) or not isinstance(every, (int, float))):
            raise TypeError(f"progress: argument 'every' must be a number of seconds or None, got {every!r}")
        if every is not None and not every > 0:
            raise ValueError(f"progress: argument 'every' must be above 0, got {every}")
        if file is not None and not hasattr(file, "write"):
            raise TypeError(f"progress: argument 'file' must be a text file or None, got {file!r}")
        if style == "tqdm" and _tqdm() is None:
            raise ImportError("progress: style='tqdm' needs tqdm: pip install tqdm")
        self._description, self._total, self._style, self._every, self._file = description, total, style, every, file
        self._watchers: list[_Watcher | None] = []

    def __enter__(self) -> progress:
        global _shown
        watcher = None
        with _lock:
            if _shown is None:
                watcher = _Watcher(self._description, self._total, self._style, self._every, self._file or sys.stderr)
                watcher.start()
                _shown = watcher
        self._watchers.append(watcher)
        return self

    def __exit__(self, *exc: object) -> None:
        global _shown
        watcher = self._watchers.pop()
        if watcher is not None:
            try:
                watcher.stop()
            finally:
                with _lock:
                    _shown = None

    def __repr__(self) -> str:
        return f"progress({self._description!r})"


class _Watcher:
    """The thread that looks, and the bar that it has made."""

    def __init__(
        self, description: str | None, total: int | None, style: str | None, every: float | None, file: Any
    ) -> None:
        self._description, self._total, self._file = description, total, file
        self._style = style or _style_for(file)
        self._every = every or BETWEEN[self._style]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="pullback-progress", daemon=True)
        self._bar: _Bar | None = None
        self._run = 0
        self._first: tuple[int, float] | None = None  # the step and time at which the run was first seen
        self._name: str | None = None

    def start(self) -> None:
        self._run = _core.read_progress()[0]  # what ran before is nobody's
        _core.watch_progress(True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the bar, and leaves the cursor at the start of a line."""
        self._ended.set()
        try:
            self._thread.join()
        finally:
            _core.watch_progress(False)

    def _look(self) -> None:
        pause = min(self._every, 0.1)
        try:
            while not self._ended.wait(pause):
                self._update()
            self._update()
            self._close(False)
        except (OSError, ValueError):  # the file is closed, or nobody reads it any more
            pass

    def _update(self) -> None:
        run, loop, step, steps, running, name = _core.read_progress()
        now = time.perf_counter()
        if run != self._run:
            self._close(True)
            self._run, self._first = run, (step, now)
            self._name = name
        if self._first is None:
            return
        self._name = name or self._name
        if self._bar is None and running and now - self._first[1] >= DELAY:
            label = self._description or f"{self._name or 'loop'}{f' (loop {loop})' if loop > 1 else ''}"
            known = steps or self._total
            make = {"tqdm": _TqdmBar, "line": _LineBar, "log": _LogBar}[self._style]
            self._bar = make(label, known, self._first[0], self._first[1], self._file, self._every)
        if self._bar is not None:
            self._bar.show(step, now)
            if not running:
                self._close(False)

    def _close(self, done: bool) -> None:
        """Ends the bar; `done`: another loop has begun, so this one has come to its end."""
        bar, self._bar, self._first = self._bar, None, None
        if bar is not None:
            bar.close(done)


class _Bar:
    """How far one loop is, on a file."""

    def __init__(self, label: str, total: int | None, first: int, began: float, file: Any, every: float) -> None:
        self._label, self._total, self._first, self._began = label, total, first, began
        self._file, self._every = file, every
        self._step, self._seen = first, began

    def show(self, step: int, now: float) -> None:
        """The loop has done so many steps."""
        self._step, self._seen = step, now

    def close(self, done: bool) -> None:
        """The loop has ended; `done` if surely with its last step."""
        if done and self._total:
            self._step = self._total

    def text(self) -> str:
        """train:  42% 4200/10000 [0:05<0:07, 840 steps/s]"""
        seconds = self._seen - self._began
        rate = (self._step - self._first) / seconds if seconds > 0 else 0.0
        speed = f"{_short(rate)} steps/s" if rate >= 1 or not rate else f"{_short(1 / rate)} s/step"
        if not self._total:
            return f"{self._label}: {self._step} steps [{_clock(seconds)}, {speed}]"
        left = _clock(max(self._total - self._step, 0) / rate) if rate else "?"
        share = min(100 * self._step // self._total, 100)
        return f"{self._label}: {share:3}% {self._step}/{self._total} [{_clock(seconds)}<{left}, {speed}]"


class _LogBar(_Bar):
    """A line from time to time, and a last one."""

    _written = -1.0

    def show(self, step: int, now: float) -> None:
        super().show(step, now)
        if self._written < 0 or now - self._written >= self._every:
            self._written = now
            self._file.write(self.text() + "\n")
            self._file.flush()

    def close(self, done: bool) -> None:
        super().close(done)
        self._file.write(self.text() + "\n")
        self._file.flush()


class _LineBar(_Bar):
    """One line of a terminal, written again."""

    _width = 0

    def show(self, step: int, now: float) -> None:
        super().show(step, now)
        self._write("\r")

    def close(self, done: bool) -> None:
        super().close(done)
        self._write("\r")
        self._file.write("\n")
        self._file.flush()

    def _write(self, start: str) -> None:
        from shutil import get_terminal_size

        text = self.text()[: max(get_terminal_size().columns - 1, 10)]
        self._file.write(start + text.ljust(self._width))
        self._file.flush()
        self._width = len(text)


class _TqdmBar(_Bar):
    """The bar of tqdm."""

    def __init__(self, label: str, total: int | None, first: int, began: float, file: Any, every: float) -> None:
        super().__init__(label, total, first, began, file, every)
        make = _tqdm()
        assert make is not None
        given = {"file": file} if file is not sys.stderr else {}  # a notebook's bar writes to no file
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where notebooks have no widgets, tqdm says so, and writes text
            self._bar = make(
                desc=label, total=total, initial=first, unit="step", unit_scale=True, mininterval=0, **given
            )
        if hasattr(self._bar, "start_t"):  # it has been running since then, and its rates count from there
            passed = time.perf_counter() - began
            self._bar.start_t -= passed
            self._bar.last_print_t -= passed

    def show(self, step: int, now: float) -> None:
        super().show(step, now)
        self._bar.update(step - self._bar.n)
        self._bar.refresh()

    def close(self, done: bool) -> None:
        super().close(done)
        self._bar.update(self._step - self._bar.n)
        self._bar.close()


def _tqdm() -> Any:
    """The class of tqdm's bars for where we are, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _style_for(file: Any) -> str:
    # Somebody's notebook is where IPython runs without a terminal; only whoever has imported it can be in one.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    notebook = file is sys.stderr and type(shell).__name__ == "ZMQInteractiveShell"
    terminal = bool(getattr(file, "isatty", lambda: False)())
    if not (notebook or terminal):
        return "log"
    return "line" if _tqdm() is None else "tqdm"


def _short(number: float) -> str:
    """Three digits, with the unit's letter: 1.23M."""
    for letter in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g}{letter}"
        number /= 1000
    return f"{number:.3g}T"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


__all__ = ["progress"]

add_pages(globals(), PAGES)
