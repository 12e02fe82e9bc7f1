"""Ahead of time: what jit(f).trace, .lower and .compile give, and what they refuse."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax, stages
from pullback.sharding import NamedSharding

# The donated argument of the examples is larger than the results.
pytestmark = pytest.mark.filterwarnings("ignore:Some donated buffers")

X = np.arange(3, dtype=np.float32)
W = np.ones((4, 5), np.float32)


def f(x, p, *, k=1.0):
    return {"a": x @ p["w"] * k, "b": jnp.sum(jnp.sin(x))}


def stages_of(*args, **kwargs):
    traced = jax.jit(f, donate_argnums=0).trace(*args, **kwargs)
    lowered = traced.lower()
    return traced, lowered, lowered.compile()


ARGS = (np.ones((3, 4), np.float32), {"w": W, "unused": X})


def test_every_stage_knows_its_types():
    for stage in stages_of(*ARGS, k=2.0):
        (x, p), kwargs = stage.in_avals
        assert x.shape == (3, 4) and p["w"].dtype == np.float32 and kwargs["k"].weak_type
        assert stage.args_info[0][0].donated and not stage.args_info[0][1]["w"].donated
        assert stage.args_info[0][1]["w"].shape == (4, 5) and stage.donate_argnums == (0,)
        assert stage.out_info["a"].shape == (3, 5) and stage.out_info["b"].dtype == np.float32
        assert stage.out_tree.num_leaves == 2 and stage.in_tree.num_leaves == 4
    assert isinstance(jax.jit(f).trace(*ARGS), stages.Traced) and isinstance(jax.jit(f).lower(*ARGS), stages.Lowered)


def test_every_stage_leads_to_the_result():
    expected = f(*ARGS, k=2.0)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), ARGS)
    traced = jax.jit(f).trace(*shapes, k=2.0)
    compiled = traced.lower().compile()
    for call in (traced, compiled, compiled.call):
        jax.tree.map(np.testing.assert_array_equal, call(*ARGS, k=2.0), jax.jit(f)(*ARGS, k=2.0))
    np.testing.assert_allclose(compiled(*ARGS, k=2.0)["b"], expected["b"], rtol=1e-6)
    assert compiled.input_shardings[0][0].device_set == {jax.devices()[0]}
    assert set(compiled.output_shardings) == {"a", "b"}


@pytest.mark.parametrize("dialect, has", [
    ("jaxpr", "lambda"), ("fused", "reads"), ("loops", "function f"), ("nests", "vector"), ("llvm", "@pb_main"),
    ("asm", "pb_main"),
])  # fmt: skip
def test_texts(dialect, has):
    lowered = jax.jit(f).lower(*ARGS)
    assert has in lowered.as_text(dialect) and has in lowered.compile().as_text(dialect)
    assert lowered.as_text() == lowered.as_text("loops", debug_info=True)


def test_texts_with_lines_and_scopes():
    def scoped(x):
        with jax.named_scope("halves"):
            return x / 2.0

    lowered = jax.jit(scoped).lower(1.0)
    with_lines, without = lowered.as_text("jaxpr", debug_info=True), lowered.as_text("jaxpr")
    assert "[halves]" in with_lines and "test_stages.py" in with_lines and "test_stages.py" not in without


@pytest.mark.parametrize("dialect", ["stablehlo", "mhlo", "assembler"])
def test_unknown_dialects_are_refused_with_what_there_is(dialect):
    lowered = jax.jit(f).lower(*ARGS)
    for look in (lowered.as_text, lowered.compiler_ir, lowered.compile().as_text):
        with pytest.raises(ValueError, match=f"unknown dialect: {dialect}.*expected one of 'jaxpr'.*'asm'"):
            look(dialect)


def test_representations_as_objects():
    lowered = jax.jit(f).lower(*ARGS)
    assert [type(lowered.compiler_ir(d)).__name__ for d in ("jaxpr", None, "loops", "asm")] == [
        "ClosedJaxpr", "Function", "Function", "str",
    ]  # fmt: skip
    text = lowered.compiler_ir("hlo").as_hlo_text()
    assert "ENTRY main.1" in text and text == lowered.as_text("hlo") == lowered.compile().as_text("hlo")


def test_cost_analysis():
    cost = jax.jit(f).lower(*ARGS).compile().cost_analysis()
    assert {"flops", "transcendentals", "bytes accessed"} <= set(cost)
    assert cost["transcendentals"] == 12  # one sin for each element of x
    assert cost["bytes accessed"] == cost["bytes read"] + cost["bytes written"]
    assert 144 <= cost["flops"] < 160  # 2 * 3 * 4 * 5 of the product, two for each element of x
    many = jax.jit(lambda x: lax.scan(lambda c, _: (jnp.exp(c), None), x, length=10)[0]).lower(X)
    assert many.compile().cost_analysis()["transcendentals"] == 30
    assert jax.jit(lambda x: x**2 + jnp.sqrt(x)).lower(X).cost_analysis()["transcendentals"] == 3


def conv(stride, padding):
    return lambda x, w: lax.conv_general_dilated(
        x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@pytest.mark.parametrize(
    "fun, shapes, flops, transcendentals",
    [  # those of JAX
        (lambda x, w, b: x @ w + b, [(1, 784), (784, 64), (64,)], 2 * 784 * 64 + 64, 0),
        (lambda x: x.sum(0), [(10, 4)], 36, 0),
        (lambda x: x.mean(0), [(10, 4)], 40, 0),
        (jax.nn.softmax, [(10, 4)], 150, 40),
        (lambda x: jnp.exp(x) * 2, [(10,)], 10, 10),
        (lambda x: jnp.concatenate([x, x])[::-1], [(10,)], 0, 0),
        (lambda x: x**3, [(10,)], 20, 0),
        (conv(1, "SAME"), [(2, 8, 8, 3), (3, 3, 3, 4)], 23232, 0),
        (conv(2, "SAME"), [(2, 8, 8, 3), (3, 3, 3, 4)], 5808, 0),
        (conv(1, "VALID"), [(2, 8, 8, 3), (3, 3, 3, 4)], 15552, 0),
        (lambda x: lax.cond(x[0] > 0, lambda x: x * 2 + 1, jnp.sin, x), [(10,)], 22, 10),
        (jax.checkpoint(lambda x: jax.jit(jnp.tanh)(x) * x), [(10,)], 10, 10),
    ],
)
def test_costs_of_what_is_written_are_sums(fun, shapes, flops, transcendentals):
    cost = jax.jit(fun).lower(*[jnp.ones(s) for s in shapes]).cost_analysis()
    assert (cost["flops"], cost["transcendentals"]) == (flops, transcendentals)
    assert cost["bytes accessed"] == cost["bytes read"] + cost["bytes written"] > 0


def test_costs_of_loops():
    def loop(x):
        return lax.scan(lambda c, _: (jnp.sin(c) * 2, None), x, None, length=10)[0]

    cost = jax.jit(loop).lower(X).cost_analysis()
    assert (cost["flops"], cost["transcendentals"]) == (30, 30)


def test_cost_analysis_counts_what_equal_groups_share():
    def unrolled(x, w):
        for _ in range(20):
            x = jnp.sin(x @ w) / 2
        return x

    square = jnp.ones((8, 8))
    assert jax.jit(unrolled).lower(square, square).compile().cost_analysis()["transcendentals"] == 20 * 64


def test_memory_analysis():
    memory = stages_of(*ARGS, k=2.0)[2].memory_analysis()
    assert memory.argument_size_in_bytes == 4 * (12 + 20 + 1)  # not what is unused
    assert memory.output_size_in_bytes == 4 * (15 + 1)
    assert memory.generated_code_size_in_bytes > 0 and memory.temp_size_in_bytes == 0
    assert memory.alias_size_in_bytes == memory.host_temp_size_in_bytes == 0
    x = np.ones((64, 64), np.float32)
    assert jax.jit(lambda x: x @ jnp.tanh(x @ x)).lower(x).compile().memory_analysis().temp_size_in_bytes >= x.nbytes


def test_there_is_no_xla_executable():
    with pytest.raises(NotImplementedError, match="no XLA executable; use as_text"):
        jax.jit(f).lower(*ARGS).compile().runtime_executable()
    with pytest.raises(NotImplementedError, match="only 'cpu'"):
        jax.jit(f).trace(*ARGS).lower(lowering_platforms=("tpu",))


def test_compile_options():
    lowered = jax.jit(f).lower(*ARGS)
    lowered.compile({"xla_cpu_enable_fast_math": True})
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option: 'fast'"):
        lowered.compile(compiler_options={"fast": True})


def test_compiled_functions_take_the_dynamic_arguments_only():
    compiled = jax.jit(lambda n, x: x * n, static_argnums=0).lower(3, X).compile()
    np.testing.assert_array_equal(compiled(X), X * 3)
    with pytest.raises(TypeError, match=r"lengths do not match(.|\n)*static arguments are left out"):
        compiled(3, X)


def test_compiled_functions_refuse_transformations():
    compiled = jax.jit(lambda x: x * 2).lower(X).compile()
    with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
        jax.jit(compiled)(X)
    with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
        jax.grad(lambda x: compiled(x).sum())(X)


def test_compiled_functions_refuse_other_types_and_name_all_of_them():
    compiled = stages_of(*ARGS, k=2.0)[2]
    with pytest.raises(TypeError) as error:
        compiled(np.ones((3, 4), np.int32), {"w": W[0], "unused": X}, k=2.0)
    assert "Argument 'x' compiled with float32[3,4] and called with int32[3,4]" in str(error.value)
    assert "Argument 'p['w']' compiled with float32[4,5] and called with float32[5]" in str(error.value)
    assert "unused" not in str(error.value)
    with pytest.raises(TypeError, match=r"at args\[1\].*symmetric difference of key sets: \{'unused'\}"):
        compiled(ARGS[0], {"w": W}, k=2.0)
    with pytest.raises(TypeError, match=r"compiled with input pytree(.|\n)*at kwargs"):
        compiled(*ARGS)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        compiled(object(), ARGS[1], k=2.0)


def test_jitted_functions_are_wrapped():
    assert isinstance(jax.jit(jnp.sin), jax.stages.Wrapped) and not isinstance(lambda x: x, jax.stages.Wrapped)


def test_types_stand_for_arguments_ahead_of_a_call_only():
    f = jax.jit(lambda d, y: d["a"] + y)
    for kind in (jax.core.ShapedArray, jax.ShapeDtypeStruct):
        given = {"a": kind((2,), np.dtype("float32"))}
        compiled = f.lower(given, 2.0).compile()
        np.testing.assert_array_equal(compiled({"a": np.ones(2, np.float32)}, 2.0), [3, 3])
        assert f.trace(given, 2.0).jaxpr.in_avals[0].shape == (2,)
        with pytest.raises(TypeError, match=r": at path d\['a'\].*not a valid JAX type"):
            f(given, 2.0)
    aval = jax.core.ShapedArray((2,), np.dtype("float32"))
    assert jax.api_util.shaped_abstractify(aval) is aval


def test_constraints_inside_are_not_the_places_of_results():
    sharding = NamedSharding(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,)), jax.P("i"))
    x = jnp.ones(4)
    assert jax.jit(lambda v: jax.lax.with_sharding_constraint(v, sharding)).trace(x).out_info.sharding is None
    assert jax.jit(lambda v: v, out_shardings=sharding).trace(x).out_info.sharding == sharding
