"""Exported functions, called on memory that they must not overrun: the bits of jit, errors instead of crashes."""

import ctypes
import os
import threading
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
import scipy
from export import programs
from export.calls import call, same_bits, words

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.export import Library, _blas, to_c

X = np.linspace(-1, 1, 12, dtype=np.float32)


def check_group(functions, folder, **options):
    library = to_c(functions, path=folder, **options)
    assert library.functions == tuple(functions)
    for name, (f, *args) in functions.items():
        expected = jax.tree.leaves(jax.jit(f)(*args))
        got = call(library, name, args, [words(e) for e in expected])
        assert len(got) == len(expected)
        for k, (g, e) in enumerate(zip(got, expected)):
            assert same_bits(g, e), f"{name}, result {k}"
    return library


def test_programs_without_libraries(tmp_path):
    library = check_group(programs.OWN, tmp_path / "own")
    assert library.links == ("the C library",)
    assert {path.name for path in library.folder.iterdir()} == {
        "libown.so", "own.h", "ownConfig.cmake", "example.cpp", "CMakeLists.txt",
    }  # fmt: skip


def test_programs_that_sort(tmp_path):
    library = check_group(programs.SORTS, tmp_path / "sorts")
    assert library.links == ("the C library", "the C++ library (sorts)")


def test_programs_with_blas_and_lapack(tmp_path):
    library = check_group(programs.LINEAR_ALGEBRA, tmp_path / "algebra", blas="numpy")
    assert "openblas" in library.links[-1] and "openblas" in library.header.read_text()


def test_double_precision(tmp_path):
    with jax.enable_x64(True):
        x = programs.normal(20, 20, dtype=np.float64)
        functions = {
            "step64": (programs.elementwise, x),
            "product64": (lambda a: a @ a, x),
            "complex64": (lambda a: jnp.exp(a) * 1j, x + 1j * x),
            "whole": (lambda n, m: (n * m, n // 3), np.int64(2**62), np.arange(5, dtype=np.uint64)),
            "order": (jnp.sort, x.reshape(-1)),
        }
        check_group(functions, tmp_path)


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_levels_of_cpus(cpu, tmp_path):
    if not llvm.get_process_triple().startswith("x86_64"):
        with pytest.raises(ValueError, match=r"expected one of 'host'$"):
            to_c(jnp.sin, X, path=tmp_path, cpu=cpu)
        return
    w = programs.normal(33, 40)
    functions = {
        "values": (programs.elementwise, programs.normal(37)),
        "product": (lambda a, b: a @ b, w, w.T.copy()),
        "half": (lambda x: x * 2 + 1, np.arange(9, dtype=np.float16)),
    }
    library = to_c(functions, path=tmp_path, cpu=cpu)
    assert cpu in library.header.read_text()
    needed = {"x86-64": (), "x86-64-v2": ("sse4.2",), "x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx512vl",)}[cpu]
    for name, (f, *args) in functions.items():
        expected = words(jax.jit(f)(*args))
        if all(llvm.get_host_cpu_features().get(feature) for feature in needed):
            (got,) = call(library, name, args, [expected])
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        else:
            with pytest.raises(RuntimeError, match="this CPU lacks instructions"):
                call(library, name, args, [expected])


# names


def test_parameters_are_named_after_the_leaves(tmp_path):
    def f(params, int, x):
        return {"loss": params["w"].sum() * int, "y": (x, x + 1)}

    header = to_c(f, {"w": X, "b c": X[:2]}, 2.0, X, path=tmp_path / "m").header.read_text()
    assert "int f(const float *params_b_c, const float *params_w, float int_, const float *x," in header
    assert "float *out_loss, float *out_y_0, float *out_y_1" in " ".join(header.split())
    for text in (
        "argument  params_b_c  float[2] (not used), params['b c']",
        "argument  int_        float, by value, int",
        "result    out_y_0     float[12], out['y'][0]",
        "M_ERROR_OVERLAP", "Links against: the C library.", "f(params['b c'], params['w'], int, x)",
    ):  # fmt: skip
        assert text in header, header


def test_special_types_are_explained(tmp_path):
    f = lambda h, k, z: (h + 1, jax.random.split(k, 2), z * 1j)
    header = to_c(f, np.zeros(2, np.float16), jax.random.key(0), np.zeros(3, np.complex64), path=tmp_path).header
    text = header.read_text()
    assert "the bits of a float16" in text and "the words of key<fry> keys" in text
    assert "typedef std::complex<float>" in text and "typedef float _Complex" in text


def test_static_arguments_are_part_of_the_program(tmp_path):
    f = jax.jit(lambda n, x: x * n, static_argnums=0)
    library = to_c({"tripled": (f, 3, X)}, path=tmp_path)
    (got,) = call(library, "tripled", [X], [X])
    np.testing.assert_array_equal(got, X * 3)


def test_types_suffice(tmp_path):
    shape = jax.ShapeDtypeStruct((12,), np.float32)
    library = to_c(jax.jit(programs.elementwise), shape, path=tmp_path / "1st", name=None)
    assert library.library.name == "lib_1st.so" and library.functions == ("elementwise",)
    assert same_bits(call(library, "elementwise", [X], [X])[0], jax.jit(programs.elementwise)(X))


@pytest.mark.parametrize("functions, error, match", [
    ({}, ValueError, "empty dict"),
    (3, TypeError, "expected a function or a dict"),
    ({"f": jnp.sin}, TypeError, "expected a tuple of a function"),
    ({"f g": (jnp.sin, X)}, ValueError, "no identifier"),
    ({"class": (jnp.sin, X)}, ValueError, "no identifier"),
    ({"malloc": (jnp.sin, X)}, ValueError, "would hide the C library's.*my_malloc"),
    ({"f": (jnp.sin, X), "f_in": (jnp.cos, X)}, ValueError, "two functions .* 'f_in'"),
    ({"lib_message": (jnp.sin, X)}, ValueError, "two functions .* 'lib_message'"),
])  # fmt: skip
def test_wrong_functions(functions, error, match, tmp_path):
    with pytest.raises(error, match=match):
        to_c(functions, path=tmp_path / "lib")
    assert not (tmp_path / "lib").exists()


def test_wrong_options(tmp_path):
    with pytest.raises(ValueError, match=r"argument 'cpu' is 'pentium'; expected one of 'host'"):
        to_c(programs.elementwise, X, path=tmp_path, cpu="pentium")
    with pytest.raises(ValueError, match=r"argument 'name' is 'a-b', which is no identifier"):
        to_c(programs.elementwise, X, path=tmp_path, name="a-b")
    with pytest.raises(TypeError, match="stand beside it"):
        to_c({"f": (programs.elementwise, X)}, X, path=tmp_path)
    with pytest.raises(NotImplementedError, match="out has the dtype int4, which has no counterpart in C"):
        to_c({"f": (lambda x: x.astype(jnp.int4), X)}, path=tmp_path)


# what a library cannot do


def test_callbacks_are_refused_with_the_users_line(tmp_path):
    def look_up(x):
        return x

    def f(x):
        y = lax.fori_loop(0, 3, lambda i, x: jax.pure_callback(look_up, x, x), x)
        jax.debug.print("{}", y[0])
        return y

    with pytest.raises(NotImplementedError) as error:
        to_c({"f": (f, X)}, path=tmp_path / "lib")
    text = str(error.value)
    assert "'f' calls Python" in text and "debug_print" in text
    assert f"pure_callback of {look_up.__qualname__} at {__file__}:{f.__code__.co_firstlineno + 1}" in text
    assert not (tmp_path / "lib").exists()


def test_primitives_without_native_rule_are_refused(tmp_path):
    with pytest.raises(NotImplementedError, match=r"primitive 'cholesky_update' at .*test_to_c.py:\d+.*no native"):
        to_c({"f": (jax.lax.linalg.cholesky_update, np.eye(3, dtype=np.float32), X[:3])}, path=tmp_path)


# errors at run time


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    f = lambda x, y: (x @ jnp.tanh(x @ y), y + 1)
    x = np.ones((20, 20), np.float32)
    return to_c({"run": (f, x, x)}, path=tmp_path_factory.mktemp("errors") / "lib")


def run(library, *pointers, function="run"):
    code = ctypes.CDLL(str(library.library))
    code.lib_message.restype = ctypes.c_char_p
    return code.lib_message(getattr(code, function)(*map(ctypes.c_void_p, pointers))).decode()


def test_errors_at_run_time(library):
    arrays = [np.ones(401, np.float32) for _ in range(4)]
    x, y, out, out2 = (a.ctypes.data for a in arrays)
    assert run(library, x, y, out, out2) == "success"
    assert run(library, x, 0, out, out2) == "a pointer is null"
    assert "not aligned" in run(library, x, y + 1, out, out2)
    assert run(library, x + 4, y, out, out2) == "success"
    for overlapping in ((x, y, x, out2), (x, y, out, y + 400), (x, y, out, out + 4)):
        assert "overlaps" in run(library, *overlapping)
    assert run(library, x, x, out, out2) == "success"  # arguments may be one array


def test_workspace_of_the_caller(library):
    header = library.header.read_text()
    size = int(header.split("#define RUN_WORKSPACE ")[1].split()[0])
    assert size >= 1600
    memory = np.zeros(size + 64, np.uint8)
    aligned = memory.ctypes.data + -memory.ctypes.data % 64
    arrays = [np.ones(400, np.float32) for _ in range(4)]
    pointers = [a.ctypes.data for a in arrays]
    assert run(library, *pointers, aligned, function="run_in") == "success"
    assert run(library, *pointers, 0, function="run_in") == "a pointer is null"
    assert "64 bytes" in run(library, *pointers, aligned + 4, function="run_in")


def test_threads_may_call_at_once(library):
    rng = np.random.default_rng(1)
    wrong = []

    def work(seed):
        x, y = (rng.normal(size=(20, 20)).astype(np.float32) for _ in range(2))
        expected = jax.jit(lambda x, y: (x @ jnp.tanh(x @ y), y + 1))(x, y)
        for _ in range(50):
            got = call(library, "run", (x, y), [x, y])
            if not all(map(same_bits, got, expected)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# BLAS, and compilers


def test_blas_by_path_and_by_flags(tmp_path):
    a = programs.positive(20)
    functions = {"factor": (jnp.linalg.cholesky, a)}
    numpys = _blas.find_blas("numpy", ["dgemm"], lambda blas: False)
    library = to_c(functions, path=tmp_path / "a", blas=numpys.description)
    assert same_bits(call(library, "factor", [a], [a])[0], jax.jit(jnp.linalg.cholesky)(a))
    flags = f"-L{Path(numpys.description).parent} -lthere_is_no_such_library"
    with pytest.raises(ValueError, match="the linker finds no spotrf with these flags"):
        to_c(functions, path=tmp_path / "b", blas=flags)
    with pytest.raises(ValueError, match=r"nowhere\.so, which does not exist"):
        to_c(functions, path=tmp_path / "b", blas=str(tmp_path / "nowhere.so"))
    with pytest.raises(ValueError, match="has no spotrf"):
        to_c(functions, path=tmp_path / "b", blas=str(to_c({"f": (jnp.sin, X)}, path=tmp_path / "c").library))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_libraries_with_integers_of_another_width(tmp_path, dtype):
    """That of SciPy's wheel takes 32 bits, that of NumPy's 64: programs are compiled for what they are linked with."""
    (scipys,) = Path(scipy.__file__).parent.parent.glob("scipy.libs/libscipy_openblas-*")
    a = np.random.default_rng(0).normal(size=(70, 70)).astype(dtype)
    with jax.enable_x64(True):
        library = to_c({"f": (jnp.linalg.solve, a, a)}, path=tmp_path, blas=str(scipys))
        (found,) = call(library, "f", [a, a], [a])
    np.testing.assert_allclose(found, np.eye(70), atol=1e-3)


def test_without_blas_of_the_system_that_of_numpy_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(_blas, "_SYSTEM", (("-lthere_is_no_such_library",),))
    with pytest.warns(UserWarning, match=r"finds no BLAS and LAPACK of the system.*openblas"):
        library = to_c({"factor": (jnp.linalg.cholesky, programs.positive(20))}, path=tmp_path)
    assert isinstance(library, Library) and "scipy_openblas" in library.header.read_text()


def test_no_compiler(tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"found no C compiler.*cc, gcc, clang and the environment variable CC"):
        to_c({"f": (jnp.sin, X)}, path=tmp_path / "lib")
    monkeypatch.setenv("CC", "nothing-there")
    with pytest.raises(RuntimeError, match="CC says 'nothing-there'"):
        to_c({"f": (jnp.sin, X)}, path=tmp_path / "lib")
    assert os.listdir(tmp_path) == []
