"""Where arrays say that they lie, on four devices (conftest.py); what is expected is what JAX 0.10.2 says."""

import pickle

import numpy as np
import pytest
from api.placed import CUT, GRID, MESH, ON1, ON2, STRUCT, WHOLE, XS, YS, D, X, Y, on

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental.pjit import pjit
from pullback.sharding import (
    AbstractMesh,
    AxisType,
    DuplicateSpecError,
    IndivisibleError,
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
)
from pullback.sharding import PartitionSpec as P

INCOMPATIBLE = "Received incompatible devices for jitted computation"


def test_arrays_carry_their_sharding():
    assert XS.sharding == CUT == XS.device and XS.committed and XS.devices() == set(D)
    assert XS.is_fully_addressable and not XS.is_fully_replicated and jax.device_put(X, WHOLE).is_fully_replicated
    shards = XS.addressable_shards
    assert [(s.device, s.index, s.replica_id, s.data.tolist()) for s in shards] == [
        (D[k], (slice(2 * k, 2 * k + 2),), 0, [2.0 * k, 2.0 * k + 1]) for k in range(4)
    ]
    assert [s.data.sharding for s in shards] == [SingleDeviceSharding(d) for d in D] and shards[0].data.committed
    rows = jax.device_put(Y, on("X", mesh=GRID)).global_shards
    assert [(s.index[0].start, s.replica_id) for s in rows] == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert XS.addressable_data(3).tolist() == [6, 7] and XS.tolist() == X.tolist()
    with pytest.raises(IndexError):
        XS.addressable_data(7)
    assert not X.committed and X.sharding == SingleDeviceSharding(D[0]) and len(X.addressable_shards) == 1
    copied = pickle.loads(pickle.dumps(XS))
    assert not copied.committed and copied.tolist() == X.tolist()
    key = jax.device_put(jax.random.key(0), D[1])
    assert key.devices() == {D[1]} == jax.random.uniform(key, (3,)).devices()
    assert jax.device_put(jax.device_put(XS, D[2])).devices() == {D[2]}


def test_device_put():
    a, b = jax.device_put([X, Y], [D[1], CUT])
    assert a.devices() == {D[1]} and b.sharding == CUT
    a, b = jax.device_put([X, Y], [None, D[1]])
    assert not a.committed and b.devices() == {D[1]}
    assert all(v.sharding == CUT for v in jax.device_put({"a": X, "b": (Y,)}, CUT)["b"])
    for wrong in ("cpu", 0, 1.5, MESH, jnp.float32):
        with pytest.raises(ValueError, match="device_put device must be a Device"):
            jax.device_put(X, wrong)
    with pytest.raises(ValueError, match="tree prefix"):
        jax.device_put([X, Y], [D[1]])
    with pytest.raises(ValueError, match="rank at least 2"):
        jax.device_put(X, on(None, "X"))
    with pytest.raises(ValueError, match="rank at least 1"):
        jax.device_put(1.0, CUT)
    with pytest.raises(IndivisibleError, match=r"cuts axis 0 into 4 parts, .*its size is 7"):
        jax.device_put(jnp.arange(7.0), CUT)
    with pytest.raises(ValueError, match="meant over the mesh in force"):
        jax.device_put(X, P("X"))
    with pytest.raises(ValueError, match="needs a mesh with devices"):
        jax.device_put(X, NamedSharding(MESH.abstract_mesh, P("X")))
    with jax.set_mesh(MESH):
        assert jax.device_put([X, Y], P("X"))[1].sharding == CUT
        with pytest.raises(ValueError, match="not found in mesh"):
            jax.device_put(X, P("Z"))
    there = jax.device_put(X, D[0])
    assert there.unsafe_buffer_pointer() == X.unsafe_buffer_pointer()
    copy = jax.device_put(X, D[0], may_alias=False)
    assert copy.unsafe_buffer_pointer() != X.unsafe_buffer_pointer() and copy.tolist() == X.tolist()
    with pytest.raises(ValueError, match="so may_alias cannot be True"):
        jax.device_put(X, D[0], may_alias=True, donate=True)
    with pytest.raises(ValueError, match="must be a bool"):
        jax.device_put(X, D[0], donate="x")
    jax.device_put(X, D[1], donate=True)
    assert not X.is_deleted()


def test_device_put_of_traced_values():
    assert jax.jit(lambda a: jax.device_put(a, CUT) * 2)(X).sharding == CUT
    assert jax.vmap(lambda a: jax.device_put(a, D[1]))(Y).devices() == {D[1]}
    loss = jax.grad(lambda a: (jax.device_put(a, D[1]) ** 2).sum())
    assert loss(jax.device_put(X, D[2])).devices() == {D[2]} and loss(X).tolist() == (2 * X).tolist()


SPREAD = {
    "elementwise": (lambda: jnp.sin(XS) * 2, ("X",)),
    "with one that is whole": (lambda: jax.device_put(X, WHOLE) + XS, ("X",)),
    "with one that is not committed": (lambda: X + XS, ("X",)),
    "of one that is whole": (lambda: jnp.sin(jax.device_put(X, WHOLE)), ()),
    "comparison": (lambda: XS > 3, ("X",)),
    "copy": (lambda: XS.copy(), ("X",)),
    "like": (lambda: jnp.ones_like(XS), ("X",)),
    "split": (lambda: XS.reshape(2, 4), ()),
    "transpose": (lambda: YS.T, (None, "X")),
    "sum": (lambda: XS.sum(), ()),
    "sum over the axis": (lambda: YS.sum(0), ()),
    "sum over another": (lambda: YS.sum(1), ("X",)),
    "product": (lambda: YS @ Y, ("X",)),
    "product over the axis": (lambda: Y @ YS, ()),
    "element": (lambda: XS[0], ()),
    "part": (lambda: XS[:4], ()),
    "sort": (lambda: jnp.sort(XS), ("X",)),
    "cumsum": (lambda: jnp.cumsum(XS), ("X",)),
    "broadcast": (lambda: XS[:, None] + jnp.ones(3), ("X",)),
    "broadcast behind": (lambda: XS[None] + jnp.ones((3, 1)), (None, "X")),
    "conflict": (lambda: YS + jax.device_put(Y, on(None, "X")), ("X",)),
    "grad": (lambda: jax.grad(lambda a: (a**2).sum())(XS), ("X",)),
    "vmap": (lambda: jax.vmap(jnp.sin)(YS), ("X",)),
    "jit": (lambda: jax.jit(lambda a: a)(XS), ("X",)),
    "made there": (lambda: jnp.zeros(8, device=CUT), ("X",)),
    "counted there": (lambda: jnp.arange(8, device=CUT), ("X",)),
    "rows": (lambda: next(iter(jax.device_put(Y, WHOLE))), ()),
}


@pytest.mark.parametrize("case", SPREAD, ids=str)
def test_results_over_a_mesh(case):
    f, spec = SPREAD[case]
    for _ in range(4):  # by the reference, by a plan, ...
        out = f()
        assert out.committed and out.sharding == on(*spec)


def test_results_over_a_grid():
    a, b = jax.device_put(Y, on("X", mesh=GRID)), jax.device_put(Y, on(None, "Y", mesh=GRID))
    assert (a + b).sharding == on("X", "Y", mesh=GRID)
    outs = jax.jit(lambda x: (x, x * 2, x.sum(), 3.0))(XS)
    assert [o.sharding for o in outs] == [CUT, CUT, WHOLE, WHOLE]
    assert not jax.jit(lambda x: jnp.ones(8))(XS).committed


def test_results_on_one_device():
    index = jax.device_put(jnp.array([1, -1]), D[1])
    mixed = lambda: (
        *(
            ON1 + X,
            X - ON1,
            ON1 == X,
            ON1[2],
            ON1[1:3],
            ON1[index],
            X[index],
            ON1.T,
            ON1.astype(int),
            jnp.asarray(ON1),
        ),
        *(
            ON1.sum(),
            jnp.sort(ON1),
            jnp.where(ON1 > 1, X, 0),
            ON1.at[0].set(1.0),
            jnp.zeros_like(ON1),
            lax.sin(ON1),
        ),
        *(
            jnp.concatenate([ON1, X]),
            ON1 + np.ones(8),
            jax.jit(lambda a, b: a + b)(X, ON1),
            ON1[ON1 > 2],
            ON1.copy(),
        ),
    )
    for _ in range(4):
        assert all(y.committed and y.devices() == {D[1]} for y in mixed())
    assert [y.devices() for y in jax.jit(lambda a: (a, a * 2, 3.0))(ON1)] == [{D[1]}] * 3
    assert not jax.jit(lambda a, b: a + 1)(X, ON2).committed  # an argument that is not used
    assert jax.jit(lambda a, b: a + 1)(ON1, ON2).devices() == {D[1]}
    assert not jax.jit(lambda a: a + ON2)(X).committed  # a constant
    assert not jax.jit(lambda a: (a, ON2))(X)[1].committed


def test_incompatible_devices():
    index = jax.device_put(jnp.array([1]), D[2])
    add = jax.jit(lambda a, b: a + b)
    for f in (
        lambda: ON1 + ON2,
        lambda: add(ON1, ON2),
        lambda: ON1 * XS,
        lambda: jnp.concatenate([ON1, ON2]),
        lambda: jnp.stack([ON1, ON2]),
        lambda: jnp.where(ON1 > 1, ON1, ON2),
        lambda: ON1[index],
        lambda: lax.add(ON1, ON2),
        lambda: jax.grad(lambda a: (a * ON2).sum())(ON1),
        lambda: jax.jit(lambda a: lax.with_sharding_constraint(a, CUT))(ON1),
        lambda: lax.with_sharding_constraint(ON1, CUT),
        lambda: jax.jit(lambda a: jax.jit(lambda b: b + 1, in_shardings=CUT)(a))(ON1),
        lambda: jax.jit(lambda a: a, out_shardings=SingleDeviceSharding(D[1]))(ON2),
        lambda: jax.jit(lambda a: (a, a), out_shardings=(CUT, SingleDeviceSharding(D[1])))(X),
        lambda: jax.shard_map(lambda a: a, mesh=MESH, in_specs=P("X"), out_specs=P("X"))(ON1),
    ):
        for _ in range(4):
            with pytest.raises(ValueError, match=INCOMPATIBLE):
                f()
    z = jnp.ones(300) + 1
    with pytest.raises(ValueError, match=r"argument a of .* float32\[300\] .* device ids \[0\] .* device ids \[2\]"):
        jax.jit(lambda a, b: a + b.sum(), donate_argnums=0)(jax.device_put(z, D[0]), ON2)
    assert not z.is_deleted()


@pytest.mark.filterwarnings("ignore:backend and device argument")
def test_what_a_mesh_in_force_means_for_arguments_about_places():
    bare = NamedSharding(MESH.abstract_mesh, P("X"))
    with jax.set_mesh(MESH):
        assert jax.jit(lambda a: a + 1, in_shardings=bare)(X).sharding == CUT
        assert lax.with_sharding_constraint(XS, None).sharding == WHOLE  # None: whole on each device
        both = jax.jit(lambda a: lax.with_sharding_constraint((a, a), (None, CUT)))(X)
        assert [a.sharding for a in both] == [WHOLE, CUT]
        for options in ({"device": D[1]}, {"backend": "cpu"}):
            with pytest.raises(ValueError, match="'device' or 'backend' names one device"):
                jax.jit(jnp.sin, **options)(X)
        for lower in (jax.jit(jnp.sin).lower, jax.jit(jnp.sin, in_shardings=SingleDeviceSharding(D[1])).lower):
            with pytest.raises(ValueError, match=INCOMPATIBLE):
                lower(ON1)
    assert jax.jit(jnp.sin, in_shardings=bare)(XS).sharding == CUT


def test_under_a_mesh():
    with jax.set_mesh(MESH):
        for _ in range(4):
            assert [y.sharding for y in (jnp.zeros(8), X + 1, jax.jit(lambda a: a)(X), X[0])] == [WHOLE] * 4
        assert not jax.device_put(np.ones(8)).committed
        with pytest.raises(ValueError, match=INCOMPATIBLE):
            ON1 + 1
    assert not (X + 1).committed


def test_jit_with_shardings():
    f = lambda a: a + 1
    for g in (jax.jit(f, out_shardings=CUT), jax.jit(f, in_shardings=CUT), jax.jit(in_shardings=[CUT])(f)):
        for x in (X, X, np.arange(8.0), XS):
            assert g(x).sharding == CUT and g(x).tolist() == (X + 1).tolist()
    assert [y.sharding for y in jax.jit(lambda a: (a, [a + 1]), out_shardings=(CUT, WHOLE))(X)[1]] == [WHOLE]
    assert jax.jit(lambda a, b: a + b, in_shardings=(CUT, None))(X, X).sharding == CUT
    assert jax.jit(lambda a, n: a + n, in_shardings=(CUT,), static_argnums=1)(X, 3).sharding == CUT
    assert not jax.jit(f, in_shardings=None, out_shardings=None)(a=X).committed
    assert jax.jit(lambda a: jax.jit(f, out_shardings=CUT)(a) * 2)(X).sharding == CUT
    assert jax.grad(jax.jit(lambda a: a.sum(), in_shardings=CUT))(X).sharding == CUT
    single = SingleDeviceSharding(D[1])
    with pytest.warns(DeprecationWarning, match="backend and device argument"):
        moved = [jax.jit(f, in_shardings=single), jax.jit(f, device=D[1])]
    assert all(g(x).devices() == {D[1]} for g in moved for x in (X, ON2, ON1, ON2))
    with pytest.warns(DeprecationWarning, match="backend and device argument"):
        assert jax.jit(f, backend="cpu")(X).committed
        assert jax.jit(f, device="cpu")(X).committed
    with pytest.warns(DeprecationWarning, match="backend and device argument"):
        assert jax.jit(lambda: jnp.ones(2), device=D[3])().devices() == {D[3]}
    with jax.set_mesh(MESH):
        assert jax.jit(f, out_shardings=P("X"))(X).sharding == CUT == jax.jit(f, in_shardings=P("X"))(X).sharding


@pytest.mark.filterwarnings("ignore:backend and device argument")
@pytest.mark.filterwarnings("ignore:.with mesh:DeprecationWarning")
def test_pjit_heeds_the_mesh_that_is_entered():
    f = pjit(lambda a: (a + 1, jax.sharding.get_abstract_mesh().empty)[0], in_shardings=P("X"), donate_argnums=0)
    with MESH:
        assert f(X + 0).sharding == CUT == f.lower(X).compile().input_shardings[0][0]
        assert [y.sharding for y in (pjit(jnp.sin)(X), pjit(jnp.sin, in_shardings=P("X"), out_shardings=None)(X))] == [
            WHOLE,
            WHOLE,
        ]
        assert jax.jit(lambda a: f(a))(X).sharding == CUT and f._cache_size() == 1
        assert jax.vmap(f)(Y).sharding == on(None, "X")
        with GRID:
            assert f(X).sharding == on("X", mesh=GRID)
            lowered = pjit(jnp.sin, out_shardings=(P("X", "Y"))).lower(Y)
        with pytest.raises(ValueError, match=INCOMPATIBLE):
            pjit(jnp.sin)(ON1)
        with pytest.raises(ValueError, match="'device' or 'backend' names one device"):
            pjit(jnp.sin, device=D[1])(X)
        with pytest.raises(RuntimeError, match=r"^jit requires a non-empty mesh"):
            jax.jit(jnp.sin, in_shardings=P("X"))(X)
    assert lowered.compile().output_shardings == on("X", "Y", mesh=GRID) == lowered.compile()(Y).sharding
    with pytest.raises(RuntimeError, match=r"^pjit requires a non-empty mesh"):
        f(X)
    assert not pjit(jnp.sin, in_shardings=None)(X).committed


def _on_a_tpu(x, argument="backend"):
    with pytest.warns(DeprecationWarning, match="backend and device argument"):
        f = jax.jit(jnp.sin, **{argument: "tpu"})
    return f(x)


MISTAKES = [
    (lambda: jax.jit(jnp.sin, in_shardings=CUT).lower(STRUCT), ValueError, "does not match the"),
    (lambda: jax.jit(jnp.sin, donate_argnums=3), ValueError, "only accepts 1 positional arguments"),
    (lambda: jax.jit(jnp.sin, donate_argnums=0, static_argnums=0), ValueError, "cannot intersect"),
    (lambda: jax.jit(jnp.sin, out_shardings="nonsense"), TypeError, "out_shardings: leaves must be"),
    (lambda: jax.jit(jnp.sin, in_shardings=3), TypeError, "in_shardings: leaves must be"),
    (lambda: jax.jit(jnp.sin, out_shardings=D[1]), TypeError, "out_shardings: leaves must be"),
    (lambda: jax.jit(jnp.sin, out_shardings=on(None, "X"))(X), ValueError, "rank at least 2"),
    (lambda: jax.jit(jnp.sin, out_shardings=CUT)(jnp.arange(7.0)), IndivisibleError, "size is 7"),
    (lambda: jax.jit(jnp.sin, in_shardings=CUT)(jnp.arange(7.0)), IndivisibleError, "size is 7"),
    (lambda: jax.jit(lambda a: (a, a), out_shardings=(CUT,))(X), ValueError, "out_shardings"),
    (lambda: jax.jit(lambda a, b: a, in_shardings=(CUT,))(X, X), ValueError, "in_shardings"),
    (lambda: jax.jit(jnp.sin, out_shardings=P("X"))(X), RuntimeError, "requires a non-empty mesh"),
    (lambda: jax.jit(lambda a: a, in_shardings=CUT)(a=X), ValueError, "does not support kwargs"),
    (
        lambda: jax.jit(jnp.sin, in_shardings=on(P.UNCONSTRAINED)),
        ValueError,
        "in_shardings: Unconstrained dims are not allowed",
    ),
    (
        lambda: jax.jit(jnp.sin, out_shardings=(None, P(P.UNCONSTRAINED))),
        ValueError,
        "out_shardings: Unconstrained dims are not",
    ),
    (lambda: jax.jit(jnp.sin, in_shardings=WHOLE)(XS), ValueError, "does not match the sharding of"),
    (lambda: jax.jit(jnp.sin, in_shardings=CUT)(ON1), ValueError, "does not match the sharding of"),
    (lambda: jax.jit(jnp.sin, device=3), TypeError, "'device' must be a Device"),
    (lambda: _on_a_tpu(X, "device"), RuntimeError, "backend: 'tpu'"),
    (lambda: jax.jit(jnp.sin, device=D[0], backend="cpu"), ValueError, "both a device and a backend"),
    (lambda: jax.jit(jnp.sin, device=D[0], in_shardings=CUT), ValueError, "so does 'device' or 'backend'"),
    (lambda: _on_a_tpu(X), RuntimeError, "backend: 'tpu'"),
    (lambda: jax.jit(jnp.sin, compiler_options={"no_such": 1})(X), jax.errors.JaxRuntimeError, "no_such"),
    (lambda: jax.jit(jnp.sin, compiler_options="x")(X), TypeError, "must be a dict"),
    (lambda: jax.jit(lambda a: jax.jit(jnp.sin, compiler_options={"a": 1})(a))(X), ValueError, "top-level"),
    (lambda: lax.with_sharding_constraint(X, "X"), TypeError, "leaf specifications"),
    (lambda: lax.with_sharding_constraint(X, D[1]), TypeError, "leaf specifications"),
    (lambda: lax.with_sharding_constraint(X, None), ValueError, "got sharding None"),
    (lambda: lax.with_sharding_constraint(X, P("X")), RuntimeError, "requires a non-empty mesh"),
    (lambda: lax.with_sharding_constraint(X, on(None, "X")), ValueError, "rank at least 2"),
    (lambda: lax.with_sharding_constraint([X, Y], [CUT]), ValueError, "tree prefix"),
    (lambda: lax.with_sharding_constraint(jnp.arange(7.0), CUT), IndivisibleError, "size is 7"),
    (lambda: jax.ShapeDtypeStruct((8,), float, sharding="x"), ValueError, "must be a Sharding, a PartitionSpec"),
    (lambda: jax.make_mesh((8,), ("a",)), ValueError, "take 8 devices, but there are 4"),
    (lambda: jax.make_mesh((2, 2), "ab"), ValueError, "each needs a name"),
    (lambda: jax.make_mesh((2, 2), ("a", "a")), ValueError, "must differ"),
    (lambda: jax.make_mesh(4, ("a",)), TypeError, "must be a sequence of integers"),
    (lambda: jax.make_mesh((-1,), ("a",)), ValueError, "must be positive"),
    (lambda: jax.make_mesh((4,), (None,)), ValueError, "needs a name, got None"),
    (lambda: jax.make_mesh((4,), ("a",), axis_types="Auto"), TypeError, "an AxisType for each axis"),
    (lambda: jax.make_mesh((4,), ("a",), axis_types=(AxisType.Auto,) * 2), ValueError, "2 axis_types"),
    (lambda: Mesh(np.arange(4), "a"), TypeError, "must be an array of devices"),
    (lambda: Mesh([D[0], D[0]], "a"), ValueError, "comes twice"),
    (lambda: AbstractMesh((2,), ("a", "b")), ValueError, "1 sizes but 2 names"),
    (lambda: NamedSharding(MESH, P("X", "X")), DuplicateSpecError, "duplicate entries"),
    (lambda: NamedSharding(MESH, ("X",)), TypeError, "must be a PartitionSpec"),
    (lambda: NamedSharding(3, P("X")), TypeError, "must be a Mesh"),
    (lambda: NamedSharding(MESH, P("X"), memory_kind="nope"), ValueError, "memory addressable by device cpu"),
    (lambda: SingleDeviceSharding("cpu"), TypeError, "must be a device"),
    (lambda: NamedSharding(GRID, P("X", unreduced={"Y"})), ValueError, "unreduced"),
    (lambda: P("X", unreduced={"X"}), ValueError, "cuts dimensions by axes that are unreduced"),
    (lambda: P(("X", ("Y",))), ValueError, "nested tuple"),
    (lambda: jax.make_array_from_single_device_arrays((8,), CUT, [ON1]), ValueError, "Expected 4 per-device arrays"),
    (lambda: jax.make_array_from_single_device_arrays((8,), CUT, [XS] * 4), ValueError, "one lies on 4"),
    (lambda: P("X", unreduced="Y"), TypeError, "unreduced"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    call, error, text = MISTAKES[number]
    with pytest.raises(error, match=text) as raised:
        call()
    assert raised.type is error


def test_constraints():
    assert lax.with_sharding_constraint(X, CUT).sharding == CUT
    a, b = lax.with_sharding_constraint([X, Y], [CUT, WHOLE])
    assert (a.sharding, b.sharding) == (CUT, WHOLE)
    assert jax.jit(lambda x: lax.with_sharding_constraint(x, CUT) + 1)(X).sharding == CUT
    assert jax.vmap(lambda x: lax.with_sharding_constraint(x, CUT))(jnp.ones((3, 8))).sharding == on(None, "X")
    rows = jax.vmap(lambda x: lax.with_sharding_constraint(x, on("Y", mesh=GRID)), spmd_axis_name="X")
    assert rows(jnp.ones((2, 8))).sharding == on("X", "Y", mesh=GRID)
    mapped = jax.jit(jax.vmap(lambda x: lax.with_sharding_constraint(x, on("Y", mesh=GRID)), in_axes=1, out_axes=1))
    assert mapped(jax.device_put(jnp.ones((8, 2)), on(None, "X", mesh=GRID))).sharding == on("Y", "X", mesh=GRID)
    with pytest.raises(ValueError, match=r"spmd_axis_name \('Y',\) is used already"):
        jax.vmap(lambda x: lax.with_sharding_constraint(x, on("Y", mesh=GRID)), spmd_axis_name="Y")(jnp.ones((2, 8)))
    with pytest.warns(DeprecationWarning, match="`with mesh:` context manager"), MESH:
        assert lax.with_sharding_constraint(X, P("X")).sharding == CUT and not (X + 1).committed
    open_ = NamedSharding(GRID, P(P.UNCONSTRAINED, "Y"))
    start = jax.device_put(Y, on("X", mesh=GRID))
    assert jax.jit(lambda a: lax.with_sharding_constraint(a, open_))(start).sharding == on("X", "Y", mesh=GRID)


def test_axes_of_other_types_inside():
    explicit, seen = Mesh(D, "X", axis_types=(AxisType.Explicit,)), []

    def double(x, by=2):
        seen.append(jax.sharding.get_abstract_mesh().axis_types)
        return by * x

    auto = jax.sharding.auto_axes(double, axes="X", out_sharding=P("X"))
    spread = jax.sharding.explicit_axes(axes="X", in_sharding=P("X"))(double)
    np.testing.assert_array_equal(auto(X), 2 * X)  # there is no mesh
    with jax.set_mesh(explicit):
        for found in (auto(X), jax.sharding.auto_axes(double)(X, by=2, out_sharding=P("X")), jax.jit(auto)(X)):
            np.testing.assert_array_equal(found, 2 * X)
            assert found.sharding.spec == P("X")
        assert seen[1:] == [(AxisType.Auto,)] * 3
        for call, error in (
            (lambda: jax.sharding.auto_axes(double)(X), TypeError),
            (lambda: jax.sharding.explicit_axes(double)(X), TypeError),
            (lambda: jax.sharding.explicit_axes(double)(X, in_sharding=None), ValueError),
            (lambda: jax.sharding.auto_axes(double)(X, out_sharding=None), ValueError),
            (lambda: jax.sharding.auto_axes(double, axes="Z", out_sharding=P())(X), KeyError),
        ):
            with pytest.raises(error, match=r"Missing required|no axis 'Z'|got None"):
                call()
    with jax.set_mesh(MESH):
        np.testing.assert_array_equal(spread(X), 2 * X)
        assert seen[-1] == (AxisType.Explicit,) and jax.sharding.get_abstract_mesh().axis_types == (AxisType.Auto,)
        # Without arguments there is nothing to lay out.
        assert jax.sharding.explicit_axes(lambda: double(X))(in_sharding=None).sharding.mesh == MESH
    with pytest.raises(ValueError, match="mesh cannot be empty"):
        spread(X)


def test_constraints_over_a_mesh_without_devices():
    """They are over the devices that the array lies on."""
    mesh = jax.make_mesh((1, 1), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    x = jax.device_put(jnp.arange(8.0).reshape(2, 4), NamedSharding(mesh, P("y")))
    there = NamedSharding(mesh.abstract_mesh, P("x", "y"))
    assert lax.with_sharding_constraint(x, there).sharding == NamedSharding(mesh, P("x", "y"))
    assert jax.jit(lambda x: lax.with_sharding_constraint(x, there))(x).sharding == NamedSharding(mesh, P("x", "y"))
    with jax.set_mesh(mesh):
        assert lax.with_sharding_constraint(jnp.ones((2, 2)), there).sharding.spec == P("x", "y")
        assert lax.with_sharding_constraint(np.ones((2, 2)), there).sharding.mesh == mesh
    with pytest.raises(TypeError, match=r"AbstractMesh takes its devices from the array"):
        lax.with_sharding_constraint(jnp.ones((2, 4)), there)
    other = NamedSharding(AbstractMesh((1, 1), ("a", "b")), P("a"))
    with pytest.raises(ValueError, match=r"lies on a mesh of .* but the AbstractMesh of"):
        lax.with_sharding_constraint(x, other)
    out = jax.jit(lambda x: lax.with_sharding_constraint(x, other))(x)
    assert out.sharding.is_fully_replicated and out.tolist() == x.tolist()


def test_types_say_how_arrays_lie():
    plain = jax.typeof(jnp.ones((2, 4)))
    assert plain.sharding == NamedSharding(AbstractMesh((), ()), P(None, None)) and jax.typeof(1.0).sharding.spec == P()
    mesh = jax.make_mesh((1, 1), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    types = [
        jax.typeof(jax.device_put(np.ones((2, 4), np.float32), NamedSharding(mesh, spec)))
        for spec in (P("x"), P(("x", "y")), P("y", "x"), P(None, ("y", "x")), P())
    ]
    assert [str(t) for t in types] == [
        "float32[2@x,4]", "float32[2@x,4]", "float32[2,4@x]", "float32[2,4@x]", "float32[2,4]"
    ]  # fmt: skip
    assert types[0] == types[1] != types[2] and hash(types[0]) == hash(types[1]) and types[4] != plain
    assert repr(types[2]) == "ShapedArray(float32[2,4@x])" and types[0].str_short(True) == "f32[2@x,4]"
    assert types[0].sharding == NamedSharding(mesh.abstract_mesh, P("x", None))
    assert pickle.loads(pickle.dumps(types[0])) == types[0]
    with jax.set_mesh(mesh):
        seen = []
        jax.jit(lambda x: seen.append(jax.typeof(x).sharding.mesh))(np.ones(3))
        assert seen == [mesh.abstract_mesh]


def test_arrays_like_others_lie_as_these_say():
    mesh = jax.make_mesh((1,), ("x",))
    there = NamedSharding(mesh, P("x"))
    x = jax.device_put(jnp.ones((2, 3)), there)

    class Held:
        dtype, shape, ndim, sharding = x.dtype, x.shape, 2, there

        def __jax_array__(self):
            return x

    for like in (x, Held(), jax.ShapeDtypeStruct((2, 3), x.dtype, sharding=there)):
        for y in (jnp.zeros_like(like), jnp.full_like(like, 2), lax.full_like(like, 1.0)):
            assert y.sharding == there and y.committed and y.shape == (2, 3)
    assert not jnp.ones_like(jnp.ones(2)).committed and jax.jit(jnp.ones_like)(x).shape == (2, 3)
    abstract = jax.ShapeDtypeStruct((2,), x.dtype, sharding=NamedSharding(mesh.abstract_mesh, P("x")))
    assert not jnp.zeros_like(abstract).committed


def test_shardings_inside_of_a_program_are_told():
    seen = []

    def f(x):
        y = jnp.sin(x).T
        jax.debug.inspect_array_sharding(y, callback=seen.append)
        return y.sum()

    for run in (jax.jit(f), jax.jit(jax.grad(f)), jax.jit(jax.vmap(lambda x: f(x[None])))):
        run(YS)
    assert [s.spec for s in seen] == [P(None, "X"), P(None, "X"), P("X")]
    again = jax.jit(f, in_shardings=on("X"))
    again(Y), again(Y)
    assert len(seen) == 4  # once for each program


def test_results_that_do_not_divide_are_whole():
    out = jax.jit(lambda x: lax.with_sharding_constraint(x, CUT))(np.ones(6, np.float32))
    assert out.sharding == on()


def test_a_mesh_of_one_device_moves_nothing():
    one = Mesh(D[1:2], "X")
    with jax.set_mesh(one):
        for f in (lambda x: x + 1, lambda x: lax.slice_in_dim(x, 0, 4), jax.jit(lambda x: x + 1)):
            assert f(ON1).sharding == SingleDeviceSharding(D[1])
        assert jax.jit(lambda x: x + 1)(np.ones(3)).sharding == NamedSharding(one, P())


@pytest.mark.parametrize("place, calls", [(WHOLE, 1), (CUT, 4), (SingleDeviceSharding(D[1]), 1)])
def test_callbacks_are_called_for_each_device_or_once_for_the_whole(place, calls):
    asked = []
    made = jax.make_array_from_callback((8,), place, lambda index: (asked.append(index), np.arange(8)[index])[1])
    assert len(asked) == calls and made.sharding == place
    np.testing.assert_array_equal(made, np.arange(8))


def test_arrays_of_keys_are_made_of_parts():
    keys = jax.random.split(jax.random.key(0), 8)
    made = jax.make_array_from_callback((8,), CUT, lambda index: keys[index])
    assert made.sharding == CUT and bool((made == keys).all())


def test_results_lie_over_the_mesh_that_constraints_name():
    flat = NamedSharding(MESH, P("X"))
    found = jax.jit(lambda x: x * 2, in_shardings=on("X", mesh=GRID), out_shardings=flat)(X)
    assert found.sharding == flat and found.addressable_shards[1].data.tolist() == [4, 6]
    named = NamedSharding(AbstractMesh((2, 2), ("a", "b")), P("b"))
    found = jax.jit(lambda x: lax.with_sharding_constraint(x, named))(jax.device_put(X, on("X", mesh=GRID)))
    assert found.sharding.spec == P("b") and found.sharding.mesh.axis_names == ("a", "b")
    assert found.addressable_shards[1].data.tolist() == [4, 5, 6, 7]


def test_arrays_over_devices_are_not_exported():
    for there in (XS, jax.device_put(X, WHOLE)):
        with pytest.raises(BufferError, match="unsharded"):
            jnp.from_dlpack(there)
    assert jnp.from_dlpack(ON1).tolist() == X.tolist()


def test_committed_arrays_and_kinds_of_calls_are_counted():
    key = jax.random.key(0)
    assert XS._committed and ON1._committed and not X._committed and not key._committed
    f = jax.jit(lambda x: x + 1)
    for x in (X, XS, XS, ON1, 1.0):
        f(x)
    assert f._cache_size() == 4
    g = pjit(lambda x: x + 1)
    g(X), g(XS)
    assert g._cache_size() == 2


def test_values_of_the_host_lie_over_the_mesh_in_force():
    """Whole on each device, and committed, but not what is an array before, or while a function is traced."""
    mesh = jax.make_mesh((2, 2), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
    whole = NamedSharding(mesh, P())
    before = jnp.ones(3)
    with jax.set_mesh(mesh):
        for made in (jnp.asarray(np.ones(3)), jnp.array([1, 2]), jnp.array(2.0), jnp.asarray(np.float32(1))):
            assert made.sharding == whole and made.committed
        assert jnp.asarray(before) is before
        assert jax.jit(lambda x: jnp.asarray(np.ones(3)) + x)(1.0).tolist() == [2, 2, 2]
        assert jnp.asarray(np.ones(3), device=D[1]).sharding == SingleDeviceSharding(D[1])
        assert (jnp.asarray([1.0, 2.0]) + before[0]).sharding == whole
    assert not jnp.asarray(np.ones(3)).committed


def test_results_say_it_in_the_words_of_arguments():
    y = jax.device_put(Y, on("X", None))
    short = jax.device_put(Y, on("X"))
    double = jax.jit(lambda x: (2 * x, x.sum(1), jnp.ones((4, 4))))
    assert [v.sharding.spec for v in double(y)] == [P("X", None), P("X"), P()]
    assert [v.sharding.spec for v in double(short)] == [P("X"), P("X"), P()]  # the other call's program is not theirs
    assert [v.sharding.spec for v in (y + 1, y + short, short + y, y.T)] == [P("X", None)] * 2 + [P("X"), P(None, "X")]
    assert jax.jit(lambda x: 2 * x).lower(y).compile().output_shardings == y.sharding
    whole = jax.device_put(Y, on(None, None))
    assert [v.sharding.spec for v in (whole + 1, whole[0])] == [P(None, None), P()]
    assert on("X", None).is_equivalent_to(on("X"), 1) and not on(None, "X").is_equivalent_to(on("X"), 2)


def test_open_dimensions_are_closed_outside_of_programs():
    open_ = NamedSharding(GRID, P(P.UNCONSTRAINED, "Y"))
    assert lax.with_sharding_constraint(Y, open_).sharding.spec == P(None, "Y")
    assert lax.with_sharding_constraint(jax.device_put(Y, on("X", mesh=GRID)), open_).sharding.spec == P("X", "Y")


def test_calls_in_programs_say_where_things_lie():
    f = jax.jit(lambda x, y: x + y, in_shardings=(CUT, None), out_shardings=WHOLE, donate_argnums=1)
    jaxpr = jax.make_jaxpr(f)(X, X)
    params = jaxpr.eqns[0].params
    assert params["in_shardings"][0] == CUT and str(params["in_shardings"][1]) == "UnspecifiedValue"
    assert params["out_shardings"] == (WHOLE,) and params["donated_invars"] == (False, True)
    assert params["in_layouts"] == (None, None) and params["out_layouts"] == (None,) and params["ctx_mesh"].empty
    assert "out_shardings=(NamedSharding(" in str(jaxpr)
    again = jaxpr.eqns[0].primitive.bind(X, X, **params)
    assert again[0].tolist() == (2 * X).tolist()
    for transformed, given in ((jax.vmap(f), jnp.ones((8, 8))), (jax.grad(lambda x, y: f(x, y).sum(), (0, 1)), X)):
        calls = [e for e in jax.make_jaxpr(transformed)(given, given).eqns if e.primitive.name == "jit"]
        for eqn in calls:
            assert len(eqn.params["in_shardings"]) == len(eqn.invars) == len(eqn.params["donated_invars"])
            assert len(eqn.params["out_shardings"]) == len(eqn.outvars)
        assert calls
    with jax.set_mesh(MESH):
        assert jax.make_jaxpr(jax.jit(lambda x: x))(X).eqns[0].params["ctx_mesh"] == MESH
    plain = str(jax.make_jaxpr(jax.jit(lambda x: x))(X))
    assert "shardings" not in plain and "ctx_mesh" not in plain and "layouts" not in plain


def test_what_programs_over_a_mesh_take():
    mapped = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=MESH, in_specs=P("X"), out_specs=P("X")))
    assert mapped.lower(X).compile().input_shardings[0] == (CUT,)
    added = jax.jit(lambda x, y: x + y, in_shardings=(CUT, None)).lower(X, X).compile()
    assert added.input_shardings[0] == (CUT, CUT) and added.output_shardings == CUT
    assert added(X, X).tolist() == (2 * X).tolist()


def test_places_of_results_are_written_as_out_shardings_or_in_short():
    part = on("X", None, mesh=GRID)
    halves = jax.shard_map(lambda x: 2 * x, mesh=GRID, in_specs=P("X", None), out_specs=P("X", None))
    x = np.ones((4, 2), np.float32)
    assert jax.jit(lambda x: 2 * x, out_shardings=part)(x).sharding.spec == P("X", None)
    for f in (halves, lambda x: lax.with_sharding_constraint(2 * x, part), jax.grad(lambda x: halves(x).sum())):
        assert jax.jit(f)(x).sharding.spec == P("X")
    assert jax.jit(lambda x: 2 * x, in_shardings=part)(x).sharding.spec == P("X")
    placed = jax.device_put(x, part)
    for f in (lambda x: 2 * x, halves):  # as the argument says it
        assert jax.jit(f)(placed).sharding.spec == P("X", None)
    assert jax.jit(halves)(jax.device_put(x, on("Y", mesh=GRID))).sharding.spec == P("X")


def test_entries_past_the_last_dimension_that_cut_nothing_are_no_matter_for_parts():
    for spec in (P("X", None, None), P("X", "Y", None)):
        sharding = NamedSharding(GRID, spec)
        short = NamedSharding(GRID, P(*spec[:2]))
        assert sharding.shard_shape((8, 4)) == short.shard_shape((8, 4))
        assert sharding.devices_indices_map((8, 4)) == short.devices_indices_map((8, 4))
        with pytest.raises(ValueError, match="rank at least 3"):
            jax.device_put(np.ones((8, 4)), sharding)
    with pytest.raises(ValueError, match="rank at least 3"):
        NamedSharding(GRID, P(None, None, "X")).shard_shape((8, 4))


def test_shardings_of_keys_speak_of_each_axis():
    keys = jax.random.split(jax.random.key(0), (8, 4))
    for spec, long in ((P(), P(None, None)), (P("X"), P("X", None)), (P(None, "Y"), P(None, "Y"))):
        placed = jax.device_put(keys, NamedSharding(GRID, spec))
        assert placed.sharding.spec == long and repr(placed.sharding.spec) == repr(long)
        with jax.transfer_guard("disallow_explicit"):
            words = jax.random.key_data(placed)
        assert repr(words.sharding.spec) == repr(P(*spec, None))
        np.testing.assert_array_equal(words, jax.random.key_data(keys))
        assert len(placed[0].sharding.spec) == 1 and placed[0, 0].shape == ()
        assert len(placed.reshape(4, 8).sharding.device_set) == GRID.size


def test_arguments_on_the_devices_of_in_shardings_in_another_order():
    devices = np.array(jax.devices()[:4])
    meshes = [jax.sharding.Mesh(d.reshape(2, 2), ("x", "y")) for d in (devices, devices[::-1])]
    one, other = (NamedSharding(mesh, P("x")) for mesh in meshes)
    x = jax.device_put(np.arange(8.0, dtype=np.float32), one)
    out = jax.jit(lambda x: x * 2, in_shardings=other)(x)
    np.testing.assert_array_equal(out, 2 * np.arange(8.0))
    with pytest.raises(ValueError, match="does not match the sharding of"):
        jax.jit(lambda x: x, in_shardings=other.update(spec=P("y")))(x)


MESH_OF_ALL = jax.make_mesh((len(jax.devices()),), ("i",), axis_types=(jax.sharding.AxisType.Auto,))


@pytest.mark.parametrize(
    "fun",
    [
        lambda s: s.astype(jnp.float16),
        round,
        jax.grad(lambda v: jnp.sum(v**2)),
        lambda s: jnp.nonzero(s[None])[0],
        lambda s: jnp.argwhere(jnp.ones((2, 2)) * s),
        lambda s: jnp.where(s[None] > 1)[0],
    ],
)
def test_what_is_found_of_values_on_a_mesh_lies_there(fun):
    x = jax.device_put(np.float32(3), jax.NamedSharding(MESH_OF_ALL, P()))
    assert fun(x).sharding == jax.NamedSharding(MESH_OF_ALL, P())
    device = jax.devices()[-1]
    assert fun(jax.device_put(np.float32(3), device)).devices() == {device}


@pytest.mark.parametrize("kinds", [("Explicit", "Auto"), ("Auto", "Explicit")])
def test_out_shardings_say_of_what_types_axes_are(kinds):
    before, after = (
        jax.make_mesh((len(jax.devices()),), ("i",), axis_types=(getattr(jax.sharding.AxisType, k),)) for k in kinds
    )
    x = jax.device_put(np.arange(16.0), jax.NamedSharding(before, P("i")))
    out = jax.jit(lambda v: v * 2, out_shardings=jax.NamedSharding(after, P()))(x)
    assert out.sharding == jax.NamedSharding(after, P())
    np.testing.assert_array_equal(out, 2 * np.arange(16.0))
