import copy
import ctypes
import gc
import pickle
import sys

import ml_dtypes
import numpy as np
import pytest

from pullback._ext import Array, _core


class Aval:
    def __init__(self, shape, dtype, weak_type):
        self.shape, self.dtype, self.weak_type = shape, dtype, weak_type


def rebuild(values, weak_type):
    return _core.from_numpy(np.asarray(values), Aval(values.shape, values.dtype, weak_type))


def test_array_protocol(array):
    x = array([1.0, 2.0])
    assert np.asarray(x) is not None and np.asarray(x, dtype=np.float32).ctypes.data == x.unsafe_buffer_pointer()
    assert np.array(x).flags.writeable and np.array(x).ctypes.data != x.unsafe_buffer_pointer()
    assert np.asarray(x, dtype=np.int64).dtype == np.int64
    assert x.__array__(copy=False).ctypes.data == x.unsafe_buffer_pointer()
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        x.__array__(np.int32, copy=False)
    with pytest.raises(TypeError):
        x.__array__("no such type")


def test_views_outlive_the_array(array):
    view = np.asarray(array(np.arange(1000.0)))
    gc.collect()
    fillers = [array(np.zeros(1000)) for _ in range(20)]
    np.testing.assert_array_equal(view, np.arange(1000.0))
    del fillers


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float16", "float32", "float64", "complex64"])
def test_buffer_protocol(array, dtype):
    x = array([[1, 0, 1], [0, 1, 1]], dtype)
    memory = memoryview(x)
    assert memory.readonly and memory.shape == (2, 3) and memory.nbytes == x.nbytes
    if dtype not in ("complex64", "float16"):  # memoryview has no items of these
        assert memory.tolist() == x.tolist()
    assert bytes(x) == np.asarray(x).tobytes()
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(x)


def test_buffer_protocol_without_format(array):
    with pytest.raises(BufferError, match=r"no format for dtype.*bfloat16"):
        memoryview(array([1.0], ml_dtypes.bfloat16))


def test_copies_share(array):
    x = array([1.0], weak_type=True)
    for y in (copy.copy(x), copy.deepcopy(x)):
        assert y is not x and y.weak_type and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "complex128", ml_dtypes.bfloat16])
def test_pickle(array, hooks, dtype):
    hooks(reconstruct=rebuild)
    x = array([[1, 0], [1, 1]], dtype, weak_type=True)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert type(y) is Array and y.dtype == x.dtype and y.weak_type and y.tolist() == x.tolist()


# ---- DLPack


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)])
def test_dlpack_to_numpy(array, dtype, shape):
    x = array(np.arange(int(np.prod(shape))).reshape(shape), dtype)
    seen = np.from_dlpack(x)
    assert seen.dtype == x.dtype and seen.shape == shape and not seen.flags.writeable
    np.testing.assert_array_equal(seen, np.asarray(x))
    if seen.size:
        assert seen.ctypes.data == x.unsafe_buffer_pointer()
    del x
    gc.collect()
    np.testing.assert_array_equal(seen, np.arange(seen.size).reshape(shape).astype(dtype))


def test_dlpack_requests(array):
    x = array([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0))) and '"dltensor"' in repr(x.__dlpack__())
    copied = np.from_dlpack(x, copy=True)
    assert copied.ctypes.data != x.unsafe_buffer_pointer()
    for bad, error in (
        ({"stream": 1}, BufferError),
        ({"dl_device": (2, 0)}, BufferError),
        ({"dl_device": "gpu"}, TypeError),
        ({"dl_device": (1,)}, TypeError),
        ({"max_version": 1}, TypeError),
        ({"max_version": ("a",)}, TypeError),
    ):
        with pytest.raises(error):
            x.__dlpack__(**bad)
    with pytest.raises(TypeError):
        x.__dlpack__(1)
    with pytest.raises(BufferError, match="no type for dtype int4"):
        array([1], ml_dtypes.int4).__dlpack__()


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("order", ["C", "F", "reversed"])
def test_dlpack_from_numpy(hooks, versioned, order):
    hooks(make_aval=Aval)
    source = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    source = {"C": source, "F": np.asfortranarray(source), "reversed": source[::-1]}[order]
    before = sys.getrefcount(source)
    x = _core.from_dlpack(source.__dlpack__(max_version=(1, 0)) if versioned else source.__dlpack__())
    np.testing.assert_array_equal(np.asarray(x), source)
    assert x.unsafe_buffer_pointer() % 64 == 0
    del x
    gc.collect()
    assert sys.getrefcount(source) == before


def test_dlpack_round_trip(array, hooks):
    hooks(make_aval=Aval)
    x = array([1.0, 2.0, 3.0], ml_dtypes.bfloat16)
    y = _core.from_dlpack(x.__dlpack__(max_version=(1, 0)))
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() and y.dtype == ml_dtypes.bfloat16
    assert _core.from_dlpack(x.__dlpack__(), copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    x.delete()
    assert y.tolist() == [1.0, 2.0, 3.0]


def test_dlpack_refusals(array, hooks):
    hooks(make_aval=Aval)
    capsule = array([1.0]).__dlpack__()
    _core.from_dlpack(capsule)
    for bad in (capsule, 3, None, np.zeros(2)):
        with pytest.raises(TypeError, match="expected a DLPack capsule that has not been consumed"):
            _core.from_dlpack(bad)
    hooks(make_aval=None)
    fresh = array([1.0]).__dlpack__()
    with pytest.raises(RuntimeError, match="hook 'make_aval' is not set"):
        _core.from_dlpack(fresh)
    del fresh  # unused capsules free what they hold
