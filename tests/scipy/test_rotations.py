"""Rotations against SciPy in double precision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial import transform as theirs

import pullback
import pullback.numpy as jnp
from pullback.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(0)
QUATS = np.concatenate([RNG.normal(size=(20, 4)), np.eye(4), -np.eye(4)])
EULER = [*map("".join, itertools.permutations("xyz")), "xyx", "xzx", "yxy", "yzy", "zxz", "zyz"]


pytestmark = pytest.mark.usefixtures("x64")


def same(ours, other):
    np.testing.assert_allclose(ours.as_matrix(), other.as_matrix(), atol=1e-12)


def test_representations():
    ours, other = Rotation.from_quat(QUATS), theirs.Rotation.from_quat(QUATS)
    same(ours, other)
    for name in ("as_rotvec", "as_mrp", "magnitude"):
        np.testing.assert_allclose(getattr(ours[:20], name)(), getattr(other[:20], name)(), atol=1e-12)
    np.testing.assert_allclose(ours.as_quat(canonical=True), other.as_quat(canonical=True), atol=1e-12)
    np.testing.assert_allclose(ours.as_quat(scalar_first=True), other.as_quat()[:, [3, 0, 1, 2]], atol=1e-12)
    same(Rotation.from_matrix(other.as_matrix()), other)
    for scale in (0, 1e-9, 1e-4, 1.0, 3.0):
        v = RNG.normal(size=(5, 3)) * scale
        same(Rotation.from_rotvec(v), theirs.Rotation.from_rotvec(v))
        same(Rotation.from_rotvec(v, degrees=True), theirs.Rotation.from_rotvec(v, degrees=True))
        same(Rotation.from_mrp(v), theirs.Rotation.from_mrp(v))
        np.testing.assert_allclose(
            Rotation.from_rotvec(v / 2).as_rotvec(), theirs.Rotation.from_rotvec(v / 2).as_rotvec(), atol=1e-12
        )


@pytest.mark.parametrize("seq", [*EULER, *map(str.upper, EULER)])
def test_euler_angles(seq):
    angles = RNG.uniform(-3, 3, size=(6, 3))
    same(Rotation.from_euler(seq, angles), theirs.Rotation.from_euler(seq, angles))
    ours, other = Rotation.from_quat(QUATS[:20]), theirs.Rotation.from_quat(QUATS[:20])
    np.testing.assert_allclose(ours.as_euler(seq, degrees=True), other.as_euler(seq, degrees=True), atol=1e-9)
    aligned = Rotation.from_quat(QUATS[20:])  # also where two axes fall together
    same(Rotation.from_euler(seq, aligned.as_euler(seq)), theirs.Rotation.from_quat(QUATS[20:]))


def test_one_and_two_axes():
    same(Rotation.from_euler("z", 90, degrees=True), theirs.Rotation.from_euler("z", 90, degrees=True))
    same(Rotation.from_euler("x", np.ones(3)), theirs.Rotation.from_euler("x", np.ones((3, 1))))
    same(Rotation.from_euler("XY", np.array([0.1, 0.2])), theirs.Rotation.from_euler("XY", [0.1, 0.2]))


def test_operations():
    p, q = Rotation.from_quat(QUATS[:5]), Rotation.from_quat(QUATS[5:10])
    a, b = theirs.Rotation.from_quat(QUATS[:5]), theirs.Rotation.from_quat(QUATS[5:10])
    v = RNG.normal(size=(5, 3))
    same(p * q, a * b)
    same(p.inv(), a.inv())
    np.testing.assert_allclose(p.apply(v), a.apply(v))
    np.testing.assert_allclose(p.apply(v, inverse=True), a.apply(v, inverse=True))
    np.testing.assert_allclose(p[0].apply(v), a[0].apply(v))
    same(p.mean(), a.mean())
    weights = RNG.uniform(size=5)
    same(p.mean(weights), a.mean(weights))
    same(Rotation.concatenate([p, q[0]]), theirs.Rotation.concatenate([a, b[0]]))
    assert (
        len(p) == 5 and not p.single and p[0].single and Rotation.identity().single and len(Rotation.identity(3)) == 3
    )
    drawn = Rotation.random(pullback.random.key(0), 7)
    np.testing.assert_allclose(jnp.linalg.norm(drawn.quat, axis=-1), np.ones(7), rtol=1e-6)


def test_interpolation():
    times, at = np.array([0.0, 1, 3, 4]), np.array([0.0, 0.25, 1, 2.5, 4])
    ours = Slerp.init(times, Rotation.from_quat(QUATS[:4]))
    other = theirs.Slerp(times, theirs.Rotation.from_quat(QUATS[:4]))
    same(ours(at), other(at))
    same(ours(0.5), other(0.5))


def test_transformed():
    q = QUATS[:6]
    got = pullback.jit(lambda r, v: r.apply(v))(Rotation.from_quat(q), np.ones(3))
    np.testing.assert_allclose(got, theirs.Rotation.from_quat(q).apply(np.ones(3)))
    got = pullback.vmap(lambda q: Rotation.from_quat(q).as_matrix())(q)
    np.testing.assert_allclose(got, theirs.Rotation.from_quat(q).as_matrix(), atol=1e-12)
    turn = pullback.jacrev(lambda v: Rotation.from_rotvec(v).apply(np.array([1.0, 0, 0])))(np.zeros(3))
    np.testing.assert_allclose(turn, [[0, 0, 0], [0, 0, 1], [0, -1, 0]], atol=1e-12)


def test_errors():
    for call, text in [
        (lambda: Rotation.from_quat(np.ones(3)), r"from_quat: expected shape \(4,\)"),
        (lambda: Rotation.from_euler("abc", np.ones(3)), "got 'abc'"),
        (lambda: Rotation.from_euler("xY", np.ones(2)), "got 'xY'"),
        (lambda: Rotation.from_euler("xyz", np.ones(2)), "expected 3 angles"),
        (lambda: Rotation.identity().as_euler("xxy"), "must differ"),
        (lambda: Slerp.init(np.ones(1), Rotation.identity(1)), "holds two or more"),
        (lambda: Slerp.init(np.ones(3), Rotation.identity(2)), "one time for each"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError, match=r"no len\(\)"):
        len(Rotation.identity())


def test_rotations_promote_freely():
    """What users say of promotion is for the operations that they write."""
    turns = Rotation.from_quat(np.random.default_rng(0).standard_normal((3, 4)).astype("f"))

    def results():
        between = Slerp.init(jnp.arange(3.0), turns)
        return [
            turns.inv().quat, (turns * turns).quat, turns.as_euler("xyz"), turns.as_euler("XYX", degrees=True),
            turns.mean().quat, turns.apply(jnp.ones(3)), turns.as_matrix(), turns.as_rotvec(), turns.as_mrp(),
            Rotation.from_euler("xyz", jnp.ones((3, 3))).quat, between(0.5).quat, between(jnp.array([0.5, 1.5])).quat,
        ]  # fmt: skip

    want = results()
    with pullback.numpy_rank_promotion("raise"), pullback.numpy_dtype_promotion("strict"):
        for found, expected in zip(results(), want, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_rotations_between_others_have_their_type(dtype):
    with pullback.enable_x64(True):
        rotations = Rotation.from_rotvec(jnp.eye(3, dtype=dtype))
        for times in (np.arange(3.0), jnp.arange(3), [0.0, 1.0, 2.0]):
            slerp = Slerp.init(times, rotations)
            for at in (0.5, np.array([0.5, 1.5]), jnp.array([0.5])):
                assert slerp(at).as_quat().dtype == dtype
        np.testing.assert_allclose(slerp(1).as_rotvec().astype(np.float64), [0, 1, 0], atol=2e-3)
