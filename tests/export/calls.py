"""Calls of exported functions on memory that ends where the next page cannot be touched, and begins anywhere."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

import pullback as jax

_libc = ctypes.CDLL(None, use_errno=True)
_PAGE = mmap.PAGESIZE
_kept = []  # memory of a test process is given back when it ends


def guarded(array):
    """A copy whose last byte is the last of a page, before one that must not be touched."""
    array = np.asarray(array, order="C")
    if not array.nbytes:
        return array
    pages = -(-array.nbytes // _PAGE)
    memory = mmap.mmap(-1, (pages + 1) * _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert _libc.mprotect(ctypes.c_void_p(start + pages * _PAGE), _PAGE, 0) == 0
    _kept.append(memory)
    flat = np.frombuffer(memory, np.uint8, array.nbytes, pages * _PAGE - array.nbytes)
    found = flat.view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def words(x):
    """What C sees of an argument or result: keys are words."""
    x = jax.numpy.asarray(x)
    return np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)


def call(library, name, args, out_avals, workspace=None):
    """The results of an exported function on NumPy arrays; RuntimeError with its message if it fails."""
    code = ctypes.CDLL(str(library.library))
    function = getattr(code, name if workspace is None else f"{name}_in")
    arguments = []
    for x in map(words, jax.tree.leaves(args)):
        if x.shape == () and x.dtype.kind != "c":
            c_type = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[x.dtype.itemsize]
            if x.dtype.kind == "f" and x.dtype.itemsize > 2:
                c_type = {4: ctypes.c_float, 8: ctypes.c_double}[x.dtype.itemsize]
                arguments.append(c_type(float(x)))
            else:
                arguments.append(c_type.from_buffer_copy(x.tobytes()))
        else:
            held = guarded(x)
            arguments.append(ctypes.c_void_p(held.ctypes.data))
    results = [guarded(np.full(aval.shape, 7).astype(aval.dtype)) for aval in out_avals]
    arguments += [ctypes.c_void_p(r.ctypes.data) for r in results]
    if workspace is not None:
        arguments.append(ctypes.c_void_p(workspace))
    status = function(*arguments)
    if status:
        message = getattr(code, f"{library.header.stem}_message")
        message.restype = ctypes.c_char_p
        raise RuntimeError(message(status).decode())
    return results


def same_bits(got, expected):
    """Whether arrays are equal to the last bit."""
    got, expected = np.asarray(got), words(expected)
    return got.shape == expected.shape and got.dtype == expected.dtype and got.tobytes() == expected.tobytes()
