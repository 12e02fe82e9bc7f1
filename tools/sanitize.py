"""Tests native code under a sanitizer: python tools/sanitize.py [KIND ...] [-- pytest args].

KIND is address, undefined, address,undefined (both at once) or thread; the last two by default. Each is built in
build/sanitize-KIND, where a package of links to the sources has the sanitized extension in it; the extension in src/
stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("address,undefined", "thread")
RUNTIMES = {
    "address": "libasan.so",
    "undefined": "libubsan.so",
    "address,undefined": "libasan.so",
    "thread": "libtsan.so",
}
OPTIONS = {
    # Python itself leaks at exit; leaks of ours are found by tests/hostile/test_leaks.py.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    # What Python, NumPy and BLAS do among themselves is not instrumented.
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:halt_on_error=1:allocator_may_return_null=1:die_after_fork=0",
}
TESTS = [
    "tests/ext",
    "tests/api/test_eager.py",
    "tests/runtime/eager/test_plan.py",
    "tests/runtime/eager/test_blocks.py",
]


# The finder of an editable install comes before PYTHONPATH: with it, the extension in src/ would be tested.
HERE_FIRST = """\
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable")]
"""


def build(kind: str) -> Path:
    """The folder that holds the package with the sanitized extension."""
    folder = ROOT / "build" / f"sanitize-{kind.replace(',', '-')}"
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPULLBACK_SANITIZE={kind}"]
    subprocess.run([*configure, f"-DPython_EXECUTABLE={sys.executable}"], check=True, stdout=subprocess.DEVNULL)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", folder, "--parallel", jobs], check=True, stdout=subprocess.DEVNULL)
    package = folder / "site" / "pullback"
    shutil.rmtree(package, ignore_errors=True)
    (package / "_ext").mkdir(parents=True)
    source = ROOT / "src" / "pullback"
    for entry in [*source.iterdir(), *(source / "_ext").iterdir()]:
        if entry.name not in ("_ext", "__pycache__") and entry.suffix != ".so":
            (package / entry.relative_to(source)).symlink_to(entry)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (package / "_ext" / f"_core{suffix}").symlink_to(folder / f"_core{suffix}")
    (package.parent / "sitecustomize.py").write_text(HERE_FIRST)
    return package.parent


def _path(library: str) -> str:
    """Where the compiler finds a library."""
    command = [os.environ.get("CXX", "c++"), f"-print-file-name={library}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: list[str]) -> int:
    """Build and test; the number of sanitizers that found something."""
    # cmake and ninja, which are installed beside Python.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    split = arguments.index("--") if "--" in arguments else len(arguments)
    kinds, rest = arguments[:split] or list(KINDS), arguments[split + 1 :]
    if unknown := set(kinds) - set(RUNTIMES):
        print(f"sanitize: unknown kind {sorted(unknown)[0]!r}; expected some of {' '.join(RUNTIMES)}", file=sys.stderr)
        return 2
    failed = 0
    for kind in kinds:
        print(f"== {kind}", flush=True)
        site = build(kind)
        # With the library of C++ beside it: Python is C, and the sanitizer takes over what throws when it starts.
        preloaded = ":".join(_path(name) for name in (RUNTIMES[kind], "libstdc++.so.6"))
        environment = {
            **os.environ,
            **OPTIONS,
            "PYTHONPATH": f"{site}{os.pathsep}{ROOT}",
            "LD_PRELOAD": preloaded,
            "PYTHONMALLOC": "malloc",
        }
        where = "from pullback._ext import _core; print(_core.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", where], env=environment, capture_output=True, text=True, check=True
        )
        if site not in Path(found.stdout.strip()).parents:
            raise RuntimeError(f"sanitize: tests would load {found.stdout.strip()}, which is not in {site}")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", *(rest or TESTS)]
        # The sanitizers' allocators keep memory that is freed, for a while or for good.
        memory = "tests/ext/arrays/test_memory.py"
        command += ["--deselect", f"{memory}::test_memory_among_what_is_in_use_is_given_back"]
        if kind == "thread":
            # The sanitizer delivers signals late to a thread that waits, so that this test would wait for ever.
            command += ["--deselect", "tests/ext/programs/test_executable.py::test_interrupt"]
        failed += subprocess.run(command, cwd=ROOT, env=environment).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
