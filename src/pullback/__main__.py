"""`python -m pullback run FILE | -m MODULE [args...]`: a program written for JAX, run on pullback.

The program sees what Python itself would show it: `sys.argv` begins with the file, `__name__` is '__main__', and
`sys.path[0]` is the folder of the file, or the current folder for -m.
"""

from __future__ import annotations

import os
import runpy
import sys
import types

COMMANDS = {  # name -> (what may follow, what it does)
    "run": (
        ("FILE [args...]", "-m MODULE [args...]", "-c CODE [args...]"),
        "a program whose imports of jax get pullback; FILE may be -, the standard input",
    ),
    "launch": (
        ("-n N [options of mpiexec] FILE | -m MODULE [args...]",),
        "the program on N processes, by the installed mpiexec; it calls jax.distributed.initialize()",
    ),
    "tune": (
        ("",),
        'measure this machine, for what as_text("schedule") expects; kept in the folder of compiled programs',
    ),
    "doctor": (("",), "what is installed, a short self-test, what is wrong and how to mend it"),
    "explain": (("[ERROR]",), "what causes an error, and what to do; without a name, a list"),
    "version": (("",), "the version, and whose API it has"),
}
EXAMPLES = {  # name -> calls, as its help shows them
    "run": ("run train.py --epochs 3", "run -m pytest tests"),
    "launch": ("launch -n 4 train.py --epochs 3",),
    "explain": ("explain TracerBoolConversionError",),
}
HELP = ("-h", "--help", "help")


def usage(names: list[str]) -> str:
    """How commands are called, and what each does."""
    lines = [f"python -m pullback {name} {rest}".rstrip() for name in names for rest in COMMANDS[name][0]]
    said = [f"{name}: {COMMANDS[name][1]}" for name in names]
    return "\n".join(["usage: " + "\n       ".join(lines), "", *said])


def _mistake(command: str, text: str) -> int:
    """Say what is wrong, and how the command is called; the exit status."""
    names = [command] if command else [*COMMANDS]
    print(f"{' '.join(['pullback', *names[: bool(command)]])}: {text}\n{usage(names)}", file=sys.stderr)
    return 2


def run(arguments: list[str]) -> int:
    """Run a program as Python would, with pullback in place of jax. Returns an exit status."""
    if not arguments:
        return _mistake("run", "no program is given")
    first, rest = arguments[0], arguments[1:]
    if first in ("-m", "-c") and not rest:
        return _mistake("run", f"argument expected for the {first} option")
    if first not in ("-m", "-c", "-") and not os.path.exists(first):
        print(f"pullback run: can't open file {os.path.abspath(first)!r}: no such file", file=sys.stderr)
        return 2
    from pullback.jax_names.install import install_as_jax

    install_as_jax()
    before = sys.excepthook

    def shorter(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        error.__traceback__ = trace = _of_program(trace)
        before(kind, error, trace)

    sys.excepthook = shorter
    try:
        _run(first, rest)
    except ImportError as error:
        if _of_program(error.__traceback__) is not None:
            raise
        print(f"pullback run: {error}", file=sys.stderr)  # no such module
        return 1
    return 0


def _of_program(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames that have led to the program."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


def _run(first: str, rest: list[str]) -> None:
    if first == "-m":
        what, rest = rest[0], rest[1:]
        sys.path[0] = os.getcwd()
        sys.argv = [what, *rest]  # runpy puts the file's path here
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    elif first == "-c":
        what, rest = rest[0], rest[1:]
        sys.path[0] = ""
        sys.argv = [first, *rest]
        _run_text(what, "<string>")
    elif first == "-":
        sys.path[0] = ""
        sys.argv = [first, *rest]
        _run_text(sys.stdin.read(), "<stdin>")
    else:
        sys.argv = [first, *rest]
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


def _run_text(code: str, name: str) -> None:
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(compile(code, name, "exec"), main.__dict__)


def main(arguments: list[str]) -> int:
    """The command line."""
    command, *rest = arguments or [""]
    command = "version" if command in ("-V", "--version") else command
    if command in HELP:
        print(usage([*COMMANDS]))
        return 0
    if command not in COMMANDS:
        import difflib

        close = difflib.get_close_matches(command, COMMANDS, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return _mistake("", f"there is no command {command!r}{hint}" if command else "no command is given")
    if rest[:1] and rest[0] in HELP:
        examples = [f"example: python -m pullback {each}" for each in EXAMPLES.get(command, ())]
        print("\n".join([usage([command]), *examples]))
        return 0
    if command == "run":
        return run(rest)
    if command == "launch":
        from pullback.distributed.launch import launch

        return launch(rest)
    if len(rest) > (command == "explain"):
        most = "one name" if command == "explain" else "no arguments"
        return _mistake(command, f"takes {most}, got {' '.join(rest)}")
    if command == "explain":
        from pullback import explain

        return explain.main(rest)
    if command == "tune":
        from pullback import tune

        return tune.main()
    if command == "doctor":
        from pullback import doctor

        return doctor.main()
    from pullback.version import __version__, jax_version

    print(f"pullback {__version__} (API of JAX {jax_version})")
    return 0


def _end() -> int:
    """The command line's exit status; quiet where the reader of what is printed has gone, as `head` does."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        if sys.argv[1:2] == ["run"]:
            raise  # the program's own
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        return 1
    return status


if __name__ == "__main__":
    sys.exit(_end())
