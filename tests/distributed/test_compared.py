"""What tells processes that a value is not the same on all of them."""

import ml_dtypes
import numpy as np
import pytest

from pullback.distributed.compared import _digest


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.bool_, np.int8])
@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 20) + 3, (1 << 22) + 5])
def test_one_element_or_another_order_makes_a_difference(dtype, size):
    values = (np.arange(size) % 7 > 2).astype(dtype)
    found = {_digest(values)}
    assert _digest(values.copy()) in found
    for place in {0, size // 2, size - 1} if size else ():
        other = values.copy()
        other[place] = dtype(1) - other[place] if dtype is not np.bool_ else ~other[place]
        found.add(_digest(other))
    assert len(found) == 1 + min(size, 3)
    if size > 7:
        found.add(_digest(np.roll(values, 1 << 17)))
        assert size < 1000000 or len(found) == 5


def test_values_of_any_shape_have_one():
    assert _digest(np.float32(1)) != _digest(np.float32(2))
    assert _digest(np.zeros((1024, 1025), np.float32).T) == _digest(np.zeros(1024 * 1025, np.float32))
