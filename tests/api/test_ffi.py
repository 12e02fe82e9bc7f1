"""Foreign functions: C++ sources as users write them, compiled here and called from programs."""

import ctypes
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.errors import JaxRuntimeError

SOURCE = Path(__file__).parent.parent / "data" / "ffi" / "handlers.cc"
COMPILER = next((c for c in ("c++", "g++", "clang++") if shutil.which(c)), None)
pytestmark = pytest.mark.skipif(
    COMPILER is None, reason="foreign functions have to be compiled, and no compiler is here"
)

TARGETS = {
    "normalize": "NormalizeHandler",
    "attributes": "AttributesHandler",
    "sum_all": "SumAllHandler",
    "halves": "HalvesHandler",
    "columns": "ColumnsHandler",
    "add_one": "AddOneHandler",
    "later": "Later",
}
F32 = jnp.float32


def build(folder):
    path = folder / "handlers.so"
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-I", jax.ffi.include_dir()]
    subprocess.run([COMPILER, *flags, SOURCE, "-o", path], check=True, capture_output=True, text=True)
    return path


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    loaded = ctypes.CDLL(build(tmp_path_factory.mktemp("ffi")))
    for name, symbol in TARGETS.items():
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(loaded, symbol)))
    jax.ffi.register_ffi_target("multiply_three", jax.ffi.pycapsule(loaded.MultiplyThree), api_version=0)
    for function in (loaded.CounterId, loaded.CounterInfo):
        function.restype = ctypes.c_void_p
    capsule = jax.ffi.pycapsule  # of addresses, as compilers give them
    jax.ffi.register_ffi_type(
        "counter", {"type_id": capsule(loaded.CounterId()), "type_info": capsule(loaded.CounterInfo())}
    )
    stages = {"instantiate": loaded.MakeCounterHandler, "execute": loaded.CountHandler}
    jax.ffi.register_ffi_target("count", {k: jax.ffi.pycapsule(v) for k, v in stages.items()})
    return loaded


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def normalize(x, eps=1e-5, **options):
    return jax.ffi.ffi_call("normalize", like(x), **options)(x, eps=np.float32(eps))


def expected(x, eps=1e-5):
    return x / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + eps)


X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 2, 3), (0, 3), (1, 1)])
def test_values(library, transform, shape):
    x = np.resize(X, shape)
    np.testing.assert_allclose(transform(normalize)(jnp.asarray(x)), expected(x), rtol=1e-6)


def test_among_other_work(library):
    f = lambda x: jnp.sum(normalize(x * 2 + 1) ** 2, axis=0)
    np.testing.assert_allclose(jax.jit(f)(X), np.sum(expected(X * 2 + 1) ** 2, 0), rtol=1e-5)


def test_in_control_flow(library):
    def f(x):
        x, ys = jax.lax.scan(lambda c, _: (normalize(c) + 1, c[0]), x, None, length=3)
        x = jax.lax.cond(x[0, 0] > 0, normalize, lambda x: x, x)
        return jax.lax.fori_loop(0, 2, lambda i, c: normalize(c) - 0.5, x), ys

    c, rows = X, []
    for _ in range(3):
        rows.append(c[0])
        c = expected(c) + 1
    c = expected(c) if c[0, 0] > 0 else c
    for _ in range(2):
        c = expected(c) - 0.5
    got, ys = jax.jit(f)(X)
    np.testing.assert_allclose(got, c, rtol=1e-5)
    np.testing.assert_allclose(ys, rows, rtol=1e-5)


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_vmap(library, method, axis):
    f = lambda x: normalize(x, vmap_method=method)
    for g in (f, jax.jit(f)):
        np.testing.assert_allclose(jax.vmap(g, in_axes=axis)(X), expected(X if axis == 0 else X.T), rtol=1e-6)


def test_vmap_without_a_method(library):
    with pytest.raises(NotImplementedError, match="ffi_call: vmap is only supported"):
        jax.vmap(normalize)(X)


def test_a_derivative_of_the_users_own(library):
    @jax.custom_vjp
    def f(x):
        return normalize(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * 3,))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(X), np.full_like(X, 3))
    with pytest.raises(ValueError, match="`normalize` cannot be differentiated"):
        jax.grad(lambda x: normalize(x).sum())(X)


ATTRIBUTES = {
    "integer": 3,
    "real": 2.5,
    "flag": True,
    "text": "word",
    "array": np.arange(4, dtype=np.int32),
    "pair": {"first": 5, "second": 0.25},
    "mode": np.int32(7),
}


def test_attributes(library):
    call = jax.ffi.ffi_call("attributes", jax.ShapeDtypeStruct((7,), np.float64))
    for f in (call, jax.jit(lambda: call(**ATTRIBUTES))):
        got = f(**ATTRIBUTES) if f is call else f()
        np.testing.assert_array_equal(np.asarray(got), [3, 2.5, 1, 4, 6, 5.25, 7])


@pytest.mark.parametrize(
    "changed, text",
    [
        ({"integer": np.int32(3)}, "Wrong scalar data type: expected S64 but got S32"),
        ({"real": "2.5"}, "expected scalar"),
        ({"text": 1}, "expected string"),
        ({"array": np.arange(4)}, "Wrong array data type: expected S32 but got S64"),
        ({"pair": {"first": 5}}, "second"),
        ({"more": 1}, "Wrong number of attributes: expected 7 but got 8"),
        ({"mode": (1, 2)}, "Unsupported attribute type for attribute: mode"),
    ],
)
def test_wrong_attributes(library, changed, text):
    call = jax.ffi.ffi_call("attributes", jax.ShapeDtypeStruct((7,), np.float64))
    with pytest.raises(JaxRuntimeError, match=f"INVALID_ARGUMENT.*(?s:.*){text}"):
        call(**{**ATTRIBUTES, **changed})


def test_what_no_attribute_can_be(library):
    call = jax.ffi.ffi_call("attributes", jax.ShapeDtypeStruct((7,), np.float64))
    with pytest.raises(TypeError, match="Non-hashable keyword argument to ffi_call text"):
        call(**{**ATTRIBUTES, "text": [1]})
    with pytest.raises(TypeError, match=r"No attribute handler defined for type: .*NoneType"):
        call(**{**ATTRIBUTES, "text": None})


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_arguments_and_results(library, kind):
    scalar = jax.ShapeDtypeStruct((), F32)
    call = jax.ffi.ffi_call("sum_all", kind([scalar, scalar]))
    f = jax.jit(lambda *xs: call(*xs, scale=np.float32(2)))
    got = f(jnp.ones(3), jnp.ones((2, 2)), jnp.zeros((0,)))
    assert isinstance(got, kind) and [float(x) for x in got] == [14, 14]
    assert [float(x) for x in f()] == [0, 0]


def test_state_of_a_program(library):
    alive = library.CountersAlive()
    call = jax.ffi.ffi_call("count", jax.ShapeDtypeStruct((), jnp.int32), has_side_effect=True)
    one, two = jax.jit(lambda: call()), jax.jit(lambda x: (call(), x + 1))
    assert [int(one()) for _ in range(3)] == [1, 2, 3]
    assert int(two(1.0)[0]) > 0
    assert library.CountersAlive() > alive


def test_side_effects_are_kept(library):
    call = jax.ffi.ffi_call("count", jax.ShapeDtypeStruct((), jnp.int32), has_side_effect=True)

    @jax.jit
    def f(x):
        call(), call()
        return x

    before = int(call())
    f(1.0)
    assert int(call()) in (before + 1, before + 3)  # places with equal types may be one


def test_scratch_memory_and_tasks(library):
    x = np.arange(5.0)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(jax.jit(jax.ffi.ffi_call("halves", like(x)))(x), x / 2)
    with pytest.raises(JaxRuntimeError, match="UNIMPLEMENTED: only F64, got F32"):
        jax.ffi.ffi_call("halves", jax.ShapeDtypeStruct((2,), F32))(jnp.ones(2))


@pytest.mark.parametrize("batch", [False, True])
def test_layouts(library, batch):
    x = jnp.arange(6.0).reshape(2, 3)
    call = jax.ffi.ffi_call("columns", like(x), input_layouts=[(1, 0)], output_layouts=(1, 0), vmap_method="sequential")
    want = np.asarray(x) + 100 * np.arange(2)[:, None] + np.arange(3)
    if batch:
        np.testing.assert_array_equal(jax.jit(jax.vmap(call))(jnp.stack([x, x + 1])), [want, want + 1])
    else:
        np.testing.assert_array_equal(call(x), want)
        np.testing.assert_array_equal(jax.jit(call)(x * 1), want)


def test_shared_memory(library):
    x = jnp.arange(3.0)
    call = jax.ffi.ffi_call("add_one", like(x), input_output_aliases={0: 0})
    for f in (call, jax.jit(call), jax.jit(call, donate_argnums=0)):
        y = x + 0
        np.testing.assert_array_equal(f(y), [1, 2, 3])
        if not y.is_deleted():
            np.testing.assert_array_equal(y, [0, 1, 2])


def test_plain_functions_and_futures(library):
    x = jnp.arange(3.0)
    call = jax.ffi.ffi_call("multiply_three", like(x), custom_call_api_version=1)
    np.testing.assert_array_equal(jax.jit(call)(x, x + 1), [0, 2, 6])
    assert float(jax.jit(jax.ffi.ffi_call("later", jax.ShapeDtypeStruct((), F32)))()) == 42


def test_a_primitive_that_is_a_foreign_function(library):
    from pullback.interpreters import mlir

    def inside(ctx, x, eps):
        return jax.ffi.ffi_lowering("normalize")(ctx, x, eps=np.float32(eps))

    for rule in (jax.ffi.ffi_lowering("normalize"), inside):
        p = jax.extend.core.Primitive("normalize_rows")
        p.def_abstract_eval(lambda x, eps: jax.core.ShapedArray(x.shape, x.dtype))
        mlir.register_lowering(p, rule, platform="cpu")
        np.testing.assert_allclose(jax.jit(lambda x, p=p: p.bind(x, eps=np.float32(1e-5)))(X), expected(X), rtol=1e-6)


@pytest.mark.parametrize(
    "error, text, call",
    [
        (JaxRuntimeError, "NOT_FOUND: No FFI handler registered for no", lambda: jax.ffi.ffi_call("no", like(X))(X)),
        (JaxRuntimeError, "NOT_FOUND.*version", lambda: jax.ffi.ffi_call("multiply_three", like(X))(X)),
        (JaxRuntimeError, "Wrong buffer dtype: expected F32 but got S32", lambda: normalize(jnp.arange(3))),
        (JaxRuntimeError, "x must have an axis", lambda: normalize(jnp.float32(1))),
        (JaxRuntimeError, "Wrong number of arguments", lambda: jax.ffi.ffi_call("add_one", like(X))(X, X)),
        (JaxRuntimeError, "rank: expected 2 but got 1", lambda: jax.ffi.ffi_call("columns", like(X))(X[0])),
        (ValueError, "has a 'shape' and a 'dtype'", lambda: jax.ffi.ffi_call("normalize", 3)),
        (ValueError, "vmap_method", lambda: normalize(X, vmap_method="fast")),
        (ValueError, "input_layouts has 2 entries for 1 arguments", lambda: normalize(X, input_layouts=[None, None])),
        (ValueError, "permutation", lambda: normalize(X, input_layouts=[(0, 0)])),
        (ValueError, "permutation", lambda: normalize(X, output_layouts=(0,))),
        (ValueError, "outside the range", lambda: normalize(X, input_output_aliases={0: 1})),
        (ValueError, "outside the range", lambda: normalize(X, input_output_aliases={1: 0})),
        (ValueError, "take no attributes", lambda: normalize(X, custom_call_api_version=1)),
        (ValueError, "legacy_backend_config", lambda: normalize(X, legacy_backend_config="")),
        (NotImplementedError, "custom_call_api_version", lambda: normalize(X, custom_call_api_version=2)),
        (TypeError, "not a valid JAX type", lambda: jax.ffi.ffi_call("normalize", like(X))([1.0])),
        (TypeError, "function of ctypes", lambda: jax.ffi.pycapsule("f")),
        (JaxRuntimeError, "must be a PyCapsule", lambda: jax.ffi.register_ffi_target("new", 3)),
        (JaxRuntimeError, "no stage", lambda: jax.ffi.register_ffi_target("new", {"begin": 3})),
        (JaxRuntimeError, "must provide an execute", lambda: jax.ffi.register_ffi_target("new", {})),
    ],
)  # fmt: skip
def test_errors(library, error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_names_stay(library):
    capsule = jax.ffi.pycapsule(library.AddOneHandler)
    jax.ffi.register_ffi_target("add_one", capsule)
    with pytest.raises(JaxRuntimeError, match="Duplicate FFI handler registration for add_one"):
        jax.ffi.register_ffi_target("add_one", jax.ffi.pycapsule(library.ColumnsHandler))
    jax.ffi.register_ffi_target("add_one", jax.ffi.pycapsule(library.ColumnsHandler), platform="CUDA")


def test_a_program_from_disk(library, tmp_path):
    """The second process finds the program compiled, and calls a function of its own."""
    program = """
        import ctypes, sys
        import pullback as jax, pullback.numpy as jnp, numpy as np
        library = ctypes.CDLL(sys.argv[1])
        jax.ffi.register_ffi_target("normalize", jax.ffi.pycapsule(library.NormalizeHandler))
        call = jax.ffi.ffi_call("normalize", jax.ShapeDtypeStruct((2,), jnp.float32))
        print(float(jax.jit(lambda x: call(x * 2, eps=np.float32(0)))(jnp.array([3.0, 4.0]))[0]))
    """
    environment = {**os.environ, "PULLBACK_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        run = [sys.executable, "-c", textwrap.dedent(program), library._name]
        out = subprocess.run(run, capture_output=True, text=True, env=environment, check=True).stdout
        np.testing.assert_allclose(float(out), 3 / np.sqrt(12.5), rtol=1e-6)
