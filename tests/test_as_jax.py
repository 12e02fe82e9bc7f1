"""`import jax` gives pullback; programs run under `python -m pullback run`; optax and chex work unmodified."""

import importlib.util
import subprocess
import sys
import textwrap

import pytest
from patience import PATIENCE

from pullback.__main__ import main


def python(code, *options, cwd=None):
    """What a fresh interpreter prints; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:pullback", *options, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=cwd,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def pullback(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "pullback", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )


def test_modules_are_the_same_objects():
    lines = python("""
        import sys
        import pullback
        pullback.install_as_jax()
        pullback.install_as_jax()
        import jax, jax.numpy as jnp, jax.random, jax.scipy.stats.norm, jaxlib, jaxlib.version
        from jax import lax, tree_util
        from jax.nn import initializers
        import pullback.nn.initializers
        print(jax is pullback, jnp is pullback.numpy, lax is pullback.lax, tree_util is pullback.tree_util)
        print(initializers is pullback.nn.initializers, jax.random is pullback.random)
        print(jax.__version__, jax.__version_info__, jaxlib.__version__, jaxlib.version.__version__)
        jax.image  # loaded when it is asked for
        assert sys.modules["jax.sharding"] is pullback.sharding and sys.modules["jax.image"] is pullback.image
        assert jax.version.__version_info__ == jax.__version_info__ and jax.version.__version__ == jax.__version__
        print(pullback.numpy.__spec__.name, pullback.installed_as_jax())
        # SciPy and scikit-learn see by its name whose a namespace is
        print(*(m.__name__ for m in (jax, jnp, jnp.linalg, jax.random, jax.image, jax.scipy.stats.norm)))
        """)
    assert lines[0] == "True True True True" and lines[1] == "True True"
    assert lines[2] == "0.10.2 (0, 10, 2) 0.10.2 0.10.2"
    assert lines[3] == "pullback.numpy True"
    names = "jax jax.numpy jax.numpy.linalg jax.random jax.image jax.scipy.stats.norm"
    assert lines[4] == names


def test_old_spellings():
    assert python("""
        import pullback
        pullback.install_as_jax()
        from jax.config import config
        from jaxlib.xla_extension import XlaRuntimeError
        from jax.tree_util import register_pytree_node_class
        import jax
        config.update("jax_enable_x64", True)
        print(config is jax.config, jax.config.jax_enable_x64, issubclass(XlaRuntimeError, RuntimeError))
        print(jax.tree_map(lambda x: x + 1, {"a": 1}))
        """) == ["True True True", "{'a': 2}"]


def test_what_is_not_there_says_so():
    (line,) = python("""
        import pullback
        pullback.install_as_jax()
        try:
            import jax.no_such_module
        except ModuleNotFoundError as error:
            print(error)
        """)
    assert line == "No module named 'jax.no_such_module': pullback stands in for jax, and has no module " + (
        "'pullback.no_such_module'")  # fmt: skip


def test_mistakes_are_explained_under_that_name():
    lines = python(
        """
        import pullback
        pullback.install_as_jax()
        import jax, jax.numpy as jnp
        for wrong in (lambda: jax.lax.custom_root({"a": 1}, 1.0, 2, 3), lambda: jnp.loadtxt):
            try:
                wrong()
            except (TypeError, AttributeError) as error:
                print(error)
        """
    )
    out = "\n".join(lines)
    assert "argument 'f' must be a function" in out and "write jax.numpy.asarray(numpy.loadtxt(...))" in out


def test_refuses_when_jax_was_imported(tmp_path):
    (tmp_path / "jax.py").write_text("")
    (line,) = python("""
        import jax
        import pullback
        try:
            pullback.install_as_jax()
        except RuntimeError as error:
            print(error)
        """, cwd=tmp_path)  # fmt: skip
    assert (
        line.startswith("install_as_jax: 'jax' has been imported already, from ") and "python -m pullback run" in line
    )


def test_installed_jax_is_not_used(tmp_path):
    (tmp_path / "jax.py").write_text("raise RuntimeError('the other jax')")
    assert python("""
        import pullback
        pullback.install_as_jax()
        import jax
        print(jax.__spec__.name)
        """, cwd=tmp_path) == ["pullback"]  # fmt: skip


def test_the_environment_is_read_when_jax_is_imported():
    """As JAX does it: programs set options in os.environ before they import it. An error names the variable."""
    assert python("""
        import os, sys
        import pullback
        pullback.install_as_jax()
        assert "jax" not in sys.modules and "jaxlib" not in sys.modules
        os.environ.update(JAX_ENABLE_X64="1", JAX_NUMPY_RANK_PROMOTION="raise")
        from jax.numpy import arange
        os.environ["JAX_ENABLE_X64"] = "0"
        import jax, jax.numpy
        print(arange(3.0).dtype, jax.config.jax_numpy_rank_promotion, jax.config.jax_enable_x64)
        assert {"jax.core", "jax.numpy", "jax.tree_util", "jaxlib"} <= set(sys.modules)
        """) == ["float64 raise True"]
    assert python("""
        import os
        import pullback
        pullback.install_as_jax()
        os.environ["JAX_ENABLE_X64"] = "perhaps"
        try:
            import jax
        except ValueError as error:
            print(error)
        """)[0].startswith("environment variable JAX_ENABLE_X64: ")


def test_run_a_file(tmp_path):
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "helper.py").write_text("import jax\nvalue = jax.numpy.arange(3)\n")
    (folder / "program.py").write_text(
        textwrap.dedent("""
        import os, pickle, sys
        os.environ["JAX_ENABLE_X64"] = "1"
        import jax, jax.numpy as jnp
        from helper import value
        class Thing: pass
        pickle.loads(pickle.dumps(Thing()))
        total = jax.jit(jnp.sum)(value)
        print(__name__, sys.argv[1:], value.dtype, total, sys.path[0].endswith("inner"), __file__[-10:])
        raise SystemExit(3)
        """)
    )
    done = pullback("run", folder / "program.py", "-x", "1", cwd=tmp_path)
    assert done.stdout == "__main__ ['-x', '1'] int64 3 True program.py\n" and done.returncode == 3, done.stderr


def test_run_a_module_and_code(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys, jax\nprint(__name__, sys.argv[1:], jax.__spec__.name, sys.argv[0][-10:])"
    )
    done = pullback("run", "-m", "program", "a", cwd=tmp_path)
    assert done.stdout == "__main__ ['a'] pullback program.py\n", done.stderr
    code = "import sys, jax; print(__name__, sys.argv, jax.__spec__.name)"
    done = pullback("run", "-", "b", input=code)
    assert done.stdout == "__main__ ['-', 'b'] pullback\n", done.stderr
    done = pullback("run", "-c", code, "b")
    assert done.stdout == "__main__ ['-c', 'b'] pullback\n", done.stderr


@pytest.mark.parametrize("arguments,status,message", [
    ([], 2, "no command is given"), (["walk"], 2, "no command 'walk'\n"), (["docto"], 2, "did you mean doctor?"),
    (["run"], 2, "no program is given"), (["run", "-m"], 2, "argument expected for the -m option"),
    (["run", "no_such_file.py"], 2, "can't open file"), (["doctor", "all"], 2, "takes no arguments, got all"),
    (["explain", "a", "b"], 2, "takes one name, got a b"), (["--help"], 0, "launch:"), (["tune", "-h"], 0, "measure"),
    (["explain", "leaked"], 2, "did you mean UnexpectedTracerError?"), (["launch", "a.py"], 2, "of processes, -n N,"),
    (["launch", "--help"], 0, "example: python -m pullback launch -n 4"),
    (["--version"], 0, "API of JAX"),
])  # fmt: skip
def test_command_line(arguments, status, message, capsys):
    assert main(arguments) == status
    text = capsys.readouterr()
    assert message in (text.err if status else text.out)


def test_errors_of_the_program_are_its_own(tmp_path):
    (tmp_path / "program.py").write_text("import jax\n1 / 0\n")
    done = pullback("run", tmp_path / "program.py")
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and "program.py" in done.stderr
    assert "runpy" not in done.stderr and "__main__.py" not in done.stderr
    done = pullback("run", "-m", "no_such_module", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr == "pullback run: No module named no_such_module\n"


OPTAX = """
    import pullback
    pullback.install_as_jax()
    import jax, jax.numpy as jnp, optax, chex
    def loss(p, x, y):
        return jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2)
    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (64, 8))
    y = jnp.sin(x.sum(1, keepdims=True))
    p = {"w": jax.random.normal(key, (8, 16)) * .3, "v": jax.random.normal(key, (16, 1)) * .3}
    chex.assert_shape(p["w"], (8, 16))
    for make in (optax.sgd(.1), optax.adam(1e-2), optax.radam(1e-2), optax.lamb(1e-2), optax.adafactor(1e-2),
                 optax.chain(optax.clip(.1), optax.radam(1e-2))):
        @jax.jit
        def step(p, state):
            value, slope = jax.value_and_grad(loss)(p, x, y)
            updates, state = make.update(slope, state, p)
            return optax.apply_updates(p, updates), state, value
        q, state = p, make.init(p)
        for _ in range(20):
            q, state, value = step(q, state)
        print(float(value))
    """
# The same program under JAX 0.10.2 and optax 0.2.8.
OPTAX_VALUES = [
    0.4488353133201599,
    0.557637095451355,
    1.6003895998,
    1.2133569717407227,
    1.2984592914581299,
    1.9057767391,
]


def test_optax_and_chex():
    for name in ("optax", "chex"):  # not imported here: they need a jax
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    values = [float(line) for line in python(OPTAX)]
    assert values == pytest.approx(OPTAX_VALUES, rel=1e-5)


def test_modules_that_programs_import():
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import jax, jax.image, jax.profiler, jax.monitoring, jax.dlpack, jax.custom_batching
        import jax.scipy.fft, jax.scipy.ndimage, jax.scipy.optimize, jax.scipy.interpolate, jax.scipy.integrate
        import jax.scipy.sparse.linalg, jax.scipy.cluster.vq, jax.scipy.spatial.transform
        from jax.experimental.ode import odeint
        from jax.experimental import disable_x64, enable_x64, io_callback
        with enable_x64():
            print(jax.numpy.ones(1).dtype)
            with disable_x64():
                print(jax.numpy.ones(1).dtype)
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import mosaic_gpu, tpu, triton
        assert (pl.cdiv(7, 2), pl.align_to(5, 4), pl.next_power_of_2(5)) == (4, 8, 8)
        assert pl.strides_from_shape((2, 3, 4)) == (12, 4, 1) and not isinstance(1, pl.BlockSpec)
        for use in (pl.pallas_call, pl.BlockSpec, triton.load, tpu.VMEM, mosaic_gpu.kernel):
            try:
                use(1)
            except NotImplementedError as error:
                print(error)
        """)
    assert lines[:2] == ["float64", "float32"] and len(lines) == 7
    assert lines[2].startswith("experimental.pallas.pallas_call: belongs to Pallas, whose kernels")


def test_private_modules_are_attributes():
    lines = python("""
        import pullback
        assert not hasattr(pullback, "_src")
        pullback.install_as_jax()
        import jax, jax._src.config, jax._src.lax
        from jax._src.tree_util import prefix_errors
        from jax._src.public_test_util import check_close
        assert not jax._src.xla_bridge.backends_are_initialized()
        from jax._src.lax import add, control_flow, lax
        import jax._src.lax.slicing as slicing
        same = lax.add_p is jax.lax.add_p and control_flow is slicing is jax.lax and add is lax.add
        same = same and jax._src.lax.scan_p is lax.scan_p
        print(jax._src.xla_bridge._backends, same, jax._src.config.config is jax.config)
        print(len(prefix_errors((1, 2), (1, 2, 3))), hasattr(jax._src, "no_such_module"))
        from jax._src import util, test_util, dispatch
        assert util.safe_map(int, ["1"]) == [1] and util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
        assert util.safe_zip([1], [2]) == [(1, 2)] and util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,))
        assert util.split_list([1, 2, 3], [1]) == [[1], [2, 3]] and test_util.device_under_test() == "cpu"
        assert jax._src.mesh.Mesh is jax.sharding.Mesh and jax._src.linear_util.wrap_init
        p = jax.extend.core.Primitive("twice")
        p.def_abstract_eval(lambda x: x)
        p.def_impl(__import__("functools").partial(dispatch.apply_primitive, p))
        jax.interpreters.mlir.register_lowering(p, jax.interpreters.mlir.lower_fun(lambda x: 2 * x, False))
        assert p.bind(3.0) == 6.0
        check_close({"a": jax.numpy.ones(3)}, {"a": 1 + 5e-7 * jax.numpy.ones(3)})
        check_close(1, 1)
        for x, y in ((1.0, 1.001), (1, 2), ((1,), [1]), (jax.numpy.ones(2), jax.numpy.ones(3))):
            try:
                check_close(x, y)
            except AssertionError:
                print("differs")
        from jax._src.tree_util import flatten_one_level
        from collections import namedtuple
        Point = namedtuple("Point", "x y")
        for tree in ((1, (2, 3)), {"b": [1], "a": 2}, None, Point([1], 2), 1):
            try:
                children, aux = flatten_one_level(tree)
                print(list(children), aux.__name__ if isinstance(aux, type) else aux)
            except ValueError as error:
                print(error)
        state = jax._src.distributed.global_state
        print(state.process_id, state.client, issubclass(jax.Array, jax.Array), issubclass(int, jax.Array))
        """)
    assert lines[:6] == ["{} True True", "1 False", *["differs"] * 4]
    assert lines[6:9] == ["[1, (2, 3)] None", "[2, [1]] ('a', 'b')", "[] None"]
    assert lines[9:11] == ["[[1], 2] Point", "can't tree-flatten type: <class 'int'>"]
    assert lines[11] == "0 None True False"


def test_names_that_interpreters_and_wrappers_of_libraries_need():
    """quax, gpjax, jaxadi, saiunit, orthax and jaxns import these; penzai and scico wrap what the classes and modules
    of arrays have."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import jax, jax.numpy as jnp
        from jax._src import core, literals, pjit, stages
        from jaxlib._jax import PjitFunction
        import jax._src.numpy.linalg, jax._src.numpy.lax_numpy as lax_numpy
        print(core.Trace.__name__, core.Jaxpr is jax.extend.core.Jaxpr, core.is_constant_dim(3), pjit.jit_p)
        print(literals.TypedInt(3, "int8"), literals.TypedInt(3, "int8") + 1, stages.Lowered.__name__)
        print(isinstance(jax.jit(abs), PjitFunction), isinstance(abs, PjitFunction))
        print([x.dtype.name for x in jax._src.numpy.util.promote_dtypes_inexact(jnp.arange(2), 1)])
        from jax._src.lib import xla_client
        assert xla_client.XlaRuntimeError is jax.errors.JaxRuntimeError
        assert jax._src.numpy.util.promote_dtypes_complex(jnp.arange(2), 1.0)[0].dtype == jnp.complex64
        print(lax_numpy.split is jnp.split, jax._src.numpy.linalg is jnp.linalg)
        print("pad" in vars(jnp), "linalg" in vars(jnp), jax.Array.all.__name__, hasattr(jax.Array, "__len__"))
        print({"T", "shape", "at", "dtype", "__add__", "__getitem__", "sum"} <= set(dir(jax.Array)))
        from jax._src.tree_util import _registry
        for tree in ((1, [2]), {"b": 1, "a": 2}, None, jax.tree_util.Partial(max, 1)):
            entry = _registry[type(tree)]
            children, aux = entry.to_iter(tree)
            assert entry.from_iter(aux, children) == tree or isinstance(tree, jax.tree_util.Partial)
        assert int not in _registry
        print(jax._src.sharding_impls.canonicalize_sharding(jax.typeof(jnp.ones(2)).sharding, "f"))
        """)
    assert lines == [
        "Interpreter True True jit", "TypedInt(3, dtype=int8) 4 Lowered", "True False", "['float32', 'float32']",
        "True True", "True True all False", "True", "None",
    ]  # fmt: skip


def test_arrays_are_jaxs_by_the_modules_of_their_classes():
    """autoray, and with it pennylane and quimb, finds the functions for an array by its class's module."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import pickle
        import jax, jax.numpy as jnp

        def noted(x):
            print(type(x).__module__.split(".")[0], end=" ")
            return x * 2

        x = noted(jnp.ones(2))
        jax.jit(noted)(x), jax.vmap(noted)(x), jax.grad(noted)(1.0)
        key = jax.random.key(0)
        print(type(key).__module__.split(".")[0])
        print(pickle.loads(pickle.dumps(type(x))) is type(x), pickle.loads(pickle.dumps(x)), type(key).__name__)
        shown = jnp.float32, jnp.bool_, jax.dtypes.prng_key, jax.errors.TracerBoolConversionError
        print(*(cls.__module__ for cls in shown), all(pickle.loads(pickle.dumps(cls)) is cls for cls in shown))
        """)
    assert lines[:2] == ["jaxlib jax jax jax jax", "True [2. 2.] PRNGKeyArray"]
    assert lines[2:] == ["jax.numpy jax.numpy jax.dtypes jax.errors True"]


def test_classes_of_arrays_have_jaxs_names():
    """sepes shows tracers by their type's name; annotations of arrays are pickled by module and name."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import pickle
        import jax, jax.numpy as jnp, jaxlib

        seen = [jax.Array, type(jnp.ones(2))]
        for transform in (jax.jit, jax.grad, jax.vmap):
            transform(lambda x: (seen.append(type(x)), x)[1])(jnp.ones(2) if transform is jax.vmap else 1.0)
        for cls in seen:
            print(f"{cls.__module__}.{cls.__qualname__}", pickle.loads(pickle.dumps(cls)) is cls)
        jax.jit(print)(1.0)
        """)
    assert lines == [
        "jax.Array True",
        "jaxlib._jax.ArrayImpl True",
        "jax._src.interpreters.partial_eval.DynamicJaxprTracer True",
        "jax._src.interpreters.ad.JVPTracer True",
        "jax._src.interpreters.batching.BatchTracer True",
        "JitTracer(~float32[])",
    ]


def test_names_that_keras_quaxed_unxt_bijx_qujax_esquilax_pennylane_and_jaxoplanet_import():
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import jax, jax.numpy as jnp
        import jax._src.nn.functions
        from jax._src import ad_checkpoint
        from jax._src.api import _dtype, jit
        from jax._src.dtypes import canonicalize_dtype
        from jax._src.interpreters.batching import is_vmappable
        from jax._src.numpy.array_methods import _IndexUpdateHelper, _IndexUpdateRef
        from jax._src.numpy.index_tricks import CClass, RClass
        from jax._src.numpy.ufuncs import ufunc
        import jax._src.numpy.vectorize as vectorize
        from jax.experimental.ode import api_util, ravel_first_arg
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
        from jax.flatten_util import ravel_pytree

        print(ad_checkpoint.checkpoint is jax.checkpoint, jit is jax.jit, _dtype(1.0), canonicalize_dtype(float))
        print(is_vmappable(jnp.ones(2)), isinstance(jnp.ones(2).at, _IndexUpdateHelper))
        print(isinstance(jnp.ones(2).at[0], _IndexUpdateRef), isinstance(jnp.c_, CClass), isinstance(jnp.r_, RClass))
        print(isinstance(jnp.add, ufunc))
        f, args, kwargs = vectorize._apply_excluded(lambda a, b, c: a + b * c, {1}, (1, 2, 3), {})
        inputs, outputs = vectorize._parse_gufunc_signature("(n),(n)->()")
        shape, sizes = vectorize._parse_input_dimensions((jnp.ones((4, 3)), jnp.ones(3)), inputs)
        checked = vectorize._check_output_dims(jnp.dot, sizes, outputs)
        print(args, f(*args), kwargs, inputs, shape, sizes, checked(jnp.ones(3), jnp.ones(3)))
        y, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
        about = api_util.debug_info("f", f, (), {})
        slope = ravel_first_arg(lambda y, t: jax.tree.map(lambda x: x * t, y), unravel, about)
        print(slope(y, 2.0))
        try:
            splash_attention_kernel.make_splash_mha(splash_attention_mask)
        except NotImplementedError as error:
            print("Pallas" in str(error))
        """)
    assert lines == [
        "True True float32 float32", "False True", "True True True", "True",
        "[1, 3] 7 {} [('n',), ('n',)] (4,) {'n': 3} 3.0", "[2. 2. 6.]", "True",
    ]  # fmt: skip


def test_programs_get_further_arguments_and_equations_a_context_while_libraries_trace():
    """brainstate makes arguments of the state that a function reads, hands on names of JAX's batching, and writes
    equations."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import jax, jax.numpy as jnp
        from jax._src.core import JaxprEqnContext, trace_ctx
        from jax._src.interpreters.batching import BatchTracer, make_iota, to_elt
        from jax._src import source_info_util
        from jax.interpreters import batching

        def f(x):
            aval = jax.core.ShapedArray((3,), jnp.float32)
            return x * trace_ctx.trace.new_arg(aval, source_info=source_info_util.current()).sum()

        program = jax.make_jaxpr(f)(2.0)
        print(len(program.jaxpr.invars), jax.core.eval_jaxpr(program.jaxpr, program.consts, 2.0, jnp.ones(3)))
        context = program.jaxpr.eqns[0].ctx
        with context.manager:
            print(isinstance(context, JaxprEqnContext), context.compute_type, BatchTracer is batching.BatchTracer)
        try:
            make_iota(3)
        except NotImplementedError as error:
            print(error)
        jax.vmap(lambda x: print(x.batch_dim, x.val), in_axes=1)(jnp.ones((1, 2)))

        from jax.extend import source_info_util as sources
        with jax.named_scope("a"):
            with sources.reset_name_stack():
                print(repr(str(sources.current_name_stack())))
            with sources.transform_name_stack("jvp"), sources.extend_name_stack("b") as stack:
                print(stack)
            with sources.user_context(None, name_stack=sources.new_name_stack("c")):
                print(sources.current_name_stack())
        print(sources.new_source_info().traceback)
        try:
            with sources.user_context(sources.SourceInfo("lines.py", 3, "f").traceback):
                raise KeyError("x")
        except KeyError as error:
            print(error.__notes__[0])
        """)
    assert lines[:2] == ["2 [Array(6., dtype=float32)]", "True None True"]
    assert "make_iota" in lines[2]
    assert lines[3:] == ["1 [[1. 1.]]", "''", "a/jvp(b)", "c", "None", "It is about what comes from lines.py:3 (f)."]


def test_private_modules_have_the_names_of_public_ones():
    """What is public in JAX is defined in private modules, where libraries look for it: genjax, folx, torchax,
    jax2onnx, jaxls, ejkernel, unxt, vbjax, qwix."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import jax, jax.numpy as jnp
        import jax._src.custom_batching, jax._src.debugging, jax._src.export.shape_poly, jax._src.ops
        from jax._src import ad_util, core, dtypes, lib, source_info_util, state, traceback_util, util
        from jax._src.custom_api_util import register_custom_decorator_type
        from jax._src.image.scale import ResizeMethod
        from jax._src.interpreters.batching import moveaxis
        from jax._src.lax.control_flow.loops import scan
        from jax._src.lax.linalg import lu_p, svd_p
        from jax._src.numpy.reductions import sum as total
        from jax._src.tree_util import DictKey
        from jax._src.numpy.util import check_arraylike

        print(DictKey is jax.tree_util.DictKey, scan is jax.lax.scan, total is jnp.sum, lu_p.name, svd_p.name)
        print(ResizeMethod is jax.image.ResizeMethod, moveaxis is jnp.moveaxis)
        print(jax._src.custom_batching is jax.custom_batching, jax._src.debugging is jax.debug)
        x = jnp.ones((2, 3))
        zero = ad_util.Zero(jax.typeof(x))
        print(ad_util.instantiate_zeros(zero).shape, jax.make_jaxpr(ad_util.add_any_p.bind)(x, x).eqns[0].primitive)
        print(core.canonicalize_shape([2, 3]), core.definitely_equal_shape((2, 3), (2, 3)), core.dimension_as_value(2))
        keys = jax.typeof(jax.random.split(jax.random.key(0), 3))
        print(core.physical_aval(keys), core.physical_aval(jax.typeof(x)))
        print(dtypes.dtype(1.0), dtypes.itemsize_bits(jnp.int4), isinstance(jax.jit(abs), lib._jax.PjitFunction))
        print(util.canonicalize_axis(-1, 3), isinstance(jax.typeof(jax.new_ref(x)), state.AbstractRef))
        one, same, other = (util.HashableFunction(lambda: k, k) for k in (1, 1, 2))
        print(one == same, hash(one) == hash(same), one == other, one.closure)
        for wrong in (lambda: util.canonicalize_axis(3, 3), lambda: check_arraylike("f", [1])):
            try:
                wrong()
            except (TypeError, ValueError) as error:
                print(type(error).__name__)

        def f(x):
            return x + 1

        frame = source_info_util.user_frame(jax.make_jaxpr(f)(1.0).eqns[0].source_info.traceback)
        print(frame.function_name, frame.start_line > 0)
        try:
            jnp.sum([1])
        except TypeError as error:
            print(traceback_util.filter_traceback(error.__traceback__).tb_next)
        try:
            core.no_such_name
        except AttributeError as error:
            print(error)
        """)
    assert lines == [
        "True True True lu svd", "True True", "True True", "(2, 3) add_any", "(2, 3) True 2",
        "uint32[3,2] float32[2,3]", "float32 4 True", "2 True", "True True False 1", "ValueError", "TypeError",
        "f True", "None", "module 'jax._src.core' has no attribute 'no_such_name' where pullback stands in for jax",
    ]  # fmt: skip


def test_names_of_mlir_can_be_imported_and_say_what_they_are():
    """JAX's page autodidax, and libraries with lowering rules of their own, import them at their head."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        from jax.extend.mlir import ir
        from jax.extend.mlir.dialects import func, stablehlo as hlo
        from jax._src import xla_bridge as xb
        from jax._src.lib.mlir.dialects import hlo as same
        from jax.interpreters import mlir
        from jaxlib.mlir import ir as other
        from jaxlib.mlir.ir import RankedTensorType

        print(ir is other, isinstance(1, RankedTensorType), len(xb.get_backend(None).local_devices()[:1]))
        for use in (ir.Context, lambda: hlo.add(1, 2), lambda: RankedTensorType.get([2]), lambda: func.func()):
            try:
                use()
            except NotImplementedError as error:
                print(error)
        print(hasattr(ir, "__wrapped__"))
        """)
    assert lines[0] == "True False 1" and lines[-1] == "False" and len(lines) == 6
    assert all("belongs to MLIR" in line for line in lines[1:-1])


def test_functions_on_lists_and_functions_of_private_modules():
    """What transformations and interpreters outside of JAX are written with."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import jax, jax.numpy as jnp
        from jax._src import util
        chosen = [True, False, True]
        print(util.partition_list(chosen, "abc"), util.merge_lists(chosen, "b", "ac"))
        print(util.concatenate([[1], [2, 3]]), util.unflatten([1, 2, 3], [1, 2]), util.subvals([1, 2, 3], [(0, 9)]))
        print(util.tuple_insert((1, 2), 1, 9), util.tuple_delete((1, 2), 0), util.tuple_update((1, 2), 1, 5))
        print(util.curry(max)(1)(2), util.ceil_of_ratio(7, 2), *util.stable_unique([2, 1, 2]))
        for wrong in (lambda: util.partition_list([True], [1, 2]), lambda: util.merge_lists([True, False], [1], [])):
            try:
                wrong()
            except AssertionError as error:
                print(error)

        def shown(f):
            return util.wraps(f, namestr="shown({fun})", docstr="Shows {fun}: {doc}")(lambda x: f(x))

        def twice(x):
            "2 x"
            return 2 * x

        print(shown(twice).__name__, shown(twice).__doc__, shown(twice)(4), shown(twice).__wrapped__ is twice)
        calls = []
        double = util.cache()(lambda x: calls.append(x) or 2 * x)
        double(1), double(1)
        with jax.enable_x64(True):
            double(1)
        weak = util.weakref_lru_cache(lambda f, x: calls.append(x) or f(x))
        print(weak(twice, 3), weak(twice, 3), calls, util.fun_name(util.HashablePartial(max, 1), "unnamed"))
        print(util.HashablePartial(twice, 1) == util.HashablePartial(twice, 1), util.HashablePartial(twice, 1)())
        """)
    assert lines == [
        "(['b'], ['a', 'c']) ['a', 'b', 'c']", "[1, 2, 3] [[1], [2, 3]] (9, 2, 3)", "(1, 9, 2) (2,) (1, 5)", "2 4 2 1",
        "partition_list: 1 choices for 2 elements", "merge_lists: 0 elements for 1 choices",
        "shown(twice) Shows twice: 2 x 8 True", "6 6 [1, 1, 3] unnamed", "True 2",
    ]  # fmt: skip


def test_meshes_effects_and_mutable_arrays_of_private_modules():
    """drjax, eformer, praxis and tunix ask for the mesh of the `with` statement, ott for what vmap takes objects by."""
    lines = python("""
        import pullback
        pullback.install_as_jax()
        import warnings
        import jax, jax.numpy as jnp
        import jax._src.interpreters.partial_eval
        from jax._src import compilation_cache, effects, mesh as mesh_lib, sharding_impls
        from jax._src.interpreters import batching, pxla as private
        from jax._src.lax.parallel import all_gather_invariant
        from jax._src.state import discharge, primitives
        from jax.interpreters import pxla

        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        assert private is pxla and pxla.thread_resources.env.physical_mesh.empty
        warnings.simplefilter("ignore", DeprecationWarning)  # of the next line
        with mesh:
            print(pxla.thread_resources.env.physical_mesh.axis_names, mesh_lib.get_concrete_mesh().empty)
        with jax.set_mesh(mesh):
            print(mesh_lib.thread_resources.env == mesh_lib.EMPTY_ENV, mesh_lib.get_concrete_mesh() == mesh)
        print(isinstance(jnp.ones(2).sharding, sharding_impls.GSPMDSharding))
        assert isinstance(compilation_cache.is_persistent_cache_enabled(), bool)
        gather = jax.shard_map(
            lambda x: all_gather_invariant(x, "x", tiled=True), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P()
        )
        print(gather(jnp.arange(2)), batching.is_vmappable(1))

        class Mark(effects.Effect):
            pass

        effects.control_flow_allowed_effects.add_type(Mark)
        known = effects.control_flow_allowed_effects
        print(known.contains(Mark()), len(known.filter_not_in([Mark(), effects.Effect()])), *effects.no_effects)

        def step(read, written, x):
            written[...] = written[...] + x
            return read[...] * x

        refs = jax.new_ref(jnp.ones(2)), jax.new_ref(jnp.zeros(2))
        closed = jax.make_jaxpr(step)(*refs, jnp.ones(2))
        values = discharge.discharge_state(closed)
        print(*jax.extend.core.jaxpr_as_fun(values)(jnp.full(2, 3.0), jnp.zeros(2), jnp.ones(2)))
        assert discharge.discharge_state(closed, should_discharge=False) is closed

        def double(refs):
            primitives.ref_set(refs[1], None, 2 * primitives.ref_get(refs[0]))
            primitives.ref_addupdate(refs[1], 0, 1.0)

        doubled = discharge.run_state(double)
        print(*doubled((jnp.ones(2), jnp.zeros(2))), *jax.jit(doubled)((jnp.ones(2), jnp.zeros(2))))
        """)
    assert lines == [
        "('x',) True", "True True", "False", "[0 1] False", "True 1", "[3. 3.] [3. 3.] [1. 1.]",
        "[1. 1.] [3. 2.] [1. 1.] [3. 2.]",
    ]  # fmt: skip
