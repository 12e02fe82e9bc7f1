"""`python -m pullback run FILE | -m MODULE [args...]`: a program written for JAX, run on pullback.

The program sees what Python itself would show it: `sys.argv` begins with the file, `__name__` is '__main__', and
`sys.path[0]` is the folder of the file, or the current folder for -m.
"""

from __future__ import annotations

import os
import runpy
import sys
import types

USAGE = """usage: python -m pullback run FILE [args...]
       python -m pullback run -m MODULE [args...]
       python -m pullback run -c CODE [args...]
       python -m pullback launch -n N [options of mpiexec] FILE | -m MODULE [args...]
       python -m pullback tune
       python -m pullback doctor
       python -m pullback explain [ERROR]
       python -m pullback version

run: a program whose imports of jax get pullback
launch: the program on N processes, by the installed mpiexec; it calls jax.distributed.initialize()
tune: measure this machine, for what as_text("schedule") expects; kept in the folder of compiled programs
doctor: what is installed, a short self-test, what is wrong and how to mend it
explain: what causes an error, and what to do; without a name, a list"""


def run(arguments: list[str]) -> int:
    """Run a program as Python would, with pullback in place of jax. Returns an exit status."""
    if not arguments:
        print(USAGE, file=sys.stderr)
        return 2
    from pullback.jax_names.install import install_as_jax

    install_as_jax()
    first, rest = arguments[0], arguments[1:]
    if first in ("-m", "-c"):
        if not rest:
            print(f"pullback run: argument expected for the {first} option\n{USAGE}", file=sys.stderr)
            return 2
        what, rest = rest[0], rest[1:]
        sys.argv = [first, *rest]
        if first == "-m":
            sys.path[0] = os.getcwd()
            sys.argv[0] = what  # runpy puts the file's path here
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = ""

            main = types.ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(what, "<string>", "exec"), main.__dict__)
        return 0
    if not os.path.exists(first):
        print(f"pullback run: can't open file {os.path.abspath(first)!r}: no such file", file=sys.stderr)
        return 2
    sys.argv = [first, *rest]
    sys.path[0] = os.path.dirname(os.path.abspath(first))
    runpy.run_path(first, run_name="__main__")
    return 0


def main(arguments: list[str]) -> int:
    """The command line."""
    if arguments[:1] == ["run"]:
        return run(arguments[1:])
    if arguments[:1] == ["launch"]:
        from pullback.distributed.launch import launch

        return launch(arguments[1:])
    if arguments == ["tune"]:
        from pullback import tune

        return tune.main()
    if arguments == ["doctor"]:
        from pullback import doctor

        return doctor.main()
    if arguments[:1] == ["explain"] and len(arguments) <= 2:
        from pullback import explain

        return explain.main(arguments[1:])
    if arguments == ["version"]:
        from pullback import version

        print(f"pullback {version.__version__} (API of JAX {version.jax_version})")
        return 0
    asked = arguments[:1] in (["-h"], ["--help"], ["help"])
    print(USAGE, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
