"""Functions whose calls find room for their frames."""

import pytest

from pullback.util.room import WORDS, with_room


@with_room
def quotient(x, y=1):
    """What it says."""
    return x / y


def test_a_function_with_room_is_the_function():
    assert quotient(6) == 6
    assert quotient(6, y=3) == 2
    assert quotient.__name__ == "quotient"
    assert quotient.__doc__ == "What it says."
    with pytest.raises(ZeroDivisionError):
        quotient(1, 0)


def test_its_frame_is_larger_than_a_chunk():
    assert quotient.__code__.co_stacksize == WORDS
    assert 8 * WORDS > 16 * 1024


def test_calls_in_one_another():
    @with_room
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    assert depth(20) == 20
