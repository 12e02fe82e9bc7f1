"""Rotations of space as unit quaternions (x, y, z, w), one or a stack, as SciPy has them; trees for jit and vmap.

J. Diebel, Representing Attitude: Euler Angles, Unit Quaternions, and Rotation Vectors, 2006.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core import Tracer
from pullback.core.explain import check, explain_methods
from pullback.core.kinds import ARRAY, FLAG, INTEGER, NESTED, TEXT, table
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.spatial.transform import PAGES as _PAGES
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.promoting import methods_promoting_freely
from pullback.util.record import NamedTuple

__all__ = ["Rotation", "Slerp"]

_AXES = "xyz"


def _floats(x: Any) -> Any:
    x = jnp.asarray(x)
    return x.astype(dtypes.to_inexact_dtype(x.dtype))


def _check_last(name: str, x: Any, size: int) -> Any:
    if x.ndim not in (1, 2) or x.shape[-1] != size:
        raise ValueError(f"{name}: expected shape ({size},) or (n, {size}), got {x.shape}")
    return x


def _unit(q: Any) -> Any:
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


def _compose(p: Any, q: Any) -> Any:
    """The quaternion of the rotation q followed by p."""
    a, b = p[..., :3], q[..., :3]
    vector = p[..., 3:] * b + q[..., 3:] * a + jnp.cross(a, b)
    return jnp.concatenate([vector, p[..., 3:] * q[..., 3:] - jnp.sum(a * b, -1, keepdims=True)], -1)


def _chosen(flag: Any, function: Callable[[Any], Any], x: Any) -> Any:
    """function(x) where the flag holds, which may be traced; else x."""
    if isinstance(flag, Tracer):
        return jnp.where(flag, function(x), x)
    return function(x) if flag else x


@methods_promoting_freely
class Rotation(NamedTuple):
    """Rotations as unit quaternions, quat: f[4] or f[n, 4] with the scalar last."""

    quat: Any

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """From quaternions (x, y, z, w), which need not be of length 1."""
        return cls(_unit(_check_last("from_quat", _floats(quat), 4)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """From vectors along the axes, as long as the angles."""
        check("from_rotvec", NESTED, degrees=degrees)
        v = _check_last("from_rotvec", _floats(rotvec), 3)
        v = _chosen(degrees, jnp.deg2rad, v)
        squared = jnp.sum(v * v, -1, keepdims=True)
        small = squared < 1e-6
        angle = jnp.sqrt(jnp.where(small, 1, squared))
        series = 0.5 - squared / 48 + squared * squared / 3840
        scale = jnp.where(small, series, jnp.sin(angle / 2) / angle)
        w = jnp.where(small, 1 - squared / 8 + squared * squared / 384, jnp.cos(angle / 2))
        return cls(jnp.concatenate([scale * v, w], -1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """From modified Rodrigues parameters: vectors along the axes, as long as tan(angle / 4)."""
        v = _check_last("from_mrp", _floats(mrp), 3)
        squared = jnp.sum(v * v, -1, keepdims=True)
        return cls(jnp.concatenate([2 * v, 1 - squared], -1) / (1 + squared))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """From rotation matrices f[3, 3] or f[n, 3, 3]."""
        m = _floats(matrix)
        if m.ndim not in (2, 3) or m.shape[-2:] != (3, 3):
            raise ValueError(f"from_matrix: expected shape (3, 3) or (n, 3, 3), got {m.shape}")
        d = [m[..., k, k] for k in range(3)]
        trace = d[0] + d[1] + d[2]
        # Four ways to divide; the one by the largest element is accurate.
        rows = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            parts = [None] * 4
            parts[i] = 1 - trace + 2 * d[i]
            parts[j] = m[..., j, i] + m[..., i, j]
            parts[k] = m[..., k, i] + m[..., i, k]
            parts[3] = m[..., k, j] - m[..., j, k]
            rows.append(jnp.stack(parts, -1))
        skew = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
        rows.append(jnp.stack([*skew, 1 + trace], -1))
        which = jnp.argmax(jnp.stack([*d, trace], -1), -1)
        return cls(_unit(jnp.take_along_axis(jnp.stack(rows, -2), which[..., None, None], -2)[..., 0, :]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """From rotations about the axes in `seq` one after the other: 'xyz' fixed ones, 'XYZ' those that move along.

        angles: f[] for one axis, else f[k] or f[n, k] for k of them.
        """
        axes, moving = _sequence(seq, (1, 2, 3))
        check("from_euler", ARRAY, angles=angles)
        check("from_euler", NESTED, degrees=degrees)
        angles = _floats(angles)
        angles = _chosen(degrees, jnp.deg2rad, angles)
        if len(axes) == 1 and (not angles.ndim or angles.shape[-1] != 1):
            angles = angles[..., None]
        if angles.ndim not in (1, 2) or angles.shape[-1] != len(axes):
            raise ValueError(f"from_euler: expected {len(axes)} angles for '{seq}', got shape {angles.shape}")
        out: Any = None
        for k, axis in enumerate(axes):
            half = angles[..., k, None] / 2
            turn = jnp.concatenate([jnp.sin(half) * np.eye(3)[axis].astype(half.dtype), jnp.cos(half)], -1)
            out = turn if out is None else _compose(out, turn) if moving else _compose(turn, out)
        return cls(out)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """No rotation, `num` times."""
        quat = jnp.array([0.0, 0.0, 0.0, 1.0], dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Rotations drawn uniformly, by normal quaternions."""
        from pullback.random import normal

        return cls(_unit(normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """All rotations in one stack."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @property
    def single(self) -> bool:
        """Whether this is one rotation and no stack."""
        return self.quat.ndim == 1

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[index])

    def __mul__(self, other: Any) -> Any:
        return Rotation(_unit(_compose(self.quat, other.quat))) if isinstance(other, Rotation) else NotImplemented

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1]).astype(self.quat.dtype))

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Vectors f[3] or f[n, 3] after the rotation, or before it with `inverse`."""
        check("apply", NESTED, inverse=inverse)
        vectors = _check_last("apply", _floats(vectors), 3)
        matrix = self.as_matrix()
        matrix = _chosen(inverse, lambda m: jnp.swapaxes(m, -1, -2), matrix)
        return jnp.einsum("...ij,...j->...i", matrix, vectors)

    def magnitude(self) -> Any:
        """The angles, from 0 to pi."""
        return 2 * jnp.arctan2(jnp.linalg.norm(self.quat[..., :3], axis=-1), jnp.abs(self.quat[..., 3]))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation with the least weighted sum of squared (chordal) distances."""
        quat = jnp.atleast_2d(self.quat)
        weights = jnp.ones(quat.shape[0], quat.dtype) if weights is None else _floats(weights)
        if weights.shape != quat.shape[:1]:
            raise ValueError(f"mean: expected {quat.shape[0]} weights, got shape {weights.shape}")
        _, vectors = jnp.linalg.eigh(jnp.einsum("n,ni,nj->ij", weights, quat, quat))
        return Rotation(vectors[:, -1])

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """Quaternions (x, y, z, w), or (w, x, y, z); `canonical`: with w > 0, or the first of x, y, z that is not 0."""
        quat = self.quat
        if canonical:
            ranked = quat[..., [3, 0, 1, 2]]
            first = jnp.argmax(ranked != 0, -1)[..., None]
            quat = jnp.where(jnp.take_along_axis(ranked, first, -1) < 0, -quat, quat)
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self) -> Any:
        """Matrices f[3, 3] or f[n, 3, 3]."""
        x, y, z, w = (self.quat[..., k] for k in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors along the axes, as long as the angles."""
        check("as_rotvec", NESTED, degrees=degrees)
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        v, w = quat[..., :3], quat[..., 3:]
        squared = jnp.sum(v * v, -1, keepdims=True)
        small = squared < 1e-8
        length = jnp.sqrt(jnp.where(small, 1, squared))
        scale = jnp.where(small, 2 + squared / 3, 2 * jnp.arctan2(length, w) / length)
        return _chosen(degrees, jnp.rad2deg, scale * v)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters of the shorter way round."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Three angles about the axes in `seq`; the third is 0 where the first and the last axis fall together."""
        axes, moving = _sequence(seq, (3,))
        check("as_euler", NESTED, degrees=degrees)
        if axes[0] == axes[1] or axes[1] == axes[2]:
            raise ValueError(f"as_euler: consecutive axes of '{seq}' must differ")
        i, j, k = axes[::-1] if moving else axes
        q = self.quat
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        w, x, y, z = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
        a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
        # G. Bernardes, S. Viollet, Quaternion to Euler angles conversion, 2022.
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        low, high = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
        first = jnp.where(low, 2 * half_sum, jnp.where(high, -2 * half_difference, half_sum - half_difference))
        third = jnp.where(low | high, 0, half_sum + half_difference)
        if moving:  # the loss of a degree of freedom falls on the other end of the sequence
            first, third = (
                jnp.where(low | high, 0, half_sum - half_difference),
                jnp.where(low, 2 * half_sum, jnp.where(high, 2 * half_difference, half_sum + half_difference)),
            )
        third = third if symmetric else third * sign
        middle = middle if symmetric else middle - np.pi / 2
        angles = [first, middle, third]
        out = jnp.stack(angles[::-1] if moving else angles, -1)
        out = (out + np.pi) % (2 * np.pi) - np.pi
        return _chosen(degrees, jnp.rad2deg, out)


def _sequence(seq: str, lengths: tuple[int, ...]) -> tuple[list[int], bool]:
    """(axes, whether they move along)"""
    if not isinstance(seq, str) or not re.fullmatch("[xyz]+|[XYZ]+", seq) or len(seq) not in lengths:
        raise ValueError(
            f"Expected axes to be a string of {' or '.join(map(str, lengths))} from 'xyz' or from 'XYZ', got {seq!r}"
        )
    return [_AXES.index(c) for c in seq.lower()], seq.isupper()


@methods_promoting_freely
class Slerp(NamedTuple):
    """Rotations between those at given times, at constant angular velocity; made by `Slerp.init(times, rotations)`."""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """From increasing times f[n] and n rotations, in whose type the times are counted."""
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) == 1:
            raise ValueError(
                "Slerp: argument 'rotations' has nothing to go between; expected a Rotation that holds two or more"
            )
        times = jnp.asarray(times, rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(f"Expected one time for each of {len(rotations)} rotations, got shape {times.shape}")
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times f[] or f[m]."""
        times = jnp.asarray(times, self.times.dtype)
        k = jnp.clip(jnp.searchsorted(self.times, times, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        share = (times - self.times[k]) / self.timedelta[k]
        return Rotation(self.rotations.quat[k]) * Rotation.from_rotvec(self.rotvecs[k] * share[..., None])


_FLAGS = table(degrees__inverse=FLAG, vectors__rotvec__matrix__quat__mrp=NESTED, angles=ARRAY, seq=TEXT, num=INTEGER)
explain_methods(
    Rotation,
    dict.fromkeys(("from_rotvec", "from_euler", "from_matrix", "from_quat", "from_mrp", "apply", "as_euler"), _FLAGS),
)

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
