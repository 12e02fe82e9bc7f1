"""Programs written as HLO. That the text is HLO, and means the same, was seen by giving such texts to XLA."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
I = np.arange(6, dtype=np.int32).reshape(2, 3)


def text(f, *args):
    return jax.jit(f, keep_unused=True).lower(*args).compiler_ir("hlo").as_hlo_text()


def test_a_whole_module():
    def affine(x):
        return x @ x.T + 1.0

    assert (
        text(affine, X)
        == """HloModule jit_affine, entry_computation_layout={(f32[2,3]{1,0})->f32[2,2]{1,0}}

ENTRY main.1 {
  x.1 = f32[2,3]{1,0} parameter(0)
  transpose.1 = f32[3,2]{1,0} transpose(x.1), dimensions={1,0}
  dot_general.1 = f32[2,2]{1,0} dot(x.1, transpose.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  constant.1 = f32[] constant(1)
  broadcast.1 = f32[2,2]{1,0} broadcast(constant.1), dimensions={}
  ROOT add.1 = f32[2,2]{1,0} add(dot_general.1, broadcast.1)
}

"""
    )


def switched(x):
    return lax.switch(x.astype(int)[0, 0], [jnp.sin, jnp.cos, lambda x: x], x)


def looped(x):
    return lax.while_loop(lambda c: c.sum() < 3, lambda c: c + x, x)


def scanned(x):
    return lax.scan(lambda c, row: (c + row, c), x[0], x, reverse=True)


@pytest.mark.parametrize(("f", "x", "has"), [
    (lambda x: x**3, X, ["multiply(x.1, x.1)", "multiply(x.1, integer_pow.1)"]),
    (lambda x: x**-1, X, ["divide(broadcast.1, x.1)"]),
    (lambda x: x**0, X, ["ROOT broadcast.1 = f32[2,3]{1,0} broadcast(constant.1)"]),
    (jnp.conj, X + 1j, ["= f32[2,3]{1,0} imag(", "negate(imag.1)", "complex(real.1, neg.1)"]),
    (lambda x: x + (1 + 2j), X + 1j, ["constant((1, 2))"]),
    (lambda x: x > 1, X, ["= pred[2,3]{1,0} compare(x.1, broadcast.1), direction=GT"]),
    (lambda x: jnp.where(x > 1, x, 0), X, ["select(gt.1, x.1,"]),
    (lambda x: lax.clamp(np.float32(0), x, np.float32(1)), X, ["clamp(constant.1, x.1, constant.2)"]),
    (lambda x: x.astype("bfloat16"), X, ["= bf16[2,3]{1,0} convert(x.1)"]),
    (lambda x: x.astype("float8_e4m3fn"), X, ["= f8e4m3fn[2,3]{1,0} convert(x.1)"]),
    (lambda x: lax.reduce_precision(x, 5, 7), X, ["exponent_bits=5, mantissa_bits=7"]),
    (jnp.round, X, ["round-nearest-even("]),
    (lambda x: lax.rev(x, (0, 1)), X, ["reverse(x.1), dimensions={0,1}"]),
    (lambda x: x[:, ::2], X, ["slice={[0:2], [0:3:2]}"]),
    (lambda x: lax.pad(x, np.float32(0), ((1, 2, 0), (0, -1, 1))), X, ["padding=1_2x0_-1_1"]),
    (lambda x: lax.concatenate([x, x], 1), X, ["concatenate(x.1, x.1), dimensions={1}"]),
    (lambda x: lax.broadcast_in_dim(x[:, :1], (2, 4), (0, 1)), X, ["[2]{0} reshape(", "(reshape.1), dimensions={0}"]),
    (lambda x: x * x[:, :1], X, ["[2]{0} reshape(", "(reshape.1), dimensions={0}", "multiply(x.1, broadcast.1)"]),
    (lambda x: jnp.stack([x, x]), X, ["concatenate(", "), dimensions={0}"]),
    (lambda x: jnp.split(x, [1], 1), X, ["slice={[0:2], [1:3]}"]),
    (lambda x: lax.dynamic_slice(x, (1, 0), (1, 2)), X, ["dynamic_slice_sizes={1,2}"]),
    (lambda x: x[jnp.argsort(x[:, 0])], X, ["offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}"]),
    (lambda x: lax.iota("int32", 3), X, ["= s32[3]{0} iota(), iota_dimension=0"]),
    (lambda x: x.sum(0), X, ["reduce(x.1, constant.1), dimensions={0}, to_apply=region.1", "add(Arg_0.1, Arg_1.1)"]),
    (lambda x: x.max(), I, ["constant(-2147483648)", "maximum(Arg_0.1, Arg_1.1)"]),
    (lambda x: lax.reduce_and(x, (1,)), I, ["constant(-1)"]),
    (lambda x: x.min(), X, ["constant(inf)"]),
    (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), ((0, 0), (0, 1))), X, [
        "reduce-window(x.1, constant.1), window={size=1x2 stride=1x2 pad=0_0x0_1}"]),
    (lambda x: jnp.dot(x, x.T, precision="highest"), X, ["operand_precision={highest,highest}"]),
    (lambda x: jnp.dot(x, x.T, precision="BF16_BF16_F32"), X, ["algorithm=dot_bf16_bf16_f32"]),
    (lambda x: lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,)))), X, ["lhs_batch_dims={0}, rhs_batch_dims={0}"]),
    (lambda x: lax.conv_general_dilated(x[None, :, :, None], x[None, :, :, None], (1, 2), "SAME", rhs_dilation=(2, 1),
                                        dimension_numbers=("NHWC", "OHWI", "NHWC"), precision="high"), X, [
        "window={size=2x3 stride=1x2 pad=1_1x1_1 rhs_dilate=2x1}, dim_labels=b01f_o01i->b01f, operand_precision={hi"]),
    (jnp.fft.rfft, X, ["= c64[2,2]{1,0} fft(", "fft_type=RFFT, fft_length={3}"]),
    (jnp.argmax, X, ['custom_call_target="argmax"']),
    (jax.nn.relu, X, ["call(x.1), to_apply=", "ROOT max.1 = f32[2,3]{1,0} maximum("]),
    (switched, X, ["conditional(", "branch_computations={branch.1,branch.2,branch.3}", "ROOT tuple.1 = (f32["]),
    (looped, X, ["(f32[2,3]{1,0}, f32[2,3]{1,0}) while(tuple.2), condition=condition.1, body=body.1"]),
    (scanned, X, ["while(", "subtract(constant", "dynamic-slice(", "dynamic-update-slice(", "constant(2)"]),
    (lambda x: jax.random.key(0), X, ["= u32[2]{0} "]),
    (lambda x: (x, x), X, ["ROOT tuple.1 = (f32[2,3]{1,0}, f32[2,3]{1,0}) tuple(x.1, x.1)"]),
    (lambda x: x + np.arange(20.0, dtype=np.float32)[:, None, None], X, ["f32[20,1,1]{2,1,0} constant({...})"]),
])  # fmt: skip
def test_instructions(f, x, has):
    found = text(f, x)
    for part in has:
        assert part in found, found


def test_constants_of_double_precision_have_all_digits():
    with jax.enable_x64(True):
        assert "f64[] constant(0.10000000000000001)" in text(lambda x: x * 0.1, np.ones(2))


def compiled_over_mesh(f, *args):
    """What each of 2 x 2 devices runs, for (array, the axes that it is cut by)."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), devices=jax.devices()[:4])
    with jax.set_mesh(mesh):
        placed = [jax.device_put(a, jax.P(*cut)) for a, cut in args]
        return jax.jit(f).lower(*placed).compile().as_text()


A = np.arange(16.0, dtype=np.float32).reshape(4, 4)


@pytest.mark.parametrize(
    "f, cut, line",
    [
        (lambda a: a.sum(0), ("x",), "f32[4]{0} all-reduce(reduce_sum.2), replica_groups={{0,2},{1,3}}, to_apply="),
        (lambda a: a.max(1), (None, "y"), "f32[4]{0} all-reduce(reduce_max.2), replica_groups={{0,1},{2,3}}"),
        (lambda a: a.sum(), ("x", "y"), "f32[] all-reduce(reduce_sum.2), replica_groups={{0,1,2,3}}"),
        (lambda a: jax.reshard(a, jax.P()), ("x",), "all-gather(a.1), replica_groups={{0,2},{1,3}}, dimensions={0}"),
        (lambda a: jax.reshard(a, jax.P(None, "x")), ("x",), "all-to-all(slice.1, slice.2), replica_groups={{0,2},"),
    ],
)  # fmt: skip
def test_collectives_of_what_each_device_runs(f, cut, line):
    """Programs that look for them in compiled text find them: JAX's tutorials, and tests of libraries."""
    text = compiled_over_mesh(f, (A, cut))
    assert line in text and text.startswith("HloModule jit__lambda_")


def test_parts_that_are_scattered():
    text = compiled_over_mesh(lambda a, b: jnp.dot(a, b, out_sharding=jax.P("x")), (A, (None, "x")), (A, ("x",)))
    assert "all-to-all(" in text or "reduce-scatter(" in text
    whole = jax.jit(jnp.sin).lower(A).compile()
    assert whole.as_text() == whole.as_text("asm")  # what is not cut is shown as before
