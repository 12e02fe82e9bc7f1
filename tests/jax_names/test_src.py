"""Names of JAX's private modules, with what libraries do with them."""

import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest
from patience import PATIENCE

import pullback as pb
import pullback.numpy as jnp
from pullback.jax_names.src import ELSEWHERE, dispatch, krylov, linalg, mlir, scale, types


def private(name):
    return importlib.import_module(ELSEWHERE.get(name, f"pullback.jax_names.src.{name}"))


def test_dispatch_waits_forgets_and_compiles():
    """brainpy clears what is pending, gpax empties a cache."""
    dispatch.runtime_tokens.block_until_ready()
    dispatch.runtime_tokens.clear()
    compiled = dispatch.xla_primitive_callable(pb.lax.sin_p)
    assert compiled is dispatch.xla_primitive_callable(pb.lax.sin_p)
    np.testing.assert_array_equal(compiled(jnp.ones(2)), jnp.sin(jnp.ones(2)))
    dispatch.xla_primitive_callable.cache_clear()


def test_operands_are_checked_and_promoted():
    """As JAX's functions have it, whose private helpers forks of them import; evermore annotates with the aliases."""
    util, kinds = private("numpy.util"), private("typing")
    row, table = jnp.ones(3), jnp.ones((2, 3), "int32")
    assert [(x.shape, x.dtype) for x in util.promote_args("f", row, table)] == [
        ((1, 3), "float32"),
        ((2, 3), "float32"),
    ]
    assert [(x.shape, x.dtype) for x in util.promote_args_inexact("f", 1, table)] == [
        ((), "float32"),
        ((2, 3), "float32"),
    ]
    assert util.promote_args_numeric("f", True, jnp.ones(2, bool))[1].dtype == jnp.int32
    assert util.promote_args_complex("f", 1, 2.0)[0].dtype == jnp.complex64
    with pytest.raises(TypeError, match="f requires ndarray or scalar arguments"):
        util.promote_args("f", [1])
    with pb.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank promotion"):
        util.promote_args("f", row, table)
    assert util.Shape is kinds.Shape is private("random").Shape and private("random").RealArray is kinds.ArrayLike


def test_modules_have_the_names_that_they_are_imported_by():
    """quax asks for the one of the threefry generator."""
    lines = subprocess.run(
        [sys.executable, "-c", "import pullback; pullback.install_as_jax(); "
         "import jax._src.random.threefry2x32 as t; print(t.__name__)"],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert lines.stdout.split() == ["jax._src.random.threefry2x32"]


def test_names_of_modules_that_have_more_than_the_public_ones():
    assert types.DType is np.dtype and types.ArrayLike is pb.typing.ArrayLike
    assert scale.resize is pb.image.resize and scale._kernels[pb.image.ResizeMethod.LANCZOS3][0] == 3
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(scale._resize(x, (2,), "linear", True, None), pb.image.resize(x, (2,), "linear"))
    results = private("numpy.setops")
    assert isinstance(jnp.unique_all(jnp.ones(2)), results._UniqueAllResult) and results.union1d is jnp.union1d
    assert private("ad_checkpoint").remat_p is pb.extend.core.primitives.remat_p
    assert private("ad_checkpoint").checkpoint is pb.checkpoint
    with pytest.raises(AttributeError, match=r"jax\._src\.linalg"):
        _ = linalg.no_such_name


def test_keys_are_taken_apart():
    keys = pb.random.split(pb.random.key(3), 2)
    prng = private("random.prng")
    assert isinstance(keys, prng.PRNGKeyArray) and isinstance(keys.dtype, prng.KeyTy)
    words = prng.random_unwrap(keys)
    np.testing.assert_array_equal(words, pb.random.key_data(keys))
    assert prng.random_wrap(words, impl=prng.prngs["threefry2x32"]).dtype == keys.dtype
    names = [eqn.primitive for eqn in pb.make_jaxpr(pb.random.split)(pb.random.key(0)).eqns]
    assert prng.random_split_p in names
    files = importlib.import_module("pullback.jax_names.src.random")
    assert files.prng is prng and files.threefry2x32 is private("random.threefry2x32")
    assert files.normal is pb.random.normal


def test_rules_are_written_with_functions_of_arrays():
    """pyscfad's rules put NaN where a routine has failed."""
    p = pb.extend.core.Primitive("halved_or_nan")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        (aval,) = ctx.avals_in
        ok = mlir.compare_hlo(x[:, 0], mlir.full_like_aval(ctx, 0, pb.core.ShapedArray((2,), np.float32)), "GE")
        return [linalg._broadcasting_select_hlo(ctx, ok, None, x / 2, aval, linalg._nan_like_hlo(ctx, aval), aval)]

    pb.interpreters.mlir.register_lowering(p, rule)
    out = pb.jit(p.bind)(jnp.array([[1.0, -2], [-1, 2]]))
    np.testing.assert_array_equal(out, [[0.5, -1], [np.nan, np.nan]])
    z = jnp.array([[1, 2j], [0, 3]])
    np.testing.assert_array_equal(linalg.symmetrize(z), [[1, 1j], [-1j, 3]])


@pytest.mark.parametrize("method", ["_gmres_batched", "_gmres_incremental"])
def test_parts_of_gmres(method):
    """pyscfad solves with limits of its own."""
    matrix = jnp.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]])
    b = {"x": jnp.array([1.0, 2, 3])}
    start = {"x": jnp.zeros(3)}

    def apply(v):
        return {"x": matrix @ v["x"]}

    x = krylov._gmres_solve(apply, b, start, 0, 1e-5, 3, 10, krylov._identity, getattr(krylov, method))
    np.testing.assert_allclose(matrix @ x["x"], b["x"], atol=1e-5)  # the limit
    assert krylov._norm({"a": jnp.array([3.0]), "b": jnp.array(4j)}) == 5
    np.testing.assert_array_equal(krylov._normalize_matvec(matrix)(b["x"]), matrix @ b["x"])
    with pytest.raises(TypeError):
        krylov._normalize_matvec(3)


def test_names_of_meshes_and_shardings():
    mesh, pjit, shardings = private("mesh"), private("pjit"), private("sharding_impls")
    auto, explicit = pb.sharding.AxisType.Auto, pb.sharding.AxisType.Explicit
    assert mesh.all_axis_types_match((auto, auto), auto) and not mesh.all_axis_types_match((), auto)
    assert mesh.any_axis_types_match((auto, explicit), explicit)
    assert shardings.make_mesh is pb.make_mesh and pjit.UNSPECIFIED is private("named_sharding").UNSPECIFIED
    assert private("dispatch").device_put_p is pb.lax.device_put_p and private("partition_spec").P is pb.P


def test_jacobians_are_made_of_parts():
    """desc-opt and adv-jax-math write Jacobians in batches."""
    api = private("api")
    given = {"a": np.arange(2.0, dtype=np.float32), "b": np.float32(3)}
    f = lambda t: {"y": t["a"] * t["b"], "z": t["b"] ** 2}
    basis = api._std_basis(given)
    assert basis["a"].shape == (3, 2) and basis["b"].shape == (3,)
    y, columns = pb.vmap(lambda t: pb.jvp(f, (given,), (t,)), out_axes=(None, -1))(basis)
    want = pb.jacfwd(f)(given)
    pb.tree.map(
        np.testing.assert_array_equal, pb.tree.map(lambda y, c: api._jacfwd_unravel(given, y, c), y, columns), want
    )
    y, pull = pb.vjp(f, given)
    (rows,) = pb.vmap(pull)(api._std_basis(y))
    found = pb.tree.map(lambda x, r: api._jacrev_unravel(y, x, r), given, rows)
    pb.tree.map(np.testing.assert_array_equal, {k: {n: found[n][k] for n in given} for k in y}, want)
    mixed = api._std_basis([np.ones(1, np.int32), np.ones(1, np.complex64)])
    assert [str(b.dtype) for b in mixed] == ["int32", "complex64"]


def test_types_that_have_no_jacobians():
    api = private("api")
    api._check_input_dtype_jacfwd(False, np.float32(1))
    api._check_input_dtype_jacrev(False, True, np.int32(1))
    api._check_output_dtype_jacfwd(False, np.float32(1))
    for refused in (
        lambda: api._check_input_dtype_jacfwd(False, np.int32(1)),
        lambda: api._check_input_dtype_jacrev(True, False, np.float32(1)),
        lambda: api._check_output_dtype_jacrev(False, np.complex64(1)),
    ):
        with pytest.raises(TypeError):
            refused()


def test_arguments_are_fixed_and_cut_into_batches():
    api_util, loops = private("api_util"), private("lax.control_flow.loops")
    f, given = api_util.argnums_partial2(lambda a, b, c, k: (a, b, c, k), (0, -1), (1, 2, 3), {"k": 4})
    assert given == (1, 3) and f(5, 6) == (5, 2, 6, 4)
    assert api_util._ensure_index([1, 2]) == (1, 2) and api_util._ensure_index(np.int32(3)) == 3
    with pytest.raises(TypeError):
        api_util.check_callable(3)
    for length, size, shapes in ((5, 2, [(2, 2), (1,)]), (4, 2, [(2, 2), None]), (1, 2, [None, (1,)])):
        parts = loops._batch_and_remainder({"a": np.ones(length)}, size)
        assert [None if part is None else part["a"].shape for part in parts] == shapes
    assert loops.scan is pb.lax.scan


def test_constants_of_the_type_of_an_example():
    """jet-array writes its rules with them."""
    file = private("lax.lax")
    assert private("lax").lax is file and file.add_p is pb.lax.add_p
    constant = file._const(jnp.ones(2, jnp.bfloat16), 2)
    assert constant.dtype == jnp.bfloat16 and constant == 2 and constant.shape == ()
    assert file._const(3, 2.5) == 2 and type(file._const(1.0, 2)) is float
    assert pb.make_jaxpr(lambda x: x * file._const(x, 2))(np.float32(1)).out_avals[0].dtype == np.float32


PLACES = {
    "ad_util": "SymbolicZero",
    "buffer_callback": "Buffer buffer_callback",
    "callback": "io_callback io_callback_p pure_callback pure_callback_p",
    "checkify": "DivisionByZeroError FailedCheckError JaxRuntimeError NaNError OOBError check_p checkify init_error",
    "compute_on": "compute_on",
    "core": "ConcretizationTypeError Ref empty_ref free_ref freeze new_ref",
    "custom_partitioning_sharding_rule": "ArrayMapping BATCHING CompoundFactor SdyShardingRule",
    "dtypes": "int2 int4 lattice_result_type promote_types uint2 uint4",
    "export._export": "Exported default_export_platform export",
    "mesh": "AbstractDevice",
    "numpy.ufunc_api": "frompyfunc ufunc",
    "pjit": "with_layout_constraint",
    "shard_alike": "shard_alike",
    "sharding_impls": "make_single_device_sharding",
    "tree_util": "broadcast_prefix equality_errors",
    "typing": "ExtendedDType",
    "xla_bridge": "device_count host_id local_devices process_count process_index",
    "xla_metadata": "set_xla_metadata",
}


@pytest.mark.parametrize("where", PLACES)
def test_what_is_public_is_where_jax_defines_it(where):
    for name in PLACES[where].split():
        found = getattr(private(where), name)
        assert found is not None and not inspect.ismodule(found)


def test_namespaces_of_lax_and_numpy_are_whole_where_they_stand_for_jax():
    """Libraries wrap what `vars(jax.lax)` has."""
    code = (
        "import pullback; pullback.install_as_jax(); import jax\n"
        "print([n for m in (jax.lax, jax.numpy) for n in dir(m) if n not in vars(m)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert ran.stdout == "[]\n"


def test_types_generators_and_operands_are_asked_by_their_private_names():
    names, samplers, operands = (private(name) for name in ("dtypes", "random", "numpy.util"))
    assert names.default_float_dtype() == np.float32
    assert [names.is_weakly_typed(x) for x in (1, True, np.ones(1), jnp.asarray(1))] == [True, False, False, True]
    assert samplers.default_prng_impl().name == "threefry2x32" and samplers.resolve_prng_impl("rbg").name == "rbg"
    one, two = operands.ensure_arraylike("f", 1, np.ones(2))
    assert one.aval.weak_type and isinstance(two, pb.Array) and operands.ensure_arraylike("f", 1.0) == 1
    with pytest.raises(TypeError):
        operands.ensure_arraylike("f", "a")


def test_casts_and_axes_are_asked_by_their_private_names():
    safe, frame = private("dtypes").safe_to_cast, private("core").axis_frame
    values = ("int8", "float32", int, 1.0, 1j, jnp.asarray(1.0), np.ones(2, "bfloat16"))
    found = [
        "".join(str(int(safe(value, to))) for to in (bool, "int8", int, "bfloat16", float, complex)) for value in values
    ]
    assert found == ["011111", "000011", "011111", "000111", "000001", "000111", "000111"]
    assert pb.vmap(lambda x: x * frame("i"), axis_name="i")(jnp.ones(3)).tolist() == [3, 3, 3]
    for name in ("q", ("i", "j")):
        with pytest.raises(NameError, match="unbound axis name"):
            frame(name)


def test_small_functions_on_sizes_lists_and_types():
    core, util, types = (private(name) for name in ("core", "util", "dtypes"))
    assert [core.stride_dim(*sizes) for sizes in ((10, 3, 2), (2, 3, 1), (0, 1, 1))] == [4, 0, 0]
    assert [core.dilate_dim(3, 2), core.dilate_dim(0, 2)] == [5, 0] and core.is_empty_shape((2, 0))
    aval = core.ShapedArray((2,), np.dtype("float32"))
    assert core.typematch(aval, aval.update(weak_type=True)) and not core.typecompat(aval, aval.update(shape=(3,)))
    assert core.to_concrete_value(1.0) == 1.0 and pb.jit(lambda x: x * (core.to_concrete_value(x) is None))(2) == 2
    with pytest.raises(TypeError):
        core.canonicalize_dim(2.0)
    assert util.canonicalize_axis_tuple((0, -1), 3) == (0, 2) and util.canonicalize_axis_tuple(None, 2) == (0, 1)
    assert util.split_list_checked([1, 2, 3], [1, 2]) == [[1], [2, 3]] and util.wrap_name("jit", "f") == "jit(f)"
    assert util.subs_list([0, None], [5], [1, 2]) == [5, 2] and util.fun_qual_name(pb.Array.sum).endswith(".sum")
    for call in (lambda: util.canonicalize_axis_tuple((0, -3), 3), lambda: util.safe_zip([1], [1, 2])):
        with pytest.raises(ValueError):
            call()
    for call in (util.safe_zip, lambda: util.foreach(print)):
        with pytest.raises(TypeError):
            call()
    assert [types.default_int_dtype(), types.default_uint_dtype(), types.default_complex_dtype()] == [
        np.int32, np.uint32, np.complex64,
    ]  # fmt: skip
    assert types.scalar_type_to_dtype(int) == np.int32 and types.short_dtype_name(np.dtype("float32")) == "f32"
    assert types.check_and_canonicalize_user_dtype(float) == np.float32
    with pytest.raises(OverflowError):
        types.scalar_type_to_dtype(int, 2**40)
    with pytest.raises(ValueError):
        types.check_and_canonicalize_user_dtype(None)
