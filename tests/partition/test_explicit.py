"""Types over meshes with explicit axes: what operations make of them is what JAX 0.10.2 says."""

import copy
import pickle
import re

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding, reshard
from pullback.sharding import PartitionSpec as P
from pullback.sharding._shardings import DuplicateSpecError
from pullback.util.errors import ShardingTypeError

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
A = np.arange(64, dtype=np.float32).reshape(8, 8)
T = np.arange(256, dtype=np.float32).reshape(4, 8, 8)


def rows(x):
    return lax.scan(lambda c, r: (c + r, c * r), x[:, 0], x.T)


RESULTS = {
    "elementwise": (lambda x, y: jnp.sin(x) * y + 1, (P("x"), P(None, "y")), "float32[8@x,8@y]"),
    "broadcast": (lambda x, v: x + v[0], (P("x", "y"), P(None, "y")), "float32[8@x,8@y]"),
    "choices that are broadcast": (lambda x, y: (jnp.where(x > 3, y[0], 0), jnp.where(x.sum(1)[:, None] > 3, 1, y)),
                                   (P("x", "y"), P(None, "y")), "float32[8@x,8@y] float32[8@x,8@y]"),
    "broadcast together": (lambda x, y: jnp.broadcast_arrays(x[:, :1], y[0], x.sum()), (P("x"), P(None, "y")),
                           "float32[8@x,8@y] float32[8@x,8@y] float32[8@x,8@y]"),
    "what is clamped": (lambda x, y: lax.clamp(x, y, x), (P("x", "y"), P("x")), "float32[8@x,8]"),
    "transpose": (lambda x: x.T, (P("x", "y"),), "float32[8@y,8@x]"),
    "reduce": (lambda x: (x.sum(0), x.sum(), x.max(1), jnp.argmax(x, 0)), (P("x", "y"),),
               "float32[8@y] float32[] float32[8@x] int32[8@y]"),
    "dot": (lambda x, y: x @ y, (P("x"), P(None, "y")), "float32[8@x,8@y]"),
    "dot of one side": (lambda x, y: x @ y, (P(None, "x"), P()), "float32[8,8]"),
    "split": (lambda x: x.reshape(4, 2, 8), (P("x"),), "float32[4@x,2,8]"),
    "merge": (lambda x: x.reshape(64), (P("x", "y"),), "float32[64@(x,y)]"),
    "slices": (lambda x: (x[2:6], x[:, 1:3], x[:, 0]), (P("x"),), "float32[4@x,8] float32[8@x,2] float32[8@x]"),
    "joining": (lambda x: (jnp.concatenate([x, x]), jnp.stack([x, x])), (P("x"),), "float32[16@x,8] float32[2,8@x,8]"),
    "ordering": (lambda x: (jnp.sort(x, 1), jnp.cumsum(x, 1)), (P("x"),), "float32[8@x,8] float32[8@x,8]"),
    "gather": (lambda x: (x[:, np.array([1, 2])], x[np.array([1, 2])]), (P("x", "y"),), None),
    "softmax": (lambda x: jax.nn.softmax(x), (P("x", "y"),), "float32[8@x,8@y]"),
    "scan": (rows, (P("x"),), "float32[8@x] float32[8,8@x]"),
    "gradient": (lambda x: jax.grad(lambda x: (jnp.sin(x) @ jnp.ones((8, 8))).sum())(x), (P("x"),), "float32[8@x,8]"),
    "gradients of a product": (lambda x, y: jax.grad(lambda x, y: jnp.sin(x @ y).sum(), (0, 1))(x, y),
                               (P("x"), P(None, "y")), "float32[8@x,8] float32[8,8@y]"),
    "gradient of what was broadcast": (lambda x, y: jax.grad(lambda y: ((x + y) ** 2).sum())(y), (P("x"), P()),
                                       "float32[8,8]"),
    "products along what is cut": (lambda x: (jnp.prod(x, 0), jnp.prod(x)), (P("x", "y"),), "float32[8@y] float32[]"),
    "bits": (lambda x: lax.bitcast_convert_type(x, jnp.uint16), (P("x"),), "uint16[8@x,8,2]"),
    "stack and scan": (lambda x: (jnp.stack([x, x], 1), lax.associative_scan(jnp.add, x, axis=1)), (P("x"),),
                       "float32[8@x,2,8] float32[8@x,8]"),
    "right-hand sides": (lambda x: jnp.linalg.solve(10 * jnp.eye(8) + A / 9, x), (P(None, "y"),), "float32[8,8@y]"),
    "extrema of windows": (lambda x: jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2),
                           "VALID").sum())(x), (P("x"),), "float32[8@x,8]"),
    "host": (lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((8, 8), np.float32), x), (P("x"),),
             "float32[8,8]"),
    "mapped, and cut": (lambda x: jax.vmap(lambda r: reshard(r, NamedSharding(MESH, P("y"))))(x), (P("x"),),
                        "float32[8@x,8@y]"),
    "not mapped": (lambda x: jax.vmap(lambda r: jnp.zeros(3))(x), (P("x"),), "float32[8@x,3]"),
    "random": (lambda x: jax.random.normal(jax.random.key(0), (8, 8)) + x, (P("x", "y"),), "float32[8@x,8@y]"),
    "mapped": (lambda x: jax.vmap(lambda r: r * 2)(x), (P("x", "y"),), "float32[8@x,8@y]"),
    "reshard": (lambda x: reshard(x, P("y")), (P("x"),), "float32[8@y,8]"),
    "filled like": (lambda x: (jnp.zeros_like(x), lax.full_like(x, 2)), (P("x"),), "float32[8@x,8] float32[8@x,8]"),
    "convolution": (lambda x: lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 3, 3)), (1, 1), "SAME"),
                    (P("x", "y"),), "float32[1,1,8@x,8@y]"),
    "all elements set": (lambda x, y: x.at[...].set(y), (P("x"), P()), "float32[8@x,8]"),
    "a user's reduction": (lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + 0 * b, (0,)), (P("x", "y"),),
                           "float32[8@y]"),
    "a user's solver": (lambda x: lax.custom_linear_solve(lambda v: 2 * v, x, lambda f, v: v / 2), (P("x", "y"),),
                        "float32[8@x,8@y]"),
    "gamma variables": (lambda x: jax.random.gamma(jax.random.key(0), x + 1), (P("x", "y"),), "float32[8,8]"),
    "told": (lambda x, y: jnp.dot(x, y, out_sharding=P("y")), (P(None, "x"), P("x")), "float32[8@y,8]"),
    "einsum told": (lambda x, y: jnp.einsum("ij,jk->ik", x, y, out_sharding=P(None, "y")), (P(None, "x"), P("x")),
                    "float32[8,8@y]"),
    "gather told": (lambda x: x.at[np.array([0, 1])].get(out_sharding=P(None, "y")), (P("x"),), "float32[2,8@y]"),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n, (_, _, want) in RESULTS.items() if want])
def test_types_of_results(name):
    f, specs, want = RESULTS[name]
    said = []

    def noted(*args):
        out = f(*args)
        said.append(" ".join(str(jax.typeof(v)) for v in jax.tree.leaves(out)))
        return out

    with jax.set_mesh(MESH):
        given = [jax.device_put(A, spec) for spec in specs]
        out = jax.jit(noted)(*given)
        assert said == [want]
        assert " ".join(str(jax.typeof(v)) for v in jax.tree.leaves(out)) == want  # arrays lie as their types say
    for got, whole in zip(jax.tree.leaves(out), jax.tree.leaves(jax.jit(f)(*[A] * len(specs)) if "told" not in name
                                                                and name != "reshard" else out)):  # fmt: skip
        np.testing.assert_allclose(got, whole, rtol=2e-5, atol=1e-4)


AMBIGUOUS = (
    (
        lambda x, y: x + y,
        (P("x"), P("y")),
        "add got incompatible shardings for broadcasting: ('x', None), ('y', None).",
    ),
    (lambda x, y: x + y, (P("x"), P(None, "x")), "produces an illegally sharded result: f32[8@x,8@x]"),
    (
        lambda x, y: x @ y,
        (P(None, "x"), P("x")),
        "cut along contracting dimensions, so that the layout of the result is ambiguous",
    ),
    (lambda x, y: x @ y, (P(None, "x"), P("y")), "contracting dimensions must be cut alike, but are by ('x',) in lhs"),
    (lambda x, y: jnp.einsum("bi,bi->b", x, y), (P("x"), P("y")), "batch dimensions must be cut alike"),
    (lambda x: x.reshape(64), (P(None, "x"),), "This reshape is not supported"),
    (lambda x: x.reshape(16, 4), (P("x"),), "This reshape is not supported"),
    (lambda x: x.at[0].set(1.0), (P("x"),), "dynamic_update_slice: the operand and 'update' must be cut"),
    (lambda x: jnp.sort(x, 0), (P("x"),), "sort: an operand is cut along dimension 0"),
    (lambda x: jnp.cumsum(x, 0), (P("x"),), "cut along axis 0, over which elements are accumulated"),
    (lambda x: x[np.array([1, 2])], (P("x"),), "say it by `.at[...].get(out_sharding=)`"),
    (lambda x: x.reshape(2, 4, 4, 2), (P("x"),), "This reshape is not supported"),  # two changes
    (lambda x: x.reshape(4, 2, 2, 4).reshape(4, 1, 16), (P("y"),), "This reshape is not supported"),
    (lambda x, y: jnp.concatenate([x, y], 1), (P("x"), P()), "concatenate: operands must be cut alike"),
    (lambda x, i: x[i[:, 0].astype(int) % 8], (P(), P("x")), "say it by `.at[...].get(out_sharding=)`"),
    (
        lambda x, k: lax.conv(x[None], k[None], (1,), "SAME"),
        (P(), P("x")),
        "conv_general_dilated: the layout of the result is clear only",
    ),
    (
        lambda x, k: lax.conv(x[None], k[None], (1,), "SAME"),
        (P("x"), P()),
        "conv_general_dilated: the layout of the result is clear only",
    ),
    (lambda x: lax.map(jnp.sin, x, batch_size=2), (P("x"),), "map: with 'batch_size', axis 0"),
    (lambda x: x[:3], (P("x"),), "where 3 elements cannot be cut into 2 equal parts"),
)


@pytest.mark.parametrize("number", range(len(AMBIGUOUS)))
def test_what_is_ambiguous(number):
    f, specs, text = AMBIGUOUS[number]
    with jax.set_mesh(MESH):
        given = [jax.device_put(A, spec) for spec in specs]
        for run in (jax.jit(f), f):
            with pytest.raises(ValueError if "batch_size" in text else ShardingTypeError, match=re.escape(text)):
                run(*given)


def test_types_of_ambiguous_operands_are_a_note():
    with jax.set_mesh(MESH), pytest.raises(ShardingTypeError) as raised:
        jax.device_put(A, P(None, "x")) @ jax.device_put(A, P("x"))
    assert str(raised.value).endswith("rhs_contracting_spec=('x',)")
    assert any("The operands are f32[" in note for note in raised.value.__notes__)


def test_rows_of_what_lies_on_a_mesh_are_on_one_device():
    with jax.set_mesh(MESH):
        rows = list(jax.device_put(A, P("x")))
    np.testing.assert_array_equal(rows, A)
    assert not rows[1].committed and len(rows[1].devices()) == 1


def test_shapes_of_results_say_where_they_lie():
    with jax.set_mesh(MESH):
        cut, whole = jax.eval_shape(lambda x: (x, x.sum()), jax.device_put(A, P("x")))
        assert cut.sharding.spec == P("x", None) and whole.sharding.spec == P()
    assert jax.eval_shape(lambda x: x, A).sharding is None


def test_carries_and_branches_keep_their_types():
    with jax.set_mesh(MESH):
        x = jax.device_put(A, P("x"))
        with pytest.raises(TypeError, match="shardings"):
            jax.jit(lambda x: lax.scan(lambda c, _: (reshard(c, P("y")), None), x, None, length=2))(x)
        with pytest.raises(TypeError, match="equal output types"):
            jax.jit(lambda x: lax.cond(True, lambda x: x, lambda x: reshard(x, P("y")), x))(x)
        with pytest.raises(AssertionError, match="acts as an assert"):
            jax.jit(lambda x: lax.with_sharding_constraint(x, P("y")))(x)


def test_rows_of_a_loop_are_whole():
    def sums(x, c):
        return lax.scan(lambda c, row: (c + row, None), c, x)[0]

    with jax.set_mesh(MESH):
        columns, rows = (jax.device_put(A, spec) for spec in (P(None, "y"), P("x")))
        got = jax.jit(sums)(columns, jax.device_put(A[0], P("y")))
        assert got.sharding.spec == P("y")
        np.testing.assert_array_equal(got, A.sum(0) + A[0])
        with pytest.raises(ValueError, match="'xs' must not be cut over the mesh along axis 0"):
            jax.jit(sums)(rows, A[0])
        with pytest.raises(TypeError, match="shardings do not match"):
            jax.jit(sums)(columns, A[0])
        with pytest.raises(ValueError, match="out_sharding"):
            jnp.repeat(rows, 2, 0)
        assert jax.typeof(jnp.repeat(columns, 2, 0)).sharding.spec == P(None, "y")


def test_programs_as_text_and_shapes():
    with jax.set_mesh(MESH):
        x = jax.device_put(A, P("x", "y"))
        assert str(jax.make_jaxpr(lambda x: x * 2)(x)) == (
            "{ lambda ; a:f32[8@x,8@y]. let b:f32[8@x,8@y] = mul a 2.0:f32[] in (b,) }"
        )
        assert str(jax.make_jaxpr(lambda x: reshard(x, P("y")))(x)) == (
            "{ lambda ; a:f32[8@x,8@y]. let b:f32[8@y,8] = reshard a in (b,) }"
        )
        struct = jax.ShapeDtypeStruct((8, 8), np.float32, sharding=NamedSharding(MESH, P("x", "y")))
        assert jax.eval_shape(lambda x: x.T, struct).sharding.spec == P("y", "x")
        assert jax.shard_map(lambda x: 2 * x, out_specs=P("x", "y"))(x).tolist() == (2 * A).tolist()


def test_auto_axes_inside():
    with jax.set_mesh(MESH):
        x = jax.device_put(A, P(None, "x"))

        seen = []

        @jax.sharding.auto_axes
        def flat(x):
            seen.append(str(jax.typeof(x)))
            return x.reshape(64)

        for run in (flat, lambda x, out_sharding: jax.jit(lambda x: flat(x, out_sharding=out_sharding))(x)):
            got = run(x, out_sharding=P("x"))
            assert got.sharding.spec == P("x") and got.tolist() == A.ravel().tolist()
        half = jax.sharding.auto_axes(lambda x: (seen.append(str(jax.typeof(x))), x)[1], axes="x", out_sharding=P("y"))
        half(jax.device_put(A, P("x", "y")))
        jax.jit(half)(jax.device_put(A, P("x", "y")))
        assert seen == ["float32[8,8]"] * 2 + ["float32[8,8@y]"] * 2


def test_what_meshes_and_shards_say():
    assert str(MESH.abstract_mesh).endswith("Explicit), device_kind=cpu, num_cores=None, platform=cpu)")
    assert str(MESH.abstract_mesh.update(axis_types=None)) == str(MESH.abstract_mesh)
    plain = jax.sharding.AbstractMesh((2, 2), ("x", "y"), MESH.axis_types)
    assert plain == MESH.abstract_mesh and str(plain).endswith("Explicit))")
    shard = jax.device_put(np.arange(4.0, dtype=np.float32), NamedSharding(MESH, P("x"))).addressable_shards[0]
    assert str(shard).endswith("index=(slice(0, 2, None),), replica_id=0, data=[0. 1.])")


def test_one_layout_for_a_tree_of_arrays():
    with jax.set_mesh(MESH):
        for layout in (P("x", None), NamedSharding(MESH, P("x", None))):
            found = reshard([jnp.arange(8.0), jnp.ones((2, 2))], layout)
            assert [str(jax.typeof(x)) for x in found] == ["float32[8@x]", "float32[2@x,2]"]
        with pytest.raises(ValueError, match="rank"):
            reshard(jnp.arange(8.0), P(None, "x"))


def test_equal_meshes_are_one_object():
    again = jax.sharding.Mesh(MESH.devices, MESH.axis_names, MESH.axis_types)
    assert again is MESH and copy.deepcopy(MESH) is MESH and pickle.loads(pickle.dumps(MESH)) is MESH
    assert MESH.update(axis_types=(jax.sharding.AxisType.Auto,) * len(MESH.axis_names)) is not MESH


def test_parts_of_an_array_have_one_dtype():
    layout, devices = NamedSharding(MESH, P()), list(MESH.devices.flat)
    parts = [jax.device_put(np.zeros(2, np.float32), d) for d in devices[1:]]
    with pytest.raises(ValueError, match=r"must have matching dtypes\. Got float32 at .*, and int32"):
        odd = jax.device_put(np.zeros(2, np.int32), devices[0])
        jax.make_array_from_single_device_arrays((2,), layout, [odd, *parts])


def test_parts_of_keys_are_keys():
    n = MESH.devices.size
    keys = jax.device_put(jax.random.split(jax.random.key(0), n), NamedSharding(MESH, P(MESH.axis_names)))
    for shards in (keys.addressable_shards, keys.global_shards):
        assert [s.data.shape for s in shards] == [(1,)] * n and {s.data.dtype for s in shards} == {keys.dtype}
        found = np.concatenate([jax.random.key_data(s.data) for s in shards])
        assert (found == np.asarray(jax.random.key_data(keys))).all()


def test_types_of_mapped_dimensions():
    """Functions that are compiled, loops and derivatives inside of vmap know how the mapped dimension is cut."""
    inner = jax.jit(lambda r: jnp.sin(r) @ r)
    functions = {
        "call": inner,
        "derivative": jax.grad(lambda r: inner(r).sum()),
        "loop": lambda r: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), r),
        "scan": lambda r: lax.scan(lambda c, q: (c + q, c * q), jnp.zeros(8), r)[1],
        "branches": lambda r: lax.cond(r.sum() > 0, jnp.sin, jnp.cos, r),
        "checkpoint": jax.checkpoint(jnp.sin),
        "solve": lambda r: jnp.linalg.solve(r + jnp.eye(8), r),
        "nested": jax.vmap(jax.jit(lambda v: jnp.sin(v) * v)),
    }
    x = jax.device_put(T, NamedSharding(MESH, P("x")))
    for name, f in functions.items():
        seen = []

        def run(x, f=f, seen=seen):
            seen.append(jax.typeof(jax.vmap(f)(x)).str_short(True))
            return jax.vmap(f)(x)

        got = jax.jit(run)(x)
        assert seen == ["f32[4@x,8,8]"], (name, seen)
        np.testing.assert_allclose(got, jax.jit(jax.vmap(f))(T), rtol=1e-3, atol=1e-3)
    along = jax.device_put(T, NamedSharding(MESH, P(None, "x")))
    with pytest.raises(ValueError, match="mapped axes of arguments must be cut alike"):
        jax.jit(jax.vmap(jnp.add))(x, along)
    with pytest.raises(ValueError, match=r"in_axes None is .*, cut along the mesh axis over which"):
        jax.jit(jax.vmap(jnp.add, in_axes=(0, None)))(x, x)
    assert jax.jit(lambda x: jax.vmap(jax.jit(jnp.sin))(x))(along).sharding.spec == P(None, "x", None)


def test_eager_transformations_show_types():
    """Values of a derivative or of vmap have the types that they have under jit."""
    seen = []

    @jax.custom_vjp
    def f(x):
        return x * 2

    def backward(x, bar):
        seen.append((str(jax.typeof(x)), str(jax.typeof(bar))))
        return (bar,)

    f.defvjp(lambda x: (f(x), x), backward)
    x = jax.device_put(A, NamedSharding(MESH, P("x", "y")))
    with jax.set_mesh(MESH):
        jax.grad(lambda x: f(x).sum())(x)
    jax.vmap(lambda r: seen.append(str(jax.typeof(r))) or r, in_axes=1)(x)
    assert seen == [("float32[8@x,8@y]",) * 2, "float32[8@x]"]
    with pytest.raises(DuplicateSpecError):
        jax.vmap(lambda r: reshard(r, NamedSharding(MESH, P("x"))))(x)
    with pytest.raises(ValueError, match="spmd_axis_name='y' contradicts"):
        jax.vmap(jnp.sin, spmd_axis_name="y")(x)
    with jax.set_mesh(MESH), pytest.raises(ValueError, match="UNCONSTRAINED"):
        reshard(x, P(P.UNCONSTRAINED))


def test_types_of_keys():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 4), NamedSharding(MESH, P("x")))
    assert jax.typeof(keys).str_short() == "key<fry>[4@x]"
    seen = []
    for f in (lambda k: k, jax.vmap(jax.random.split), jax.vmap(jax.random.uniform), jax.random.key_data):

        def run(k, f=f):
            seen.append((jax.typeof(k).str_short(True), jax.typeof(f(k)).sharding.spec[0]))
            return f(k)

        got = jax.jit(run)(keys)
        assert got.sharding.spec[0] == "x" and seen.pop() == ("key<fry>[4@x]", "x")


def test_arrays_that_are_filled_on_a_device_have_a_strong_type():
    place = jax.devices()[0]
    assert not jnp.full((2,), 1, device=place).weak_type and jnp.full((2,), 1).weak_type
    assert not jax.lax.full((2,), 1.0, sharding=jax.sharding.SingleDeviceSharding(place)).weak_type


def test_constraints_are_for_auto_axes():
    x = jnp.arange(8.0).reshape(4, 2)
    cut, constrained = jax.device_put(x, NamedSharding(MESH, P("x"))), lax.with_sharding_constraint
    for call in (constrained, lambda *args: jax.jit(constrained, static_argnums=1)(*args)):
        with pytest.raises(ValueError, match="for Auto axes alone"):
            call(cut, NamedSharding(MESH, P("x")))
        with jax.set_mesh(MESH):
            assert call(cut, P("x")).sharding.is_equivalent_to(cut.sharding, 2)
            for given, spec in ((cut, P("y")), (cut, P()), (x, P("x"))):
                with pytest.raises(AssertionError, match="acts as an assert"):
                    call(given, spec)


def test_cases_of_a_choice_are_cut_the_same_way():
    x = jnp.arange(8.0).reshape(4, 2)
    a, b = (jax.device_put(x, NamedSharding(MESH, P(*spec))) for spec in (("x", "y"), (None, "y")))
    with pytest.raises(ShardingTypeError, match="select cases must have the same shardings"):
        jnp.where(a > 0, a, b)
    with pytest.raises(ShardingTypeError, match="select `which`"):
        lax.select_n(b > 0, a, a)
    assert jnp.where(a > 0, a, 0).sharding.spec == P("x", "y")


def test_products_bits_and_scans_along_other_axes():
    x = jnp.arange(16.0).reshape(8, 2)
    with jax.set_mesh(MESH):
        cut, rows = jax.device_put(x, P("x", "y")), jax.device_put(x, P("x"))
        for run in (lambda f: f, jax.jit):
            assert run(lambda x: jnp.prod(x, 1))(cut).sharding.spec == P("x")
            assert run(lambda x: lax.bitcast_convert_type(x, jnp.int16))(cut).sharding.spec == P("x", "y", None)
            sums = run(lambda x: lax.associative_scan(jnp.add, x, axis=1))(rows)
            assert sums.sharding.spec == P("x", None) and sums.tolist() == np.cumsum(x, 1).tolist()
            moved = run(lambda x: lax.dynamic_update_slice(x, lax.slice(x, (0, 0), (4, 2)), (0, 0)))(cut)
            assert moved.sharding.spec == P("x", "y") and moved.tolist() == x.tolist()


def test_the_first_array_on_explicit_axes_is_known(monkeypatch):
    """Types are asked from the first such array on: the first gradient of a process lay otherwise than the others."""
    from pullback.core import avals

    monkeypatch.setattr(avals, "any_typed", False)
    monkeypatch.setattr(avals, "any_placed", False)
    mesh = jax.make_mesh((4,), ("first",), axis_types=(AxisType.Explicit,))
    x = jax.device_put(A, NamedSharding(mesh, P("first")))
    y, pull = jax.vjp(lambda x: x * x, x)
    assert pull(y)[0].sharding.spec == P("first", None)
    assert pull(A)[0].sharding.spec == P("first", None)


def test_arrays_without_elements_are_cut_as_others():
    x = jax.device_put(np.zeros((0, 8), np.float32), NamedSharding(MESH, P("x", "y")))
    with jax.set_mesh(MESH):
        found = jax.jit(lambda x: (jnp.sin(x), x.sum(0), x.T))(x)
    assert [str(jax.typeof(y)) for y in found] == ["float32[0@x,8@y]", "float32[8@y]", "float32[8@y,0@x]"]


def test_tridiagonal_systems():
    band = [jax.device_put(np.full((4, 6), n, np.float32), NamedSharding(MESH, P("x", None))) for n in (1, 4, 1)]
    right = jax.device_put(np.ones((4, 6, 2), np.float32), NamedSharding(MESH, P("x", None, None)))
    with jax.set_mesh(MESH):
        found = jax.jit(lax.linalg.tridiagonal_solve)(*band, right)
    assert str(jax.typeof(found)) == "float32[4@x,6,2]"
    np.testing.assert_allclose(found, lax.linalg.tridiagonal_solve(*map(np.asarray, (*band, right))), rtol=1e-6)


def test_axes_that_no_type_names_are_found():
    """Where some axes of a mesh are explicit: types say nothing of the others, and results are cut along them, too."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    with jax.set_mesh(mesh):
        x = jax.device_put(A, NamedSharding(mesh, P("x", "y")))
        found = jax.jit(lambda x: jnp.sin(x) * 2)(x)
        turned = jax.jit(lambda x: x.T)(x)
    eager = [y.sharding.spec for y in (x * 2, x.T, x.sum(0), x.sum(1), x[:, None])]
    assert eager == [P("x", "y"), P("y", "x"), P("y"), P("x"), P("x", None, "y")]
    assert str(jax.typeof(x)) == "float32[8@x,8]" and found.sharding.spec == P("x", "y")
    assert str(jax.typeof(turned)) == "float32[8,8@x]" and turned.sharding.spec == P("y", "x")
    np.testing.assert_allclose(found, np.sin(A) * 2, rtol=1e-6)


def test_collectives_over_manual_axes_keep_explicit_ones():
    x = jax.device_put(A, NamedSharding(MESH, P("x", "y")))
    turn = [(0, 1), (1, 0)]
    rows = A.reshape(2, -1, A.shape[1])
    cases = [
        (lambda v: lax.psum(v, "x"), P(None, None), P(None, "y"), rows.sum(0)),
        (lambda v: lax.ppermute(v, "x", turn), P("x", None), P("x", "y"), rows[::-1].reshape(A.shape)),
        (lambda v: lax.all_gather(v, "x", tiled=True), P("x", None), P("x", "y"), np.concatenate([A, A])),
        (
            lambda v: lax.all_gather(v, "x", axis=2),
            P("x", None),
            P("x", "y", None),
            np.tile(rows.transpose(1, 2, 0), (2, 1, 1)),
        ),
    ]
    with jax.set_mesh(MESH):
        for f, out, spec, want in cases:
            mapped = jax.shard_map(f, in_specs=P("x", None), out_specs=out, axis_names={"x"})
            found = jax.jit(mapped)(x)
            assert found.sharding.spec == spec
            np.testing.assert_allclose(found, want, rtol=1e-6)
        bar = jax.jit(
            jax.grad(
                lambda x: jax.shard_map(cases[0][0], in_specs=P("x", None), out_specs=P(None, None), axis_names={"x"})(
                    x * x
                ).sum()
            )
        )(x)
    assert bar.sharding.spec == P("x", "y")
    np.testing.assert_allclose(bar, 2 * A, rtol=1e-6)


def test_explicit_axes_inside():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    types = []
    double = jax.sharding.explicit_axes(lambda x: (types.append(str(jax.typeof(x))), 2 * x)[1], in_sharding=P("x"))
    with jax.set_mesh(mesh):
        for f in (double, jax.jit(double)):
            found = f(A)
            assert (
                found.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
                and str(jax.typeof(found)) == "float32[8,8]"
            )
            np.testing.assert_array_equal(found, 2 * A)
        assert double(A).sharding.spec == P("x")  # types alone say how every dimension lies
    assert set(types) == {"float32[8@x,8]"}


def test_lowered_programs_say_on_which_devices_results_lie():
    x = jax.device_put(A, NamedSharding(MESH, P("x", "y")))
    f = jax.jit(lambda x: x.T)
    assert f.trace(x).out_info.sharding == NamedSharding(MESH.abstract_mesh, P("y", "x"))
    assert f.lower(x).out_info.sharding == f.lower(x).compile().out_info.sharding == NamedSharding(MESH, P("y", "x"))


WITHOUT_DEVICES = {
    "zeros": lambda s: jnp.zeros((8, 8), out_sharding=s),
    "iota": lambda s: lax.broadcasted_iota(jnp.int32, (8, 8), 1, out_sharding=s),
    "random": lambda s: jax.random.normal(jax.random.key(0), (8, 8), out_sharding=s),
    "product": lambda s: jnp.matmul(A, A, out_sharding=s),
    "reshard": lambda s: reshard(jnp.ones((8, 8)), s),
}


def test_results_lie_over_the_mesh_of_their_types():
    sizes = MESH.devices.size
    line = jax.sharding.AbstractMesh((sizes,), ("line",), (AxisType.Explicit,))

    @jax.jit
    def f(x):
        with jax.sharding.use_abstract_mesh(line):
            return 2 * reshard(x, P("line", None))

    with jax.set_mesh(MESH):
        x = jax.device_put(np.arange(2.0 * sizes, dtype=np.float32).reshape(sizes, 2), P("x"))
        for _ in range(2):
            y = f(x)
            assert y.sharding.mesh.axis_names == ("line",) and y.sharding.spec == P("line", None)
            assert [s.data.shape for s in y.addressable_shards] == [(1, 2)] * sizes
        np.testing.assert_array_equal(y, 2 * np.asarray(x))


@pytest.mark.parametrize("name", WITHOUT_DEVICES)
def test_types_over_meshes_without_devices(name):
    abstract = MESH.abstract_mesh
    said = NamedSharding(abstract, P("x", None))
    with jax.sharding.use_abstract_mesh(abstract):
        assert jax.eval_shape(lambda: WITHOUT_DEVICES[name](P("x"))).sharding == said
    assert jax.eval_shape(lambda: jnp.zeros((8, 8), out_sharding=said)).sharding == said


def test_arrays_say_how_explicit_axes_cut_them():
    x = jax.device_put(A, NamedSharding(MESH, P("x", "y")))
    assert x.aval is jax.typeof(x) and x.aval.sharding.spec == P("x", "y") and str(x.aval) == "float32[8@x,8@y]"
    assert str(jax.device_put(A, jax.devices()[1]).aval) == "float32[8,8]"


def test_meshes_of_values_and_in_force_agree():
    own = jax.make_mesh((2, 2), ("row", "column"))  # no other test asks for explicit_axes of it
    x = jax.device_put(A, NamedSharding(own, P("row", "column")))
    automatic = own.update(axis_types=(jax.sharding.AxisType.Auto,) * 2)
    other = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
    for mesh in (automatic, other):
        with jax.set_mesh(mesh), pytest.raises(ValueError, match=r"context mesh .*should match the"):
            jax.jit(lambda x: x + 1)(x)
    with pytest.raises(ValueError, match="Mesh for all inputs should"):
        x + jax.device_put(A, NamedSharding(other, P("x")))


def test_whole_values_are_cut_where_no_mesh_is_in_force():
    x = jax.device_put(A, NamedSharding(MESH, P(None, "y")))
    ones = jnp.ones(8)

    @jax.jit
    def loops(x):
        carry, rows = jax.lax.scan(lambda c, row: (c + row, row), ones, x)
        back, _ = jax.lax.scan(lambda c, row: (ones, row), x[0], x)
        grown = jax.lax.while_loop(lambda c: c.sum() < 1e4, lambda c: c + x[1], ones)
        chosen = jax.lax.cond(x.sum() > 0, lambda: ones, lambda: x[0])
        return carry, rows, back, grown, chosen

    carry, rows, back, grown, chosen = loops(x)
    assert [str(jax.typeof(v)) for v in (carry, rows, back, grown, chosen)] == [
        *("float32[8@y]", "float32[8,8@y]", "float32[8@y]", "float32[8@y]", "float32[8@y]")
    ]
    assert carry.tolist() == (1 + A.sum(0)).tolist() and chosen.tolist() == [1] * 8 == back.tolist()
    with jax.set_mesh(MESH), pytest.raises(TypeError, match="shardings do not match"):
        loops(x)


def test_tiles_without_a_mesh_in_force():
    x = jax.device_put(A, NamedSharding(MESH, P("x", None)))
    both = jax.device_put(A, NamedSharding(MESH, P("x", "y")))
    repeated = [jnp.repeat(both, 3, axis) for axis in (0, 1, None)]
    assert [str(jax.typeof(y)) for y in repeated] == ["float32[24@x,8@y]", "float32[8@x,24@y]", "float32[192@(x,y)]"]
    np.testing.assert_array_equal(repeated[0], np.repeat(A, 3, 0))
    for wrong in (lambda: jnp.repeat(both, 0, 0), lambda: jnp.repeat(both, 2, 0, total_repeat_length=16)):
        with pytest.raises(ValueError, match=r"repeat: axis 0 is divided .*'out_sharding'"):
            wrong()
    assert [str(jax.typeof(jnp.tile(x, n))) for n in (2, (3, 1, 1))] == ["float32[8@x,16]", "float32[3,8@x,8]"]


def test_results_of_partly_manual_functions_lie_as_their_types_say():
    x = jax.device_put(A, NamedSharding(MESH, P("x", "y")))
    same = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=MESH, in_specs=P("y"), out_specs=P("y"), axis_names={"y"}))
    y = same(x)
    assert jax.eval_shape(same, x).sharding.spec == y.sharding.spec == P(("y", "x"), None)
    assert y.tolist() == (2 * A).tolist() and (y + 1).sharding == y.sharding


def test_hints_along_other_axes_keep_what_types_say():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = jax.device_put(A, NamedSharding(mesh, P("x")))
    with jax.set_mesh(mesh):
        hinted = jax.jit(lambda x: lax.with_sharding_constraint(x, P(None, "y")))
        y = hinted(x)
        program = jax.make_jaxpr(jax.vmap(lambda x: lax.with_sharding_constraint(x, P("y"))))(x)
    assert y.sharding.spec == P("x", "y") and str(jax.typeof(y)) == "float32[8@x,8]" and y.tolist() == A.tolist()
    params = program.eqns[0].params
    assert params["sharding"].spec == P(P.UNCONSTRAINED, "y") and params["unconstrained_dims"] == {0}
    assert params["layout"] is None and params["context_mesh"] == mesh.abstract_mesh


def test_what_is_told_is_an_equation_only_where_types_do_not_say_it():
    x, y = (jax.device_put(a, NamedSharding(MESH, s)) for a, s in ((A, P("x", "y")), (A, P("y"))))
    with jax.set_mesh(MESH):
        told = [
            str(jax.make_jaxpr(lambda x, y, s=s: jnp.dot(x, y, out_sharding=s))(x, y)) for s in (P("x", None), P("y"))
        ]
        moved = jax.make_jaxpr(lambda x: reshard(x, P("y")))(x).eqns[0]
        given = jax.jit(lambda x: 2 * x, out_shardings=P("y"))(x)
    assert ["reshard" in text for text in told] == [False, True]
    assert moved.primitive.name == "reshard" and moved.params["dst_sharding"].spec == P("y", None)
    assert given.sharding.spec == P("y") and given.tolist() == (2 * A).tolist()  # as written
    assert x.aval.str_short(True, mesh_axis_types=True) == "f32[8@x,8@y]({Explicit: ('x', 'y')})"


def test_a_slice_that_is_put_into_an_array_is_cut_as_this_is():
    x, whole, part = (jax.device_put(A, NamedSharding(MESH, s)) for s in (P("x"), P(), P("x")))
    with jax.set_mesh(MESH):
        for update in (whole, whole[:, :2], jnp.asarray(A)):
            for run in (lax.dynamic_update_slice, jax.jit(lax.dynamic_update_slice)):
                with pytest.raises(ShardingTypeError, match="the operand and 'update' must be cut over the mesh"):
                    run(x, update, (0, 0))
        assert lax.dynamic_update_slice(x, 2 * part, (0, 0)).tolist() == (2 * A).tolist()
        assert jax.jit(lambda x: x.at[:, 0].set(1.0))(x)[:, 0].tolist() == [1] * 8  # NumPy's way takes what is whole
        back = jax.grad(lambda x: lax.dynamic_update_slice(x, 2 * x[:, :2], (0, 3)).sum())(x)
    assert str(jax.typeof(back)) == "float32[8@x,8]"


def test_smap_takes_axes_from_types():
    x = jax.device_put(A, NamedSharding(MESH, P("y", "x")))
    with jax.set_mesh(MESH):
        for run in (lambda f: f, jax.jit):
            y = run(jax.smap(lambda x: 2 * x + x.shape[1], out_axes=1, axis_name="x"))(x)
            assert y.shape == (8, 8) and y.tolist() == (2 * A + 4).tolist()
            assert set(y.sharding.spec) == {"x", "y"}
    mixed = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    with jax.set_mesh(mixed), pytest.raises(TypeError, match="'in_specs' was not given"):
        jax.smap(lambda x: x, out_axes=0, axis_name="y")(A)


def test_types_of_results_say_where_they_lie_over_abstract_meshes():
    x = jax.ShapeDtypeStruct((8, 8), np.float32)
    with jax.set_mesh(MESH):
        made = jax.eval_shape(lambda x: jnp.zeros((8, 8), out_sharding=P("x")), x)
    assert made.sharding == NamedSharding(MESH.abstract_mesh, P("x", None))
    auto = NamedSharding(jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2), P("x"))
    assert jax.eval_shape(lambda x: lax.with_sharding_constraint(x, auto), x).sharding is None
    with jax.set_mesh(MESH), pytest.raises(ShardingTypeError, match="incompatible shardings for broadcasting"):
        jnp.broadcast_arrays(*[jax.device_put(A, NamedSharding(MESH, P(axis))) for axis in "xy"], 1)


def test_operands_on_meshes_whose_axes_are_of_other_types_do_not_go_together():
    mixed = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x, y = (jax.device_put(A, NamedSharding(mesh, P("x"))) for mesh in (MESH, mixed))
    for function in (jnp.add, jnp.matmul):
        for given in ((x, y), (y, x)):
            with pytest.raises(ValueError, match="Mesh for all inputs should"):
                jax.jit(function)(*given)
    np.testing.assert_array_equal(jax.device_put(y, x.sharding) + x, A + A)


def test_in_shardings_of_arguments_without_a_type():
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    with jax.set_mesh(MESH):
        f = jax.jit(lambda v: v * 2, in_shardings=P("x"))
        assert str(jax.typeof(f(x))) == "float32[4,2]" and f(x).tolist() == (2 * x).tolist()
        assert str(jax.typeof(f(jax.device_put(x, P("x"))))) == "float32[4@x,2]"


def test_nothing_is_open_where_no_axis_is_auto():
    with pytest.raises(ValueError, match="leaves a dimension to the compiler"):
        NamedSharding(MESH, P(P.UNCONSTRAINED))
    x = jax.device_put(jnp.arange(8.0).reshape(4, 2), NamedSharding(MESH, P("x", "y")))
    with jax.set_mesh(MESH):
        f = jax.jit(jax.shard_map(lambda v: v * 2, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))
        y = f(x)
        assert y.sharding.spec == P("x", "y") and y.tolist() == (2 * x).tolist()
