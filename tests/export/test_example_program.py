"""The C++ example beside a library: compiled by the system's compiler, run in a process without Python, compared."""

import os
import resource
import shutil
import subprocess

import numpy as np
import pytest
from export import programs

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.api.shapes import ShapeDtypeStruct
from pullback.export import to_c
from pullback.export._companions import SHOWN, example_value
from pullback.export._signature import parameter

COMPILE = ["c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "example.cpp", "-o", "example"]


def compiled(library):
    """The example program of a library."""
    link = ["-I.", "-L.", f"-l{library.header.stem}", "-Wl,-rpath,$ORIGIN"]
    subprocess.run([*COMPILE, *link], cwd=library.folder, check=True)
    return library.folder / "example"


def output(program, **options):
    """What it prints: {'function result': values}; of this process's environment only what BLAS reads is kept."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("OPENBLAS_", "MKL_", "OMP_"))}
    done = subprocess.run([program], capture_output=True, text=True, env=kept, **options)
    assert done.returncode == 0, done.stderr
    lines = (line.split(":") for line in done.stdout.splitlines())
    return {name: [float(x) for x in values.replace(" ...", "").split()] for name, values in lines}


def inputs_of(args):
    """What the example gives to each leaf of these arguments."""
    values = []
    for leaf in jax.tree.leaves(args):
        known = not isinstance(leaf, ShapeDtypeStruct) and np.size(leaf) <= 8
        aval = jax.typeof(leaf)
        values.append(example_value(parameter("x", "x", aval, "", True, np.asarray(leaf) if known else None)))
    return jax.tree.unflatten(jax.tree.structure(args), values)


def check(functions, printed):
    for name, (f, *args) in functions.items():
        results = jax.tree.leaves_with_path(jax.jit(f)(*inputs_of(args)))
        for path, result in results:
            key = "_".join(["out", *(str(getattr(k, "idx", getattr(k, "key", k))) for k in path)])
            shown = np.asarray(result).reshape(-1)[:SHOWN]
            if shown.dtype.kind == "c":
                shown = shown.view(shown.real.dtype)
            shown = shown.view(np.uint16) if shown.dtype.itemsize == 2 and shown.dtype.kind not in "iu" else shown
            np.testing.assert_array_equal(np.array(printed[f"{name} {key}"]).astype(shown.dtype), shown, err_msg=name)


def simulate(key, x, rate):
    """Loops, random numbers, a condition."""

    def body(x, key):
        x = x + rate * jax.random.normal(key, x.shape)
        return lax.cond(jnp.sum(x) > 0, lambda x: x * 0.5, lambda x: x, x), jnp.max(x)

    last, tops = lax.scan(body, x, jax.random.split(key, 20))
    return {"last": last, "tops": tops, "steps": lax.while_loop(lambda n: n < 100, lambda n: n * 3 + 1, 1)}


FUNCTIONS = {
    "simulate": (simulate, programs.KEY, ShapeDtypeStruct((10,), np.float32), 0.25),
    "step": (programs.step, programs.PARAMS, programs.normal(32, 8), programs.normal(32), 0.01),
    "ordered": (lambda x: (jnp.sort(x), jnp.argsort(x)), programs.SPECIAL[::-1].copy()),
    "solved": (lambda a, b: jnp.linalg.solve(a + 50 * jnp.eye(30), b), programs.positive(30), programs.normal(30)),
    "values": (lambda a: jnp.linalg.eigvals(a * jnp.arange(1.0, 10)), programs.normal(9, 9)),
    "types": (
        lambda b, h, i, z, n: (~b, h * 2, i + 1, z * 1j, n * 3),
        np.zeros(9, bool), np.zeros(9, np.float16), np.zeros(9, np.int8), np.zeros(9, np.complex64), np.uint32(7),
    ),
    "constants": (lambda x: programs.LARGE @ x, programs.normal(100)),
}  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return to_c(FUNCTIONS, path=tmp_path_factory.mktemp("example") / "demo", blas="numpy")


def test_the_example_gives_what_jit_gives(library):
    check(FUNCTIONS, output(compiled(library)))


def test_no_python_is_loaded(library):
    program = compiled(library)
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libdemo.so" in loaded and "openblas" in loaded and "not found" not in loaded
    assert "libpython" not in loaded
    # The loader says which files it opens, also those opened later.
    done = subprocess.run([program], capture_output=True, text=True, env={"LD_DEBUG": "files"}, check=True)
    opened = {
        os.path.basename(line.split("file=")[1].split()[0]) for line in done.stderr.splitlines() if "file=" in line
    }
    assert "libdemo.so" in opened and not [file for file in opened if "python" in file.lower() or "_core" in file]


def test_cmake_builds_it(library):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed; the compiler is tested by itself")
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=library.folder, check=True, capture_output=True)
    check(FUNCTIONS, output(library.folder / "build" / "example"))


def test_the_header_is_c(library):
    (library.folder / "main.c").write_text(
        '#include "demo.h"\n#include <stddef.h>\nint main(void) {\n'
        "    return solved(NULL, NULL, NULL) == DEMO_ERROR_NULL ? 0 : 1;\n}\n"
    )
    command = [
        "cc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "main.c",
        "-o",
        "main",
        "-I.",
        "-L.",
        "-ldemo",
    ]
    subprocess.run([*command, "-Wl,-rpath,$ORIGIN"], cwd=library.folder, check=True)
    assert subprocess.run([library.folder / "main"]).returncode == 0


def test_only_the_functions_are_visible(library):
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", library.library], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in symbols.stdout.splitlines()}
    assert names == {"demo_message", *FUNCTIONS, *(f"{name}_in" for name in FUNCTIONS)}


def test_no_memory_is_an_error_and_no_crash(tmp_path):
    f = lambda x: jnp.sort(jnp.sin(x + jnp.arange(float(1 << 26))))[3]
    library = to_c({"large": (f, 1.0)}, path=tmp_path / "lib")
    program = compiled(library)
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 27, 1 << 27))
    done = subprocess.run([program], capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 1 and "large: there is no memory for the workspace" in done.stderr
