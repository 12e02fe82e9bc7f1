"""DLPack from a producer of our own: all types both ways, layouts, flags, and memory that is given back at once."""

import ctypes
import gc

import ml_dtypes
import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Plain(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

CODES = {
    "bool": (6, 8), "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8),
    "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "float16": (2, 16), "float32": (2, 32),
    "float64": (2, 64), "bfloat16": (4, 16), "complex64": (5, 64), "complex128": (5, 128), "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8), "float8_e4m3b11fnuz": (9, 8), "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8), "float8_e8m0fnu": (14, 8),
}  # fmt: skip


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


exported = []  # lives until the deleter has run, which may be long after the producer is gone


class Producer:
    """Exports `base[offset:]` with a shape and strides, as libraries of either version of the protocol do."""

    def __init__(self, base, shape=None, strides="none", offset=0, versioned=True, device=(1, 0), code=None, **fields):
        self.base, self.versioned, self.device, self.fields = base, versioned, device, fields
        self.shape = base.shape if shape is None else shape
        self.strides, self.offset, self.code = strides, offset, code or CODES[base.dtype.name]
        self.deleted = 0

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **request):
        if not self.versioned and request:
            raise TypeError("unexpected keyword")

        @Deleter
        def deleter(managed):
            self.deleted += 1

        ints = lambda values: (ctypes.c_int64 * max(len(values), 1))(*values)
        shape = ints(self.shape)
        strides = None if self.strides == "none" else ints(self.strides)
        tensor = Tensor(
            self.base.ctypes.data, *self.device, len(self.shape), *self.code, 1, shape, strides, self.offset
        )
        address = ctypes.cast(deleter, ctypes.c_void_p)
        if self.versioned:
            managed = Versioned(1, 0, None, address, 1, tensor)
        else:
            managed = Plain(tensor, None, address)
        for name, value in self.fields.items():
            setattr(managed if hasattr(managed, name) else managed.tensor, name, value)
        exported.append((managed, deleter, shape, strides, self.base))
        return new_capsule(ctypes.addressof(managed), b"dltensor_versioned" if self.versioned else b"dltensor", None)


pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", CODES)
def test_all_types_both_ways(name):
    dtype = dtype_of(name)
    values = np.array([1, 0, 1, 2, 0.5, 4] if dtype.kind in "fcV" else [1, 0, 1, 1, 0, 1]).astype(dtype)
    for versioned in (True, False):
        x = jax.dlpack.from_dlpack(Producer(values, (2, 3), versioned=versioned))
        assert x.dtype == dtype and x.shape == (2, 3) and np.asarray(x).tobytes() == values.tobytes()
        assert np.asarray(x + x if name != "bool" else x).dtype == dtype
    for version, label, kind in ((None, b"dltensor", Plain), ((1, 1), b"dltensor_versioned", Versioned)):
        capsule = x.__dlpack__(max_version=version)
        tensor = kind.from_address(pointer_of(capsule, label)).tensor
        assert (tensor.code, tensor.bits, tensor.lanes, tensor.ndim) == (*CODES[name], 1, 2)
        assert tensor.shape[:2] == [2, 3] and tensor.strides[:2] == [3, 1]
        assert ctypes.string_at(tensor.data + tensor.byte_offset, values.nbytes) == values.tobytes()


def test_layouts():
    base = np.arange(60, dtype=np.float32)
    cases = [
        ((3, 4), (1, 3), 0), ((3, 4), (4, 1), 8), ((5,), (7,), 4), ((0, 3), (3, 1), 0), ((), (), 12),
        ((3, 2), (0, 1), 0), ((3, 4), (-4, 1), 44 * 4), ((1, 1, 5), (99, 7, 2), 0), ((2, 0, 2), (0, 0, 0), 0),
    ]  # fmt: skip
    for shape, strides, offset in cases:
        start = base[offset // 4 :] if offset // 4 < 60 else base
        expected = np.lib.stride_tricks.as_strided(start, shape, [4 * s for s in strides])
        made = Producer(base, shape, strides, offset)
        assert np.array_equal(jnp.from_dlpack(made), expected), (shape, strides)
        assert made.deleted == 1, "what was copied is given back at once"
    odd = np.zeros(41, np.uint8)
    odd[1:] = np.arange(10, dtype=np.float32).view(np.uint8)
    assert jnp.from_dlpack(Producer(odd, (10,), (1,), 1, code=(2, 32))).tolist() == list(range(10))


def test_memory_is_shared_where_it_can_be_and_given_back_at_once():
    raw = np.zeros(5 * 64, np.uint8)
    at = -raw.ctypes.data % 64
    aligned = raw[at : at + 128].view(np.float32)
    for versioned in (True, False):
        made = Producer(aligned, versioned=versioned)
        x = jnp.from_dlpack(made, copy=False)
        assert x.unsafe_buffer_pointer() == aligned.ctypes.data and made.deleted == 0
        view, y = np.asarray(x), x.reshape(4, 8)
        del x
        assert made.deleted == 0
        del view, y
        assert made.deleted == 1
        copied = Producer(aligned, versioned=versioned)
        assert jnp.from_dlpack(copied, copy=True).unsafe_buffer_pointer() != aligned.ctypes.data and copied.deleted == 1
    for refused in (Producer(aligned, (4, 4), (1, 4)), Producer(aligned, (4,), (1,), 4)):
        with pytest.raises(ValueError, match="copy is False"):
            jnp.from_dlpack(refused, copy=False)
        assert refused.deleted == 1
    with jax.enable_x64(False):
        wide = Producer(aligned.view(np.float64))
        with pytest.raises(ValueError, match="copy is False, but float64 becomes float32"):
            jnp.from_dlpack(wide, copy=False)
        assert jnp.from_dlpack(wide).dtype == np.float32 and wide.deleted == 2
    gc.disable()
    try:
        given = jnp.arange(1000.0)
        capsule = given.__dlpack__()
        again = np.from_dlpack(given)
        before = jax.local_devices()[0].memory_stats()["bytes_in_use"]
        del given, again, capsule
        assert jax.local_devices()[0].memory_stats()["bytes_in_use"] < before
    finally:
        gc.enable()


def test_errors():
    base = np.zeros(4, np.float32)
    for made, error, text in [
        (3, TypeError, "must have __dlpack__"),
        (jnp.ones(3).__dlpack__(), TypeError, "must have __dlpack__"),
        (Producer(base, device=(2, 0)), BufferError, "device of type 2"),
        (Producer(base, code=(5, 32)), BufferError, "type code 5 with 32 bits"),
        (Producer(base, lanes=4), BufferError, "4 lanes"),
        (Producer(base, ndim=-1), BufferError, "-1 dimensions"),
        (Producer(base, ndim=65), BufferError, "65 dimensions"),
        (Producer(base, (-1,)), ValueError, "negative dimension"),
        (Producer(base, (2**62, 4)), OverflowError, "too large"),
        (Producer(base, major=2), BufferError, "version 2.0"),
    ]:
        with pytest.raises(error, match=text):
            jax.dlpack.from_dlpack(made)
    x = jnp.ones(3)
    for request, error in [
        ({"stream": 1}, BufferError), ({"dl_device": (2, 0)}, BufferError), ({"dl_device": (1, 1)}, BufferError),
        ({"dl_device": 1}, TypeError), ({"max_version": 1}, TypeError), ({"other": 1}, TypeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            x.__dlpack__(**request)
    with pytest.raises(BufferError, match="int4"):
        x.astype(jnp.int4).__dlpack__()
