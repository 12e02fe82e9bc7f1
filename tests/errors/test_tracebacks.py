"""What is left of the tracebacks of errors that pass through the API."""

import functools
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import textwrap
import traceback
import types

import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.jax_names.src import traceback_util

HERE = __file__


class mode:
    """A mode of filtering for a time."""

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        self.before = jax.config.jax_traceback_filtering
        jax.config.update("jax_traceback_filtering", self.value)

    def __exit__(self, *_):
        jax.config.update("jax_traceback_filtering", self.before)


@pytest.fixture(autouse=True)
def as_by_default():
    """The other tests see whole tracebacks."""
    with mode("auto"):
        yield


class Mine(Exception):
    pass


def fails(x):
    raise Mine("no")


def bad_shape(x):
    return x + jnp.ones(7)


def frames(call):
    with pytest.raises(Exception) as info:
        call()
    return [(f.name, f.filename) for f in traceback.extract_tb(info.value.__traceback__)], info.value


X = jnp.ones(3)
custom = jax.custom_jvp(lambda x: fails(x))
custom.defjvp(lambda p, t: (p[0], t[0]))
backwards = jax.custom_vjp(lambda x: x)
backwards.defvjp(lambda x: (x, x), lambda r, g: (fails(g),))

CALLS = {
    "jit": lambda f: jax.jit(f)(X),
    "grad": lambda f: jax.grad(lambda x: f(x).sum())(X),
    "value_and_grad": lambda f: jax.value_and_grad(lambda x: f(x).sum())(X),
    "vmap": lambda f: jax.vmap(f)(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "vjp": lambda f: jax.vjp(f, X),
    "linearize": lambda f: jax.linearize(f, X),
    "jacfwd": lambda f: jax.jacfwd(f)(X),
    "jacrev": lambda f: jax.jacrev(f)(X),
    "hessian": lambda f: jax.hessian(lambda x: f(x).sum())(X),
    "linear_transpose": lambda f: jax.linear_transpose(f, X)(X),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(X),
    "eval_shape": lambda f: jax.eval_shape(f, X),
    "checkpoint": lambda f: jax.checkpoint(f)(X),
    "lower": lambda f: jax.jit(f).lower(X),
    "trace": lambda f: jax.jit(f).trace(X),
    "pmap": lambda f: jax.pmap(f)(X[None]),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), X, X),
    "map": lambda f: lax.map(f, X),
    "while_loop": lambda f: lax.while_loop(lambda c: True, f, X),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, c: f(c), X),
    "cond": lambda f: lax.cond(True, f, lambda x: x, X),
    "switch": lambda f: lax.switch(0, [f, lambda x: x], X),
    "custom_jvp": lambda f: jax.custom_jvp(f)(X),
    "custom_vjp": lambda f: jax.custom_vjp(f)(X),
    "vectorize": lambda f: jnp.vectorize(f)(X),
    "apply_along_axis": lambda f: jnp.apply_along_axis(f, 0, X),
    "nested": lambda f: jax.jit(jax.vmap(jax.grad(lambda x: jax.jit(f)(x).sum())))(X[None]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("f", [fails, bad_shape])
def test_only_the_users_frames(name, f):
    if name in ("custom_jvp", "custom_vjp"):
        f = functools.wraps(f)(lambda x, f=f: f(x))  # without rules: the call fails all the same
    if name in ("map", "vectorize", "vmap", "apply_along_axis") and f is bad_shape:
        f = lambda x: jnp.ones((2, 3)) @ jnp.ones((2, 3))
    shown, error = frames(lambda: CALLS[name](f))
    assert {file for _, file in shown} == {HERE}, shown
    assert any("were left out" in note for note in error.__notes__)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.reshape(X, (2, 2)),
        lambda: jnp.dot(X, jnp.ones(4)),
        lambda: jnp.sum("a"),
        lambda: jax.random.gamma(3, 2.0),
        lambda: jax.nn.softmax(None),
        lambda: jax.grad(lambda x: x)(X),
        lambda: jax.vmap(lambda x: x, in_axes=3)(X),
        lambda: jax.vjp(lambda x: x, X)[1]("a"),
        lambda: jax.vjp(backwards, X)[1](X),
    ],
)
def test_mistakes_in_calls(call):
    shown, _ = frames(call)
    assert {file for _, file in shown} == {HERE}, shown


def test_a_cause_is_shown_without_our_frames():
    _, error = frames(lambda: jnp.sum("a"))
    while error is not None:
        assert {f.filename for f in traceback.extract_tb(error.__traceback__)} <= {HERE}
        error = error.__cause__


def test_all_frames():
    with mode("off"):
        shown, error = frames(lambda: jax.jit(fails)(X))
    assert len({file for _, file in shown}) > 1 and not hasattr(error, "__notes__")


def test_the_whole_as_the_cause():
    with mode("remove_frames"):
        shown, error = frames(lambda: jax.jit(fails)(X))
    assert {file for _, file in shown} == {HERE} and not hasattr(error, "__notes__")
    assert len(traceback.extract_tb(error.__cause__.__traceback__)) > 2
    assert error.__cause__.__traceback__ is not error.__traceback__


def test_frames_of_files_that_a_library_named():
    """Its own functions at the boundary shorten tracebacks, too."""
    namespace = {}
    exec(compile("def library(f, x):\n    return f(x)\n", "/library.py", "exec"), namespace)
    library = traceback_util.api_boundary(lambda f, x: namespace["library"](jax.jit(f), x))
    shown, _ = frames(lambda: library(fails, X))
    assert {file for _, file in shown} == {HERE, "/library.py"}
    traceback_util.register_exclusion("/library.py")
    try:
        shown, _ = frames(lambda: library(fails, X))
        assert {file for _, file in shown} == {HERE}
    finally:
        traceback_util._exclude_paths.remove("/library.py")


def test_frames_that_are_marked():
    with mode("tracebackhide"), pytest.raises(Mine) as info:
        jax.jit(fails)(X)
    at, marked = info.value.__traceback__, []
    while at is not None:
        ours = at.tb_frame.f_code.co_filename != HERE
        marked.append(ours == bool(at.tb_frame.f_locals.get("__tracebackhide__")))
        at = at.tb_next
    assert len(marked) > 2 and (all(marked) or sys.version_info < (3, 13))


def test_notebooks_show_the_users_line_last(monkeypatch):
    """IPython shows the last frame even where it is marked."""
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: object()))
    shown, _ = frames(lambda: jax.jit(lambda x: bad_shape(x))(X))
    assert shown[-1] == ("bad_shape", HERE) and {file for _, file in shown} == {HERE}


def test_what_is_printed():
    program = """
        import pullback as jax, pullback.numpy as jnp

        def f(x):
            return x + jnp.ones(4)

        jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.ones(3))
    """
    environment = {k: v for k, v in os.environ.items() if k != "JAX_TRACEBACK_FILTERING"}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.stderr.count("File ") == 3 and "site-packages" not in run.stderr and "pullback/" not in run.stderr
    assert "JAX_TRACEBACK_FILTERING=off" in run.stderr


@pytest.mark.parametrize(
    "call",
    [
        lambda: X + jnp.ones(2),
        lambda: [1, 2] @ X,
        lambda: X < [1],
        lambda: X[1, 2],
        lambda: X["a"],
        lambda: X.at[0].set(jnp.ones(2)),
        lambda: X.detach(),
        lambda: jnp.array(["a"]),
        lambda: jnp.asarray([1, [2]]),
        lambda: jnp.float32("a"),
        lambda: jnp.no_such_name,
        lambda: jax.no_such_name,
        lambda: jnp.linalg.inv(X),
        lambda: jnp.fft.fft(X, axis=3),
        lambda: jax.random.normal(3),
        lambda: jax.random.uniform(3),
        lambda: jax.random.bits(3),
        lambda: jax.random.randint(3, (), 0, 1),
        lambda: jax.random.split(3),
        lambda: jax.random.fold_in(3, 1),
        lambda: jax.devices("gpu"),
        lambda: jax.make_mesh((64,), ("x",)),
        lambda: jax.custom_vjp(3),
    ],
)
def test_eager_work_shows_the_users_lines_alone(call):
    found, _ = frames(call)
    assert {file for _, file in found} == {HERE}


def test_errors_carry_the_module_that_users_know():
    _, error = frames(lambda: jnp.sum("a"))
    assert type(error).__module__ == "pullback.errors" and type(pickle.loads(pickle.dumps(error))) is type(error)
    assert jax.errors.ArgumentError is type(error) and not hasattr(jax.errors, "NoSuchError")


def sum_of_size(x):
    return x / x.size(0)


def test_calls_of_what_is_an_attribute():
    """PyTorch's x.size(0): within a transformation a note says what is there."""
    _, error = frames(lambda: jax.jit(sum_of_size)(X))
    assert "not callable" in str(error)
    assert any("x.shape[axis]" in note for note in error.__notes__)


def test_causes_that_are_ours_are_not_shown():
    """The message says what they say. Those in the user's own lines stay."""
    _, error = frames(lambda: jnp.tile(X, 2.0))
    assert error.__cause__ is None and error.__suppress_context__

    def host(x):
        raise Mine("on the host")

    shown, error = frames(lambda: jax.jit(lambda x: jax.pure_callback(host, X, x))(X).block_until_ready())
    assert isinstance(error.__cause__, Mine)
    assert {file for _, file in shown} == {HERE}


OURS = os.path.dirname(jax.__file__) + os.sep


class Odd:
    """An argument that no function takes."""


# Public packages and modules whose functions users call. What they must not be asked: it waits for other processes or a
# person, or looks at everything there is.
PUBLIC = [
    "pullback",
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "lax",
    "lax.linalg",
    "random",
    "nn",
    "nn.initializers",
    "tree",
    "tree_util",
    "sharding",
    "export",
    "ffi",
    "ref",
    "experimental.sparse",
    "experimental.checkify",
    "experimental.ode",
    "experimental.jet",
    "experimental.multihost_utils",
    "experimental.mesh_utils",
    "experimental.pjit",
    "experimental.layout",
    "experimental.rnn",
    "experimental.serialize_executable",
    "profiler",
    "ops",
    "dtypes",
    "image",
    "scipy.special",
    "scipy.stats",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.fft",
    "scipy.interpolate",
    "scipy.integrate",
    "scipy.cluster.vq",
    "scipy.sparse.linalg",
    "debug",
    "flatten_util",
    "custom_batching",
    "custom_derivatives",
    "ad_checkpoint",
    "dlpack",
    "test_util",
    "example_libraries.optimizers",
    "example_libraries.stax",
    "extend.random",
    "extend.linear_util",
    "api_util",
]
NOT_ASKED = {"breakpoint", "print_environment_info", "report", "start_server", "live_arrays", "clear_caches"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", PUBLIC)
def test_public_functions_show_no_frames_of_ours(module, capsys):
    found = importlib.import_module("pullback" if module == "pullback" else f"pullback.{module}")
    wrong = {}
    for name in sorted(set(getattr(found, "__all__", None) or dir(found)) - NOT_ASKED):
        function = getattr(found, name)
        if name.startswith("_") or not callable(function) or isinstance(function, type):
            continue
        if not str(getattr(function, "__module__", "")).startswith(("pullback", "jax")):
            continue
        try:
            given = inspect.signature(function).parameters.values()
            needed = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in given)
        except ValueError:
            needed = 1
        for arguments in ([Odd()] * max(needed, 1), [{"a": 1, 2: 2}] * needed):
            try:
                function(*arguments)
            except Exception as error:
                shown = [f.filename for f in traceback.extract_tb(error.__traceback__)]
                if any(file.startswith(OURS) for file in shown):
                    wrong[name] = (repr(error)[:100], [file.removeprefix(OURS) for file in shown[1:]])
    assert not wrong


def of_arrays():
    return jnp.ones((2, 3))


def of_compiled_functions():
    return jax.jit(lambda x: 2.0 * x).lower(1.0).compile()


OBJECTS = {
    "array": of_arrays,
    "at": lambda: jnp.ones(3).at[0],
    "compiled": of_compiled_functions,
    "density": lambda: jax.scipy.stats.gaussian_kde(jnp.arange(5.0)),
    "device": lambda: jax.devices()[0],
    "jit": lambda: jax.jit(lambda x: 2.0 * x),
    "lowered": lambda: jax.jit(lambda x: 2.0 * x).lower(1.0),
    "mesh": lambda: jax.make_mesh((1,), ("a",)),
    "sharding": lambda: jax.NamedSharding(jax.make_mesh((1,), ("a",)), jax.P()),
    "traced": lambda: jax.jit(lambda x: 2.0 * x).trace(1.0),
    "ufunc": lambda: jnp.add,
}
# What libraries call, and what deletes the object.
NOT_OF_USERS = {"check", "delete", "input", "jaxpr", "live_buffers", "tree_flatten", "tree_unflatten"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OBJECTS)
def test_methods_show_no_frames_of_ours(name):
    made, wrong = OBJECTS[name](), {}
    for method in sorted({n for n in dir(made) if not n.startswith("_")} - NOT_OF_USERS):
        try:
            function = getattr(made, method)
        except AttributeError:  # of another platform, and why
            continue
        for arguments in ((Odd(),), (Odd(), Odd()), ({"a": 1, 2: 2},), ()):
            try:
                function(*arguments)
            except Exception as error:
                shown = [f.filename for f in traceback.extract_tb(error.__traceback__)]
                if any(file.startswith(OURS) for file in shown):
                    wrong[method] = shown
    assert not wrong
