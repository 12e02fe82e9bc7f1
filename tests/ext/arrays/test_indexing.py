"""x[index] in C: the same elements as NumPy, whatever the index, and its own rules where an index is out of bounds."""

import itertools

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp

PARTS = [0, -1, 2, slice(None), slice(1, 3), slice(None, None, -1), slice(3, 0, -2), slice(5, 2), None, ..., np.int8(1)]


@pytest.mark.parametrize("shape", [(4, 5, 6), (3,), (1, 4), ()])
def test_all_combinations(shape):
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    a = jnp.asarray(x)
    for count in range(4):
        for index in itertools.product(PARTS, repeat=count):
            if sum(i is ... for i in index) > 1:
                continue
            try:
                want = x[index]
            except IndexError:
                continue
            got = a[index]
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "int32", "float32", "complex64"])
def test_element_types(dtype):
    a = jnp.arange(6).astype(dtype).reshape(2, 3)
    assert a[1].dtype == a.dtype and a[:, 1].tolist() == np.asarray(a)[:, 1].tolist()
    assert a.T.tolist() == np.asarray(a).T.tolist()


def test_out_of_bounds_takes_the_nearest():
    a = jnp.arange(5)
    assert int(a[7]) == 4 and int(a[-9]) == 0 and int(a[2**31 - 1]) == 4
    assert a[jnp.array([7, -9, -1])].tolist() == [4, 0, 4]
    assert a[np.array([2**40, -(2**40)])].tolist() == [4, 0]
    assert a[3:99].tolist() == [3, 4] and a[9:].tolist() == []


def test_refusals():
    a = jnp.zeros((2, 3))
    for bad, error in [((0, 0, 0), IndexError), ((..., ...), IndexError), ([0, 1], TypeError), ("a", TypeError)]:
        with pytest.raises(error):
            a[bad]
    with pytest.raises(TypeError):
        a[1.0]
    with pytest.raises(IndexError):
        jnp.zeros((0, 2))[0]
    a.delete()
    for use in (lambda: a[0], lambda: a.T, lambda: list(a)):
        with pytest.raises(RuntimeError, match="deleted"):
            use()


def test_integer_arrays_and_scalars_as_indices():
    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    a = jnp.asarray(x)
    for index in (
        np.array([3, 0]),
        np.array([[1], [2]], np.int32),
        np.zeros((0, 2), np.int64),
        np.array([1, -1, 2])[::2],
    ):
        np.testing.assert_array_equal(a[index], x[index])
        np.testing.assert_array_equal(a[jnp.asarray(index)], x[index])
    np.testing.assert_array_equal(a[jnp.int32(2), 1], x[2, 1])
    np.testing.assert_array_equal(a[jnp.array(True)], x[np.array(True)])
    np.testing.assert_array_equal(a[True], x[True])
    np.testing.assert_array_equal(a[a[:, 0, 0] > 6], x[x[:, 0, 0] > 6])


def test_parts_share_memory_only_where_that_keeps_little_alive():
    a = jnp.ones((4, 4096))
    half, row, few = a[:2], a[1], jnp.ones((100, 4096))[3]
    assert half.unsafe_buffer_pointer() == a.unsafe_buffer_pointer()
    assert row.unsafe_buffer_pointer() == a.unsafe_buffer_pointer() + 4 * 4096
    assert few.is_ready()
    pointer = a.unsafe_buffer_pointer()
    a.delete()
    assert float(half.sum()) == 8192 and half.unsafe_buffer_pointer() == pointer


def test_shared_parts_are_not_taken_by_donation():
    a = jnp.ones((2, 4096))
    half = a[:1]
    pb.jit(lambda x: x * 2, donate_argnums=0)(a)
    assert float(half.sum()) == 4096


def test_iteration():
    a = jnp.arange(6).reshape(3, 2)
    assert [row.tolist() for row in a] == [[0, 1], [2, 3], [4, 5]]
    assert [r.weak_type for r in jnp.asarray(2.0) * np.ones(1)] == [False]
    assert list(jnp.zeros((0, 2))) == []
    with pytest.raises(TypeError):
        iter(jnp.asarray(1))


def test_traced_arrays_and_constants_in_traces():
    a = jnp.arange(6.0)
    assert pb.jit(lambda i: a[i])(7) == 5
    assert "slice" in str(pb.make_jaxpr(lambda x: x[1:3])(a))
    np.testing.assert_array_equal(pb.vmap(lambda i: a[i])(jnp.arange(3)), [0, 1, 2])
    assert pb.grad(lambda x: x[2] * 3)(a).tolist() == [0, 0, 3, 0, 0, 0]
