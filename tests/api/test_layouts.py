"""Layouts and spaces of memory, and where stages of programs say that arrays lie, on four devices (conftest.py)."""

import numpy as np
import pytest
from api.placed import CUT, GRID, MESH, ON1, WHOLE, XS, D, X, on

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import layout
from pullback.sharding import (
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
)
from pullback.sharding import PartitionSpec as P


def test_stages():
    f = lambda a: a + 1
    made = jax.jit(f, in_shardings=CUT, out_shardings=CUT).lower(X).compile()
    assert made.input_shardings == ((CUT,), {}) and made.output_shardings == CUT and made(X).sharding == CUT
    plain = jax.jit(f).lower(X).compile()
    assert plain.input_shardings == ((SingleDeviceSharding(D[0]),), {}) and not plain(X).committed
    spread = jax.jit(f).lower(jax.ShapeDtypeStruct((8,), jnp.float32, sharding=CUT)).compile()
    assert spread.input_shardings == ((CUT,), {}) and spread(np.arange(8.0, dtype="float32")).sharding == CUT
    for compiled in (spread, plain):
        for _ in range(2):
            with pytest.raises(ValueError, match="lie elsewhere than the compiled function"):
                compiled(ON1)
    assert jax.eval_shape(f, XS).sharding is None
    with pytest.raises(ValueError, match=r"device_assignment has devices \[0, 1, 2, 3\], .*\[0\]"):
        jax.jit(f).lower(X).compile(device_assignment=D)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no_such"):
        jax.jit(f, compiler_options={"no_such": 1}).lower(X).compile()


def test_structs_refuse_specs_of_more_entries_than_they_have_dimensions():
    for said in (NamedSharding(GRID, P("X", None, None)), P("X", None, None)):
        with pytest.raises(ValueError, match="rank at least 3"):
            jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=said)
    assert jax.ShapeDtypeStruct((7,), jnp.float32, sharding=NamedSharding(GRID, P("X"))).shape == (7,)


def test_eval_shape_of_a_jitted_function_says_where_results_were_asked_to_lie():
    wanted = NamedSharding(GRID, P("X"))
    jitted = jax.jit(lambda x: {"a": x + 1, "b": x.sum()}, out_shardings={"a": wanted, "b": None})
    found = jax.eval_shape(jitted, jax.ShapeDtypeStruct((8, 4), jnp.float32))
    assert found["a"].sharding == wanted and found["a"].shape == (8, 4) and found["b"].sharding is None
    assert jax.eval_shape(lambda x: jitted(x), np.ones((8, 4)))["a"].sharding is None


def test_spaces_of_memory():
    Space = jax.memory.Space
    host = jax.device_put({"x": XS, "n": 2.0}, Space.Host)
    assert host["x"].sharding == CUT.with_memory_kind("pinned_host") and host["n"].sharding.memory_kind == "pinned_host"
    assert jax.device_put(host["x"], Space.Device).sharding == CUT
    np.testing.assert_array_equal(jax.jit(lambda x: jax.device_put(x, Space.Host) + 1)(X), X + 1)
    with pytest.raises(ValueError, match=r"Space\.Any is no place"):
        jax.device_put(X, Space.Any)


def to_host(x):
    return jax.device_put(x, jax.memory.Space.Host)


IN_MEMORY = {  # what is computed of (x on the device), and whether it lies in the host's memory
    "put": (to_host, True),
    "by a sharding": (lambda x: jax.device_put(x, CUT.with_memory_kind("pinned_host")), True),
    "back": (lambda x: jax.device_put(to_host(x), jax.memory.Space.Device), False),
    "back by a sharding": (lambda x: jax.device_put(to_host(x), SingleDeviceSharding(D[0])), False),
    "to a device": (lambda x: jax.device_put(to_host(x), D[0]), True),
    "with a number": (lambda x: to_host(x) * 2 + x[0], True),
    "a part that is set": (lambda x: to_host(x).at[0].set(x[1]), True),
    "sorted with another": (lambda x: lax.sort((to_host(x), x))[0], True),
    "another that is sorted with it": (lambda x: lax.sort((to_host(x), x))[1], False),
    "sum": (lambda x: to_host(x).sum(), True),
    "compared": (lambda x: (to_host(x) > 2).reshape(2, 4), True),
    "product": (lambda x: to_host(x) @ to_host(x), True),
    "vmap": (jax.vmap(to_host), True),
    "jvp": (lambda x: jax.jvp(to_host, (x,), (x,))[1], True),
    "grad": (jax.grad(lambda x: (to_host(x) ** 2).sum()), False),
    "inner jit": (lambda x: jax.jit(jnp.sin)(to_host(x)), True),
    "branches": (lambda x: lax.cond(x[0] > 0, to_host, lambda y: to_host(y) + 1, x), True),
    "scan": (lambda x: lax.scan(lambda c, y: (c, to_host(y * x)), 0.0, x)[1], True),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c + 1, to_host(x)), True),
}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_types_say_in_which_memory_values_are(name):
    function, on_host = IN_MEMORY[name]
    seen = []
    traced = jax.jit(lambda x: (seen.append(jax.typeof(function(x))), function(x))[1])
    kind = "pinned_host" if on_host else "device"
    for x in (X, XS):
        if x is XS and name == "back by a sharding":  # on other devices
            continue
        result = traced(x)
        assert seen[-1].memory_space.value == kind and ("<host>" in str(seen[-1])) == on_host
        assert result.sharding.memory_kind == kind and jax.typeof(result).memory_space.value == kind
        assert result.aval == seen[-1]
        np.testing.assert_allclose(result, function(np.asarray(x)) if name == "by a sharding" else function(X))


IN_TWO_MEMORIES = {
    "sum": lambda x: to_host(x) + x,
    "product": lambda x: to_host(x) @ x,
    "joined": lambda x: jnp.concatenate([to_host(x), x]),
    "in a jit": lambda x: jax.jit(jnp.multiply)(x, to_host(x)),
    "bounds": lambda x: lax.clamp(x, to_host(x), x),
}


@pytest.mark.parametrize("name", IN_TWO_MEMORIES)
def test_operands_in_two_memories_are_refused(name):
    with pytest.raises(ValueError, match="memory_space of all inputs is not one"):
        jax.jit(IN_TWO_MEMORIES[name])(X)


CARRIES = {
    "scan": lambda x: lax.scan(lambda c, _: (to_host(c), None), x, None, length=3),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 50, to_host, x),
    "cond": lambda x: lax.cond(x[0] > 0, to_host, lambda y: y, x),
}


@pytest.mark.parametrize("name", CARRIES)
def test_bodies_do_not_move_their_carry_to_another_memory(name):
    with pytest.raises(TypeError, match=r"(must have|need) equal"):
        jax.jit(CARRIES[name])(X)


def test_derivatives_of_what_lies_in_the_hosts_memory():
    def f(x):
        return (jax.nn.softmax(to_host(x)) ** 2).sum()

    rows = X.reshape(2, 4)
    wanted = jax.grad(lambda x: (jax.nn.softmax(x) ** 2).sum())(rows)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(rows), wanted, 1e-6)
    _, pull = jax.vjp(lambda y: y.reshape(2, 4).max(0), to_host(X))
    assert jax.typeof(pull(to_host(X[:4]))[0]).memory_space is jax.memory.Space.Host


def test_results_go_to_the_memory_that_out_shardings_says():
    host = CUT.with_memory_kind("pinned_host")
    x = jax.device_put(X, host)
    assert jax.jit(lambda x: x * 2, in_shardings=host, out_shardings=CUT)(x).sharding == CUT
    assert jax.jit(lambda x: x * 2, in_shardings=host)(x).sharding == host
    assert {s.data.sharding.memory_kind for s in x.addressable_shards} == {"pinned_host"}
    with pytest.raises(jax.errors.JaxRuntimeError, match="Could not find memory"):
        D[0].memory("hbm")


def test_results_of_what_lies_in_the_hosts_memory_lie_there():
    for x in (to_host(XS), to_host(ON1)):
        for result in (x * 2, jnp.sin(x), x.reshape(2, 4), jax.jit(lambda x: x)(x), jax.jit(jnp.cumsum)(x)):
            assert result.sharding.memory_kind == "pinned_host" and result.devices() == x.devices()
    assert str(jax.typeof(X).update(memory_space=jax.memory.Space.Any)) == "float32<any>[8]"
    assert [d.memory("pinned_host").process_index for d in D[:1]] == [0]


def test_layouts_that_the_compiler_chooses():
    Format, Layout = layout.Format, layout.Layout
    square = jnp.ones((8, 8))
    turned = Format(Layout((1, 0)), on(None, "X"))
    placed = lax.with_sharding_constraint({"a": square}, {"a": turned})["a"]
    assert placed.sharding == turned.sharding and placed.format.layout.major_to_minor == (1, 0)
    rows = jax.jit(lambda x: lax.with_sharding_constraint(x, Format(Layout((0, 1)), turned.sharding)))(square)
    assert rows.sharding == turned.sharding
    with pytest.raises(NotImplementedError, match="out_shardings"):
        jax.jit(lambda x: lax.with_sharding_constraint(x, turned))(square)
    with pytest.raises(ValueError, match=r"but its layout .* orders 2 axes"):
        lax.with_sharding_constraint(X, turned)
    doubled = jax.jit(lambda x: 2 * x, in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout((0,)), CUT))
    np.testing.assert_array_equal(doubled(X), 2 * X)
    assert doubled(X).sharding == CUT and repr(Layout.AUTO) == "AUTO"
    assert jax.jit(lambda x: x + 1, in_shardings=Format(None, CUT))(X).sharding == CUT
    for call in (
        lambda: jax.jit(lambda x: x, in_shardings=Format(Layout((0,))))(X),
        lambda: jax.device_put(X, Format(Layout((0,)))),
        lambda: jax.device_put(X, Format(Layout.AUTO, CUT)),
    ):
        with pytest.raises(ValueError, match=r"concrete|on which devices"):
            call()


def test_formats_say_rows_and_places():
    x = jnp.ones((2, 3))
    rows = layout.Layout((0, 1), ())
    assert x.format == layout.Format(rows, x.sharding)
    compiled = jax.jit(lambda x, y: {"sum": (x + y).sum(0)}).lower(x, y=x).compile()
    assert compiled.input_formats == ((x.format,), {"y": x.format})
    assert compiled.output_formats == {"sum": layout.Format(layout.Layout((0,), ()), x.sharding)}
    np.testing.assert_array_equal(jax.device_put(np.ones((2, 3)), x.format), x)


def test_arrays_say_the_layout_that_they_were_given():
    Format, Layout = layout.Format, layout.Layout
    place, turned, rows = SingleDeviceSharding(D[0]), Layout((1, 0)), Layout((0, 1), ())
    assert turned == Layout((1, 0)) != Layout((0, 1)) and turned.tiling is None
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    y = jax.device_put(x, Format(turned, place))
    assert y.format == Format(Layout((1, 0), ()), place) and jax.device_put(y, place) is y
    assert (y + 1).format.layout == rows == jax.device_put(y, D[1]).format.layout
    assert layout.with_layout_constraint(jnp.asarray(x), turned).format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(y, x)
    cut = jax.jit(lambda x: 2 * x, out_shardings=Format(turned, NamedSharding(MESH, P(None, "X"))))
    for _ in range(3):
        assert cut(np.ones((4, 8))).format.layout.major_to_minor == (1, 0)
    took = jax.jit(lambda x: x + 1, in_shardings=Format(turned, place))
    for _ in range(3):
        np.testing.assert_array_equal(took(y), x + 1)
        with pytest.raises(ValueError, match="does not match the layout of"):
            took(jax.device_put(x, D[0]))
    compiled = took.lower(jax.ShapeDtypeStruct((4, 2), x.dtype)).compile()
    assert compiled.input_formats[0][0].layout == Layout((1, 0), ()) and compiled.output_formats.layout == rows
    assert jax.jit(jnp.sin).lower(y).compile().input_formats[0][0].layout == y.format.layout
    with pytest.raises(ValueError, match="another order in memory"):
        compiled(jax.device_put(x, D[0]))
    struct = jax.ShapeDtypeStruct((4, 2), x.dtype, sharding=Format(turned, place))
    assert struct.format.layout == turned and struct.update(shape=(2, 4)).format.layout == turned
    for use in (
        lambda: jax.device_put(x, Format(Layout((0, 1, 2)), place)),
        lambda: jax.jit(lambda x: x, in_shardings=Format(Layout((0, 1, 2)), place))(x),
        lambda: jax.jit(lambda x: x, out_shardings=Format(Layout((0, 1, 2)), place))(x),
        lambda: layout.with_layout_constraint(y, Layout((0,))),
    ):
        with pytest.raises(ValueError, match=r"its layout .* orders|rank of the value"):
            use()
    with pytest.raises(ValueError, match="device-local layouts directly"):
        jax.jit(lambda x: x, in_shardings=turned)
    with pytest.raises(ValueError, match="has what is no Layout"):
        layout.with_layout_constraint(y, Layout.AUTO)
    with pytest.raises(TypeError, match="leaves the layout to the compiler"):
        jax.ShapeDtypeStruct((4, 2), x.dtype, sharding=Format(Layout.AUTO, place))
    with pytest.raises(TypeError, match="'sharding' is a Sharding or None, got 3"):
        layout.Format(layout.Layout.AUTO, 3)
    with pytest.raises(ValueError, match="order of axes"):
        layout.Layout((0, 0))


def test_programs_over_meshes_without_devices_get_them_when_they_are_compiled():
    place = NamedSharding(MESH.abstract_mesh, P("X"))
    traced = jax.jit(lambda a: a * 2).trace(jax.ShapeDtypeStruct((8,), float, sharding=place))
    lowered = traced.lower(lowering_platforms=("cpu",))
    compiled = lowered.compile(device_assignment=tuple(D))
    assert compiled.input_shardings[0][0] == CUT == compiled.output_shardings == compiled(XS).sharding
    backwards = NamedSharding(Mesh(D[::-1], "X"), P("X"))
    assert lowered.compile(device_assignment=tuple(D[::-1])).output_shardings == backwards
    with jax.set_mesh(MESH):
        assert jax.jit(jnp.sin).lower(jax.ShapeDtypeStruct((8,), float, sharding=place)).compile()(XS).sharding == CUT
    with pytest.raises(RuntimeError, match="device_assignment cannot be `None`"):
        lowered.compile()
    with pytest.raises(ValueError, match=r"size of abstract mesh .* is 4, but"):
        lowered.compile(device_assignment=(D[0],))
    with pytest.raises(ValueError, match="say for what to lower it"):
        traced.lower()


def test_compiled_functions_say_where_results_lie():
    info = jax.jit(lambda a: a, out_shardings=CUT).lower(X).compile().out_info
    assert info.sharding == CUT and info.format.layout.major_to_minor == (0,)


def test_what_stages_say_of_arguments_that_are_not_read():
    compiled = jax.jit(lambda x, y: 2 * x, in_shardings=(CUT, CUT)).lower(X, X).compile()
    assert compiled.input_shardings == ((CUT, None), {}) and compiled.input_formats[0][1].sharding is None
    kept = jax.jit(lambda x, y: 2 * x, in_shardings=(CUT, CUT), keep_unused=True).lower(X, X).compile()
    assert kept.input_shardings == ((CUT, CUT), {})
    assert XS.on_device_size_in_bytes() == X.nbytes and jax.device_put(X, WHOLE).on_device_size_in_bytes() > X.nbytes


@pytest.mark.parametrize("spec", [P("X"), P()])
def test_arrays_over_devices_have_no_one_address(spec):
    cut = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(MESH, spec))
    with pytest.raises(BufferError, match=f"the array lies on {len(cut.devices())} devices"):
        cut.__dlpack__()
    with pytest.raises(BufferError, match="__dlpack_device__"):
        cut.__dlpack_device__()
    for read in (memoryview, bytes):
        with pytest.raises(BufferError, match="several devices"):
            read(cut)
    with pytest.raises(jax.errors.JaxRuntimeError, match="unsharded arrays"):
        cut.unsafe_buffer_pointer()
    assert np.asarray(cut).tolist() == np.array(cut).tolist() == list(range(8))
    assert np.asarray(cut, copy=False).base is not None and np.concatenate([cut, cut]).shape == (16,)
    alone = jax.device_put(cut, NamedSharding(jax.sharding.Mesh(jax.devices()[:1], "X"), P("X")))
    assert memoryview(alone).nbytes == 32 and alone.__dlpack_device__() == (1, 0)
    whole = jnp.arange(8.0)
    assert np.from_dlpack(whole).ctypes.data == whole.unsafe_buffer_pointer()


def test_a_format_that_says_nothing_is_no_place_and_types_stay_types():
    x, kind = jnp.arange(3.0), jax.ShapeDtypeStruct((3,), "float32")
    assert jax.device_put(x, layout.Format()).tolist() == [0, 1, 2]
    assert jax.device_get({"a": kind})["a"] is kind
