"""Remainders of floats are C's fmod bit by bit, in the lanes that one fma serves and in those that it does not."""

import numpy as np
import pytest
from loops.math import kit

import pullback
from pullback.loops.ir.ir import RARE, Op
from pullback.loops.ir.visit import subexpressions

N = 20_000


def arguments(dtype):
    """Edges with edges, random bits, near and far quotients, whole multiples and their neighbours."""
    rng = np.random.default_rng(0)
    kind = kit.NP_DTYPE[dtype]
    edge = np.concatenate([kit.edges(dtype), np.array([0.7, 2.0**20 - 1, 2.0**24 + 2, 1e10], kind)])
    x, y = (part.ravel() for part in np.meshgrid(edge, edge))
    parts = [(x, y), (kit.bit_patterns(dtype, N, 1), kit.bit_patterns(dtype, N, 2))]
    for scale in (1, 1e6, 1e12):
        parts.append(((scale * rng.normal(size=N)).astype(kind), rng.normal(size=N).astype(kind)))
    parts.append((rng.integers(-(10**6), 10**6, N).astype(kind), rng.integers(1, 1000, N).astype(kind)))
    by = rng.normal(size=N).astype(kind)
    multiple = by * rng.integers(1, 2**20, N).astype(kind)
    parts += [(multiple, by), (np.nextafter(multiple, np.zeros(1, kind)), by)]
    return tuple(np.concatenate([part[k] for part in parts]) for k in (0, 1))


def differing(got, want):
    bits = f"u{got.itemsize}"
    same = (got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))
    return np.flatnonzero(~same)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_is_fmod(dtype):
    x, y = arguments(dtype)
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    bad = differing(kit.compiled("rem", x, y), want)
    assert not bad.size, [(x[k], y[k], want[k]) for k in bad[:5]]
    bad = differing(kit.interpreted("rem", x, y).astype(x.dtype), want)
    assert not bad.size, [(x[k], y[k], want[k]) for k in bad[:5]]


@pytest.mark.parametrize("by", [0.7, -3.0, 7.0, 1e-3, 0.0, np.inf, np.nan, 1e-40])
def test_by_one_number(by):
    x, _ = arguments("f32")
    by = np.float32(by)
    with np.errstate(all="ignore"):
        want = np.fmod(x, by)
    bad = differing(kit.compiled("rem", x, by), want)
    assert not bad.size, [(x[k], want[k]) for k in bad[:5]]


def test_quotients_of_moderate_size_need_no_library():
    """What calls fmod, for each lane by itself, stands in a branch that they do not take."""
    x, y = np.float32([5, 6, -7, 900001, 0]), np.float32([2, 4, 5, 1.25, 3])
    root, variables = kit.expansion("rem", ("f32", "f32"))
    (choice,) = (node for node in subexpressions((root,)) if isinstance(node, Op) and RARE in node.attrs)
    values = dict(zip(variables, (x, y), strict=True))
    assert not kit.evaluate(choice.args[0], values).any()
    assert (kit.evaluate(choice.args[2], values) == np.fmod(np.abs(x), y)).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_programs_keep_denormal_remainders(dtype):
    """Programs flush denormal results of additions and products; remainders are none of those."""
    tiny = np.finfo(kit.NP_DTYPE[dtype]).tiny
    least = np.finfo(kit.NP_DTYPE[dtype]).smallest_subnormal
    edge = np.array([least, 5 * least, tiny / 3, tiny, 1.5 * tiny, 40 * tiny, tiny * 2.0**20 + tiny, 0.7, 2.5, 1e30])
    x, y = (part.ravel() for part in np.meshgrid(np.concatenate([edge, -edge]), edge))
    x, y = (part.astype(kit.NP_DTYPE[dtype]) for part in (x, y))
    with pullback.enable_x64(dtype == "f64"):
        for f in (pullback.numpy.fmod, pullback.jit(pullback.numpy.fmod)):
            bad = differing(np.asarray(f(x, y)), np.fmod(x, y))
            assert not bad.size, [(x[k], y[k], np.fmod(x, y)[k]) for k in bad[:5]]
        together = pullback.jit(pullback.numpy.remainder)(x, y)
        assert not differing(np.asarray(together), np.asarray(pullback.numpy.remainder(x, y))).size
