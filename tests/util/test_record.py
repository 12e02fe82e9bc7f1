"""Classes whose constructors are compiled when they are first called are the dataclasses that they stand for."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from pullback.util.record import frozen_record, record


@record
class Node:
    """With a default, and a list of its own."""

    kind: str
    size: int = 3
    inside: list[Any] = dataclasses.field(default_factory=list)


@frozen_record
class Point:
    """Checked when it is made."""

    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x must not be negative")


def test_records():
    a, b = Node("a"), Node(kind="a", size=4)
    assert (a.kind, a.size, a.inside, b.size) == ("a", 3, [], 4) and a.inside is not b.inside
    assert a != Node("a") and a == a and hash(a) != hash(b)
    assert dataclasses.replace(b, kind="b").kind == "b" and len(dataclasses.fields(a)) == 3
    assert not hasattr(a, "__dict__") and pickle.loads(pickle.dumps(b)).size == 4
    assert list(inspect.signature(Node).parameters) == ["kind", "size", "inside"]


def test_frozen_records():
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()
    p = Point(1)
    assert p == Point(1, 0) != Point(1, 1) and p != (1, 0) and {p: 2}[Point(1)] == 2 and repr(p) == "Point(x=1, y=0)"
    with pytest.raises(ValueError, match="negative"):
        Point(-1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        p.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del p.x
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p)), dataclasses.replace(Point(2), x=1)):
        assert other == p
    match p:
        case Point(x, y=0):
            assert x == 1
    assert str(inspect.signature(Point)) == "(x: int, y: int = 0)"


def test_fields_say_whether_they_count():
    @frozen_record
    class Noted:
        x: int
        note: str = dataclasses.field(default="", compare=False, repr=False)

    assert Noted(1, "a") == Noted(1, "b") and hash(Noted(1, "a")) == hash(Noted(1))
    assert "note" not in repr(Noted(1, "a"))
    for unfit in ({"init": False, "default": 0}, {"kw_only": True}):
        with pytest.raises(TypeError, match="field 'x'"):
            frozen_record(type("Unfit", (), {"__annotations__": {"x": int}, "x": dataclasses.field(**unfit)}))
