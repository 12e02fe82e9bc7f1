"""LAPACK's routines on NumPy arrays, for references: they give column-major arrays and leave their operands alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import is_complex, letter, real_of
from pullback.util.lapack import call, integer

Array = np.ndarray

SMALL = 32  # rows or columns up to which enough memory is given unasked: a call takes ten times what it takes to ask

_WORK = object()  # stands for the arguments work and lwork


def _queried(name: str, dtype: np.dtype, *args: Any) -> int:
    """Call a routine with as much memory to work in as it asks for."""
    k = next(k for k, arg in enumerate(args) if arg is _WORK)
    most = max([arg for arg in args if type(arg) is int])
    size = 6 * most * most + 66 * most
    if most > SMALL:
        asked = np.zeros(1, dtype)
        call(name, *args[:k], asked, -1, *args[k + 1 :])
        size = int(asked[0].real * (1 + np.finfo(dtype).eps)) + 1  # float32 may have rounded it down
    return call(name, *args[:k], np.empty(size, dtype), size, *args[k + 1 :])


def _copy(a: Array) -> Array:
    return np.array(a, order="F")


def _new(dtype: Any, *shape: int) -> Array:
    return np.empty([max(n, 1) for n in shape], dtype, order="F")


def potrf(a: Array) -> tuple[Array, int]:
    """(lower factor, info)."""
    a, n = _copy(a), len(a)
    info = call(letter(a.dtype) + "potrf", "L", n, a, n, 0)
    return np.tril(a), info


def getrf(a: Array) -> tuple[Array, Array]:
    """(factors, the rows that each row is swapped with)."""
    a, (m, n) = _copy(a), a.shape
    pivots = np.empty(min(m, n), integer())
    call(letter(a.dtype) + "getrf", m, n, a, m, pivots, 0)
    return a, pivots - 1


def geqrf(a: Array) -> tuple[Array, Array]:
    """(R and reflectors, their factors)."""
    a, (m, n) = _copy(a), a.shape
    taus = np.empty(min(m, n), a.dtype)
    _queried(letter(a.dtype) + "geqrf", a.dtype, m, n, a, m, taus, _WORK, 0)
    return a, taus


def geqp3(a: Array) -> tuple[Array, Array, Array]:
    """(R and reflectors of the chosen columns, the factors, the columns' numbers)."""
    a, (m, n) = _copy(a), a.shape
    taus, order = np.empty(min(m, n), a.dtype), np.zeros(n, integer())
    extra = [np.empty(2 * n, real_of(a.dtype))] if is_complex(a.dtype) else []
    _queried(letter(a.dtype) + "geqp3", a.dtype, m, n, a, m, order, taus, _WORK, *extra, 0)
    return a, taus, order - 1


def orgqr(a: Array, taus: Array) -> Array:
    """The product of the reflectors in a[m, n], its first n columns."""
    a, (m, n) = _copy(a), a.shape
    name = letter(a.dtype) + ("ungqr" if is_complex(a.dtype) else "orgqr")
    _queried(name, a.dtype, m, n, len(taus), a, m, np.ascontiguousarray(taus), _WORK, 0)
    return a


def ormqr(side: str, trans: str, a: Array, taus: Array, c: Array) -> Array:
    """c times the product of the reflectors in a, from a side, "L" or "R"."""
    a, c, (m, n) = _copy(a), _copy(c), c.shape
    name = letter(a.dtype) + ("unmqr" if is_complex(a.dtype) else "ormqr")
    _queried(name, a.dtype, side, trans, m, n, len(taus), a, len(a), np.ascontiguousarray(taus), c, m, _WORK, 0)
    return c


def gehrd(a: Array) -> tuple[Array, Array]:
    """(Hessenberg form and reflectors, their factors)."""
    a, n = _copy(a), len(a)
    taus = np.empty(n - 1, a.dtype)
    _queried(letter(a.dtype) + "gehrd", a.dtype, n, 1, n, a, n, taus, _WORK, 0)
    return a, taus


def sytrd(a: Array, lower: bool) -> tuple[Array, Array, Array, Array]:
    """(reflectors, diagonal, the one beside it, factors) of the tridiagonal form."""
    a, n, real = _copy(a), len(a), real_of(a.dtype)
    d, e, taus = np.empty(n, real), np.empty(n - 1, real), np.empty(n - 1, a.dtype)
    name = letter(a.dtype) + ("hetrd" if is_complex(a.dtype) else "sytrd")
    _queried(name, a.dtype, "L" if lower else "U", n, a, n, d, e, taus, _WORK, 0)
    return a, d, e, taus


def syevd(a: Array, lower: bool) -> tuple[Array, Array, int]:
    """(eigenvalues, eigenvectors, info)."""
    a, n, real = _copy(a), len(a), real_of(a.dtype)
    w, integers = np.empty(n, real), np.empty(3 + 5 * n, integer())
    room = 1 + 5 * n + 2 * n * n
    name, extra = ("heevd", [np.empty(room, real), room]) if is_complex(a.dtype) else ("syevd", [])
    sizes = ("V", "L" if lower else "U", n, a, n, w)
    info = _queried(letter(a.dtype) + name, a.dtype, *sizes, _WORK, *extra, integers, integers.size, 0)
    return w, a, info


def gesdd(a: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array, int]:
    """(U, singular values, V^H, info)."""
    a, (m, n) = _copy(a), a.shape
    k = min(m, n)
    job = "N" if not compute_uv else "A" if full_matrices else "S"
    wide, tall = {"N": (1, 1), "A": (m, n), "S": (k, k)}[job]
    s, u, vt = np.empty(k, real_of(a.dtype)), _new(a.dtype, m, wide), _new(a.dtype, tall, n)
    reals = max(5 * k * k + 7 * k, 2 * max(m, n) * k + 2 * k * k + k)
    extra = [np.empty(reals, s.dtype)] if is_complex(a.dtype) else []
    sizes = (job, m, n, a, m, s, u, m, vt, tall)
    info = _queried(letter(a.dtype) + "gesdd", a.dtype, *sizes, _WORK, *extra, np.empty(8 * k, integer()), 0)
    return u, s, vt, info


def geev(a: Array, left: bool, right: bool) -> tuple[Array, Array, Array, int]:
    """(eigenvalues, left and right eigenvectors, info), complex; of vectors that are not wanted, anything."""
    a, n, complex_ = _copy(a), len(a), is_complex(a.dtype)
    values = [np.empty(n, a.dtype) for _ in range(1 if complex_ else 2)]
    sides = [_new(a.dtype, n, n if wanted else 1) for wanted in (left, right)]
    extra = [np.empty(2 * n, real_of(a.dtype))] if complex_ else []
    jobs = ["V" if wanted else "N" for wanted in (left, right)]
    sizes = (*jobs, n, a, n, *values, sides[0], n, sides[1], n)
    info = _queried(letter(a.dtype) + "geev", a.dtype, *sizes, _WORK, *extra, 0)
    w = values[0]
    if not complex_:
        w = values[0] + 1j * values[1]
        sides = [_paired(v, values[1]) if wanted else v for v, wanted in zip(sides, (left, right))]
    return w, sides[0], sides[1], info


def _paired(v: Array, imaginary: Array) -> Array:
    """Complex vectors of real columns, of which those of a pair hold the real and the imaginary part."""
    out = v.astype(np.result_type(v, np.complex64))
    first = np.flatnonzero(imaginary > 0)
    out.imag[:, first] = v[:, first + 1]
    out[:, first + 1] = out[:, first].conj()
    return out


def gees(a: Array, select: Callable[..., Any] | None) -> tuple[Array, Array, int]:
    """(Schur form, vectors, info); eigenvalues that `select` holds for come first. It is given a complex number, of a
    real matrix the two parts."""
    a, n, complex_ = _copy(a), len(a), is_complex(a.dtype)
    raised: list[BaseException] = []

    def chosen(*places: int) -> int:
        parts = [float(x) for place in places for x in (real * (2 if complex_ else 1)).from_address(place)]
        try:
            return bool(select is not None and (select(complex(*parts)) if complex_ else select(*parts)))
        except BaseException as error:  # C would drop it
            raised.append(error)
            return 0

    real = np.ctypeslib.as_ctypes_type(real_of(a.dtype))
    logical = np.ctypeslib.as_ctypes_type(integer())
    function = ctypes.CFUNCTYPE(logical, *(1 if complex_ else 2) * [ctypes.c_void_p])(chosen)
    values = [np.empty(n, a.dtype) for _ in range(1 if complex_ else 2)]
    vectors, flags = _new(a.dtype, n, n), np.empty(n, integer())
    extra = [np.empty(n, real_of(a.dtype))] if complex_ else []
    sizes = ("V", "S" if select else "N", function, n, a, n, 0, *values, vectors, n)
    info = _queried(letter(a.dtype) + "gees", a.dtype, *sizes, _WORK, *extra, flags, 0)
    if raised:
        raise raised[0]
    return a, vectors, info


def gtsv(dl: Array, d: Array, du: Array, b: Array) -> tuple[Array, int]:
    """(x, info) of a tridiagonal system."""
    b, (n, k) = _copy(b), b.shape
    info = call(letter(b.dtype) + "gtsv", n, k, *[np.array(x) for x in (dl, d, du)], b, n, 0)
    return b, info


def trsm(a: Array, b: Array, side: str, lower: bool, trans: str, unit: bool) -> Array:
    """op(a)^-1 b or b op(a)^-1 for a triangle of a."""
    a, b, (m, n) = _copy(a), _copy(b), b.shape
    flags = (side, "L" if lower else "U", trans, "U" if unit else "N")
    call(letter(b.dtype) + "trsm", *flags, m, n, np.ones(1, b.dtype), a, len(a), b, m)
    return b
