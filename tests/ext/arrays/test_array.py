import copy
import gc
import math
import operator
import weakref

import ml_dtypes
import numpy as np
import pytest

from pullback._ext import Array, _core

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.int4,
]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2, 0, 3), (4, 5), (1, 2, 3, 4)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attributes_and_contents(aval, shape, dtype):
    source = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    kind = aval(shape, dtype, True)
    x = _core.from_numpy(source, kind)
    assert (
        x.aval is kind
        and x.shape == shape
        and x.dtype == source.dtype
        and x.ndim == len(shape)
        and x.size == source.size
    )
    assert x.itemsize == source.itemsize and x.nbytes == source.nbytes and x.weak_type and not x.committed
    assert x.unsafe_buffer_pointer() % 64 == 0
    seen = np.asarray(x)
    assert seen.dtype == source.dtype and seen.shape == shape and not seen.flags.writeable
    np.testing.assert_array_equal(seen, source)
    assert x.tolist() == source.tolist()


def test_memory_is_shared_where_it_can_be(aval):
    kind = aval((64,), "float32")
    raw = np.zeros(64 * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    aligned = raw[start : start + 256].view(np.float32)
    assert _core.from_numpy(aligned, kind).unsafe_buffer_pointer() == aligned.ctypes.data
    assert _core.from_numpy(aligned, kind, copy=True).unsafe_buffer_pointer() != aligned.ctypes.data
    x = _core.from_numpy(aligned[::-1], kind)
    np.testing.assert_array_equal(np.asarray(x), aligned[::-1])
    cast = _core.from_numpy(aligned, aval((64,), "int32"))
    assert cast.dtype == np.int32
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(np.asarray(_core.from_numpy(fortran, aval((2, 3), "float32"))), fortran)


def test_shape_must_agree(aval):
    with pytest.raises(ValueError, match=r"shape \(2,\) for an aval of shape \(3,\)"):
        _core.from_numpy(np.zeros(2), aval((3,)))


def test_cannot_be_made_directly_or_changed(array):
    x = array([1.0, 2.0])
    with pytest.raises(TypeError):
        Array()
    with pytest.raises(TypeError):
        type("Sub", (Array,), {})
    with pytest.raises(AttributeError):
        x.shape = (1,)
    with pytest.raises(AttributeError):
        x.anything = 1
    with pytest.raises(TypeError, match=r"immutable.*x = x\.at\[idx\]\.set\(y\)"):
        x[0] = 3
    with pytest.raises(TypeError, match="immutable"):
        del x[0]
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(ValueError):
        np.asarray(x).flags.writeable = True


def test_attributes_are_properties(array):
    """Libraries that wrap arrays, scico, give theirs what is a property of the class."""
    x = array(np.ones((2, 3), np.float32))
    for name, value in (("shape", (2, 3)), ("dtype", np.dtype("float32")), ("ndim", 2), ("size", 6), ("nbytes", 24)):
        attribute = getattr(Array, name)
        assert isinstance(attribute, property) and attribute.__doc__.startswith("The ")
        assert attribute.fget(x) == attribute.__get__(x) == getattr(x, name) == value
        with pytest.raises(TypeError, match=f"{name}: an attribute of Array, but got int"):
            attribute.__get__(3)
        with pytest.raises(AttributeError, match="no setter"):
            setattr(x, name, value)


@pytest.mark.parametrize(
    "bad",
    [
        (None, TypeError),
        ((1,), TypeError),
        ((-1,), ValueError),
        (("a",), TypeError),
        ((2**40, 2**40), OverflowError),
        ((1,) * 65, ValueError),
    ],
)
def test_bad_avals(aval, bad):
    shape, error = bad

    class Odd:
        dtype, weak_type = np.dtype("float32"), False

    odd = Odd()
    if shape != (1,):
        odd.shape = shape
    else:
        odd.shape, odd.dtype = shape, np.dtype(object)
    with pytest.raises(error):
        _core.zeros(odd)
    with pytest.raises(AttributeError):
        _core.zeros(object())


def test_out_of_memory_is_an_error(aval):
    with pytest.raises(MemoryError, match="Out of memory allocating"):
        _core.zeros(aval((2**44, 2**10), "float32"))


def test_scalar_conversions(array):
    assert (
        float(array(2.5)) == 2.5 and int(array(2.7)) == 2 and bool(array(0.0)) is False and complex(array(1.5)) == 1.5
    )
    assert bool(array([[1.0]])) is True
    assert operator.index(array(3, "int32")) == 3 and operator.index(array(200, "uint8")) == 200
    assert [10, 20, 30][array(1, "int64")] == 20
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match="of an array without dimensions; this one has 1"):
            convert(array([1.0]))
    with pytest.raises(TypeError, match="not 'complex'"):
        float(array(1j, "complex64"))
    for bad in (array(1.0), array([1], "int32"), array(True, "bool")):
        with pytest.raises(TypeError, match="only an integer array without dimensions"):
            operator.index(bad)
    with pytest.raises(ValueError, match="ambiguous where it has several elements"):
        bool(array([1.0, 2.0]))
    with pytest.raises(ValueError, match="empty array is neither true nor false"):
        bool(array([]))


def test_item_and_len(array):
    x = array([[1, 2], [3, 4]], "int32")
    assert x.item(1, 1) == 4 and x.item(2) == 3 and x.item((0, 1)) == 2 and array([7.5]).item() == 7.5
    with pytest.raises(ValueError, match="size 1"):
        x.item()
    with pytest.raises(IndexError):
        x.item(9)
    assert len(x) == 2
    with pytest.raises(TypeError, match="len\\(\\) of unsized object"):
        len(array(1.0))
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(array(1.0))


@pytest.mark.parametrize(
    "values, dtype, weak, text",
    [
        ([1.0, 2.0], "float32", False, "Array([1., 2.], dtype=float32)"),
        (2.0, "float32", True, "Array(2., dtype=float32, weak_type=True)"),
        (3, "int32", True, "Array(3, dtype=int32, weak_type=True)"),
        ([], "float32", False, "Array([], shape=(0,), dtype=float32)"),
        (np.zeros((0, 3)), "float32", False, "Array([], shape=(0, 3), dtype=float32)"),
        ([True, False], "bool", False, "Array([ True, False], dtype=bool)"),
        (1 + 2j, "complex64", True, "Array(1.+2.j, dtype=complex64, weak_type=True)"),
        (np.arange(2000), "int32", False, "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
        ([1, 1], ml_dtypes.bfloat16, False, "Array([1, 1], dtype=bfloat16)"),
        (np.full((2, 2), 0.5), "float64", False, "Array([[0.5, 0.5],\n       [0.5, 0.5]], dtype=float64)"),
        ([1.0, np.nan, np.inf], "float32", False, "Array([ 1., nan, inf], dtype=float32)"),
        (
            [1.25] * 8,
            "float32",
            True,
            "Array([1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25],      dtype=float32, weak_type=True)",
        ),
        (
            [1.25] * 7,
            "float32",
            True,
            "Array([1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25], dtype=float32, weak_type=True)",
        ),
    ],
)
def test_repr(array, values, dtype, weak, text):
    assert repr(array(values, dtype, weak)) == text


def test_repr_without_hook(array, hooks):
    hooks(repr=None)
    with pytest.raises(RuntimeError, match="hook 'repr' is not set"):
        repr(array(1.0))
    with pytest.raises(TypeError, match="there is no hook 'nonsense'"):
        _core.set_hooks(nonsense=print)
    with pytest.raises(TypeError, match="expected a callable"):
        _core.set_hooks(repr=3)


def test_text(array):
    assert str(array([1.0, 2.0])) == "[1. 2.]" and str(array(2.0)) == "2.0"
    assert f"{array(2.0):.3f}" == "2.000" and f"{array(7, 'int32'):04d}" == "0007" and f"{array([1.0])}" == "[1.]"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{array([1.0, 2.0]):.3f}"


def test_delete(array):
    x = array([1.0, 2.0])
    view, twin = np.asarray(x), copy.copy(x)
    x.delete()
    x.delete()
    assert x.is_deleted() and not twin.is_deleted() and x.shape == (2,)
    for use in (
        repr,
        str,
        np.asarray,
        memoryview,
        Array.item,
        Array.tolist,
        Array.unsafe_buffer_pointer,
        copy.copy,
        Array.block_until_ready,
        Array.is_ready,
        Array.__dlpack__,
    ):
        with pytest.raises(RuntimeError) as caught:
            use(x)
        assert str(caught.value).startswith("Array has been deleted: float32[2] was donated")
    assert view.tolist() == twin.tolist() == [1.0, 2.0]


def test_state_methods(array, hooks):
    x = array([1.0])
    assert x.block_until_ready() is x and x.is_ready() and x.copy_to_host_async() is None and x.addressable_data(0) is x
    with pytest.raises(IndexError, match="1 shard"):
        x.addressable_data(1)
    with pytest.raises(TypeError):
        x.addressable_data("a")
    assert x.on_device_size_in_bytes() == 4
    hooks(first_device=lambda: "cpu:0", sharding=lambda a: ("single", a))
    assert x.device == "cpu:0" and x.sharding == ("single", x) and x._device is None


def test_devices_and_avals_of_shared_memory(array, aval):
    x = array([[1.0, 2.0]])
    y = _core.with_aval(x, aval((2,), "int32"), device="here")
    assert y.committed and y.device == "here" and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert np.asarray(y).view("float32").tolist() == [1.0, 2.0]
    assert not _core.with_aval(y, y.aval).committed and copy.copy(y).committed
    with pytest.raises(ValueError, match=r"has 8 bytes, but the new aval .* needs 4"):
        _core.with_aval(x, aval((1,)))
    with pytest.raises(TypeError):
        _core.with_aval(np.zeros(2), aval((2,)))


def test_writable(aval):
    x, memory = _core.writable(aval((2, 3)))
    memory[...] = 7
    assert np.asarray(x).tolist() == [[7.0] * 3] * 2
    del x
    memory[0, 0] = 1  # keeps the memory alive by itself
    assert memory[0, 0] == 1


def test_attributes_can_be_added(array):
    def double(self):
        """Twice the sum."""
        return 2 * np.asarray(self).sum()

    _core.set_array_attribute("_test_double", double)
    _core.set_array_attribute("_test_property", property(lambda self: self.shape * 2))
    try:
        x = array([1.0, 2.0])
        assert x._test_double() == 6 and x._test_property == (2, 2)
        assert "_test_double" in dir(x) and Array._test_double.__doc__ == "Twice the sum."
    finally:
        delattr(Array, "_test_double")
        delattr(Array, "_test_property")


def test_weak_references_and_release(array):
    x = array([1.0])
    dead = []
    reference = weakref.ref(x, dead.append)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None and dead == [reference]
