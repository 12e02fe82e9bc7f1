"""Counts of operations and bytes: JAX's numbers."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import roofline as counted
from pullback.extend.core import Primitive
from pullback.sharding import AbstractMesh
from pullback.sharding import PartitionSpec as P


def typed(*shape, dtype=jnp.float32):
    return pullback.ShapeDtypeStruct(shape, dtype)


X, Y = typed(5, 7), typed(7, 3)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
PUT = lax.ScatterDimensionNumbers((1,), (0,), (0,))
PLACES = typed(3, 1, dtype=jnp.int32)
IMAGE, KERNEL = typed(1, 2, 6, 6), typed(3, 2, 2, 2)


def convolved(*options):
    return lambda x, k: lax.conv_general_dilated(x, k, *options)


# function, arguments -> unfused operations, unfused bytes, most bytes at once; as JAX 0.10.2 counts them
UNFUSED = [
    (jnp.sin, [X], 35, 280, 140),
    (lax.tanh, [X], 0, 0, 140),
    (lambda x: x + 1, [X], 35, 284, 140),
    (lax.lt, [X, X], 35, 315, 280),
    (lambda x: jnp.sin(jnp.cos(x)) * x, [typed(3, 4)], 36, 336, 96),
    (lambda x: (jnp.sin(x), x)[1], [X], 0, 0, 140),
    (lax.select_n, [typed(5, 7, dtype=bool), X, X], 35, 175, 315),
    (lambda x: x.sum(0), [X], 28, 168, 140),
    (lambda x: lax.cumsum(x, 1), [X], 7, 280, 140),
    (lambda x: lax.cumlogsumexp(x, 0), [X], 10, 280, 140),
    (lambda x, i: lax.gather(x, i, ROWS, (1, 7)), [X, PLACES], 0, 180, 152),
    (lambda x, i: lax.gather(x, i, ROWS, (1, 7), mode="fill"), [X, PLACES], 33, 180, 152),
    (lambda x, i, u: lax.scatter(x, i, u, PUT), [X, PLACES, typed(3, 7)], 0, 264, 236),
    (lambda x, i, u: lax.scatter_add(x, i, u, PUT), [X, PLACES, typed(3, 7)], 21, 264, 236),
    (convolved((1, 1), "VALID"), [IMAGE, KERNEL], 1200, 684, 384),
    (convolved((1, 1), "SAME", None, (2, 1)), [IMAGE, KERNEL], 1320, 816, 432),
    (convolved((2, 2), ((3, 3), (0, 0)), (2, 1)), [IMAGE, KERNEL], 432, 672, 384),
    (lambda x: pullback.pure_callback(np.sin, x, x), [X], 0, 280, 140),
    (lambda x: pullback.debug.callback(print, x), [X], 0, 140, 140),
    (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=10), [X], 35, 280, 140),
    (pullback.jit(lambda x: pullback.jit(jnp.sin)(x) + x), [X], 70, 700, 280),
    (lambda x: (jnp.broadcast_to(x, (10, 5, 7)) + 1).sum(), [X], 699, 4208, 1400),
]


@pytest.mark.parametrize("case", range(len(UNFUSED)))
def test_what_each_equation_takes(case):
    f, arguments, flops, moved, peak = UNFUSED[case]
    _, result = counted.roofline(f)(*arguments)
    assert (result.unfused_flops, result.unfused_hbm_bytes, result.peak_hbm_bytes) == (flops, moved, peak)
    assert result.flops == result.hbm_bytes == 0 and not result.ici_bytes


def test_products_are_what_is_left_when_all_is_fused():
    types, result = counted.roofline(lambda x, y: jnp.sin(x @ y))(X, Y)
    assert types == typed(5, 3) and result.flops == 2 * 5 * 7 * 3 and result.unfused_flops == result.flops + 15
    assert result.hbm_bytes == 4 * (35 + 21 + 15)
    for pinned, moved in (({"pin_lhs_in_vmem": True}, 21), ({"pin_rhs_in_vmem": True}, 35 + 15)):
        assert counted.roofline(jnp.dot, **pinned)(X, Y)[1].hbm_bytes == 4 * moved


# sizes of the mesh, collective over axes -> bytes sent, in those of the operand, and steps
SENT = [
    ((4,), lambda x, a: lax.all_gather(x, a), 3, 4),
    ((2, 4), lambda x, a: lax.all_gather(x, a), 3.5, 8),
    ((4,), lambda x, a: lax.psum(x, a), 1.5, 8),
    ((2, 4), lambda x, a: lax.psum(x, a), 0.875, 16),
    ((4,), lambda x, a: lax.psum_scatter(x, a, tiled=True), 0.75, 4),
    ((2,), lambda x, a: lax.all_to_all(x, a, 0, 0, tiled=True), 1, 1),
    ((8,), lambda x, a: lax.all_to_all(x, a, 0, 0, tiled=True), 2, 4),
    ((8, 4), lambda x, a: lax.all_to_all(x, a, 0, 0, tiled=True), 2, 6),
    ((4, 2), lambda x, a: lax.all_to_all(x, a, 0, 0, tiled=True), 2, 3),
    ((8,), lambda x, a: lax.ppermute(x, a, [(i, (i + 3) % 8) for i in range(8)]), 3, 3),
    ((8,), lambda x, a: lax.ppermute(x, a, [(i, 7 - i) for i in range(8)]), 4, 3),
    ((2,), lambda x, a: lax.ppermute(x, a, [(0, 1), (1, 0)]), 2, 1),
    ((4, 4), lambda x, a: lax.ppermute(x, a, [(0, 10)]), 1, 4),
    ((1,), lambda x, a: lax.psum(x, a), 0, 0),
]


@pytest.mark.parametrize("case", range(len(SENT)))
def test_what_collectives_send(case):
    sizes, f, sent, steps = SENT[case]
    axes = tuple("ab"[: len(sizes)])
    mesh = AbstractMesh(sizes, axes)
    mapped = pullback.shard_map(
        lambda x: f(x, axes if len(axes) > 1 else axes[0]), mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False
    )
    _, result = counted.roofline(mapped)(typed(64, 2))
    assert result.ici_bytes == dict.fromkeys(axes, sent * 512) and result.ici_latency == dict.fromkeys(axes, steps)


def test_functions_over_a_mesh_are_those_of_one_device():
    mesh = AbstractMesh((2, 4), ("a", "b"))
    _, result = counted.roofline(lambda x: lax.psum(x @ x.T, "a"), mesh, P("a", "b"), P(None, "b"))(typed(16, 32))
    assert (result.flops, result.hbm_bytes, result.peak_hbm_bytes, result.ici_bytes) == (1024, 768, 512, {"a": 256})


def test_gradients():
    narrow = [typed(*x.shape, dtype=jnp.bfloat16) for x in (X, Y)]
    types, both = counted.roofline(lambda x, y: jnp.sin(x) @ y, vjp=True)(*narrow)
    assert types == tuple(narrow) and both.flops == 3 * 210 and both.unfused_flops == both.flops + 3 * 35
    types, forward, backward = counted.roofline_and_grad(
        lambda x, y: jnp.sin(x) @ y, AbstractMesh((2,), ("a",)), (P(), P()), P()
    )(X, Y)
    assert types == typed(5, 3) and forward.flops == 210 and backward.flops == 420
    assert backward.unfused_flops == 420 + 35 and backward.hbm_bytes == 2 * forward.hbm_bytes


def test_rules_of_ones_own(caplog):
    known, unknown = (Primitive(f"roofline_{name}") for name in ("known", "unknown"))
    for p in (known, unknown):
        p.def_abstract_eval(lambda x, **_: x)
    seen = []

    @counted.register_roofline(known)
    def rule(context, x, *, times):
        seen.append((context.primitive, context.avals_out[0].shape, x))
        return counted.RooflineResult(flops=times * x.size, ici_bytes={"a": 1})

    _, result = counted.roofline(lambda x: known.bind(unknown.bind(x), times=3) + known.bind(x, times=1))(X)
    assert result.flops == 4 * 35 and result.ici_bytes == {"a": 2} and result.unfused_flops == 35
    assert seen[0] == (known, (5, 7), counted.RooflineShape(shape=(5, 7), dtype=np.dtype("float32")))
    assert "No roofline rule for roofline_unknown" in caplog.text
    caplog.clear()
    counted.register_standard_roofline(unknown)
    assert counted.roofline(unknown.bind)(X)[1].unfused_flops == 0 and not caplog.text


def test_results_are_added():
    one = counted.RooflineResult(flops=1, ici_latency={"a": 2}, peak_hbm_bytes=5)
    two = one + counted.RooflineResult(flops=2, ici_latency={"a": 1, "b": 1}, peak_hbm_bytes=3)
    assert two == counted.RooflineResult(flops=3, ici_latency={"a": 3, "b": 1}, peak_hbm_bytes=5)
    assert one * 3 == counted.RooflineResult(flops=3, ici_latency={"a": 6}, peak_hbm_bytes=15)
    with pytest.raises(NameError, match="unbound axis name"):
        counted.roofline(lambda x: lax.psum(x, "a"))(X)
