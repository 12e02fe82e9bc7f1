"""Key paths and registered node types. Expected values are those of JAX 0.10.2, learned by running it."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import pytest
from patience import PATIENCE

from pullback import tree
from pullback.tree_util import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    PyTreeDef,
    SequenceKey,
    default_registry,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
)

Point = namedtuple("Point", "a b")


class Pair:
    def __init__(self, x, y, aux=None):
        self.x, self.y, self.aux = x, y, aux

    def __eq__(self, other):
        return type(other) is Pair and (self.x, self.y, self.aux) == (other.x, other.y, other.aux)


register_pytree_node(Pair, lambda p: ((p.x, p.y), p.aux), lambda aux, children: Pair(*children, aux))


@register_pytree_with_keys_class
class Named(Pair):
    def tree_flatten_with_keys(self):
        return [(GetAttrKey("x"), self.x), ("why", self.y)], self.aux

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, aux)

    def __eq__(self, other):
        return type(other) is Named and vars(self) == vars(other)


@register_pytree_node_class
class Sequence:
    def __init__(self, *items):
        self.items = items

    def tree_flatten(self):
        return iter(self.items), "aux"

    @classmethod
    def tree_unflatten(cls, aux, children):
        assert aux == "aux" and type(children) is tuple
        return cls(*children)


@register_dataclass
@dataclass(frozen=True)
class Layer:
    weight: object
    bias: object = 0
    name: str = field(default="layer", metadata={"static": True})
    size: int = tree.static(default=3, kw_only=True)


@register_static
@dataclass(frozen=True)
class Config:
    rate: float


# ---- key paths

PATHS = {
    "leaf": (1, [""], [""]),
    "none": (None, [], []),
    "tuple": ((1, (2,)), ["[0]", "[1][0]"], ["0", "1/0"]),
    "list": ([1, [2]], ["[0]", "[1][0]"], ["0", "1/0"]),
    "dict": ({"b": 1, "a": (2, None)}, ["['a'][0]", "['b']"], ["a/0", "b"]),
    "integer keys": ({2: 1, 1: 3}, ["[1]", "[2]"], ["1", "2"]),
    "named tuple": (Point(1, [2]), [".a", ".b[0]"], ["a", "b/0"]),
    "ordered dict": (OrderedDict([("b", 1), ("a", 2)]), ["['b']", "['a']"], ["b", "a"]),
    "default dict": (defaultdict(list, {"b": 1, "a": 2}), ["['a']", "['b']"], ["a", "b"]),
    "partial": (
        Partial(max, 1, key=3),
        ["[<flat index 0>][0]", "[<flat index 1>]['key']"],
        ["0/0", "1/key"],
    ),
    "custom": (Pair(1, (2,)), ["[<flat index 0>]", "[<flat index 1>][0]"], ["0", "1/0"]),
    "custom with keys": (Named(1, (2,)), [".x", "why[0]"], ["x", "why/0"]),
    "dataclass": (Layer(1, {"k": 2}), [".weight", ".bias['k']"], ["weight", "bias/k"]),
    "static": (Config(0.1), [], []),
}


@pytest.mark.parametrize("name", PATHS)
def test_key_paths(name):
    value, texts, simple = PATHS[name]
    pairs, treedef = tree_flatten_with_path(value)
    assert treedef == tree_structure(value)
    assert [leaf for _, leaf in pairs] == tree_leaves(value)
    assert [keystr(path) for path, _ in pairs] == texts
    assert [keystr(path, simple=True, separator="/") for path, _ in pairs] == simple
    assert tree_leaves_with_path(value) == pairs
    mapped = tree_map_with_path(lambda path, x, y: (keystr(path), x, y), value, value)
    assert treedef.flatten_up_to(mapped) == [(text, leaf, leaf) for text, (_, leaf) in zip(texts, pairs)]


def test_paths_have_typed_entries():
    value = [{"a": Point(0, Named(Layer(1), Pair(2, 3)))}]
    first, weight, _, last, _ = [path for path, _ in tree_leaves_with_path(value)]
    assert first == (SequenceKey(0), DictKey("a"), GetAttrKey("a"))
    assert weight == (SequenceKey(0), DictKey("a"), GetAttrKey("b"), GetAttrKey("x"), GetAttrKey("weight"))
    assert last == (SequenceKey(0), DictKey("a"), GetAttrKey("b"), "why", FlattenedIndexKey(0))


def test_is_leaf_with_path():
    value = {"a": (1, 2), "b": None}
    seen = []

    def stop(path, x):
        seen.append((keystr(path), x))
        return x is None

    pairs, treedef = tree_flatten_with_path(value, is_leaf=stop, is_leaf_takes_path=True)
    assert seen == [("", value), ("['a']", (1, 2)), ("['a'][0]", 1), ("['a'][1]", 2), ("['b']", None)]
    assert [leaf for _, leaf in pairs] == [1, 2, None]
    assert repr(treedef) == "PyTreeDef({'a': (*, *), 'b': *})"
    assert tree_leaves_with_path(value, is_leaf=lambda x: isinstance(x, tuple)) == [((DictKey("a"),), (1, 2))]
    assert default_registry.flatten_with_path(value, lambda path, x: len(path) == 1)[0] == [
        ((DictKey("a"),), (1, 2)),
        ((DictKey("b"),), None),
    ]


@pytest.mark.parametrize(
    "make, name, value, text, plain",
    [
        (DictKey, "key", "a", "['a']", "a"),
        (DictKey, "key", 1.5, "[1.5]", "1.5"),
        (SequenceKey, "idx", 3, "[3]", "3"),
        (SequenceKey, "idx", 10**6, "[1000000]", "1000000"),
        (GetAttrKey, "name", "z", ".z", "z"),
        (FlattenedIndexKey, "key", 2, "[<flat index 2>]", "2"),
    ],
)
def test_key_types(make, name, value, text, plain):
    key = make(value)
    assert getattr(key, name) == value and make.__match_args__ == (name,)
    assert repr(key) == f"{make.__name__}({name}={value!r})"
    assert str(key) == keystr((key,)) == text and keystr((key,), simple=True) == plain
    assert key == make(value) == make(**{name: value})
    assert (key != make(value)) is False and hash(key) == hash(make(value))
    assert pickle.loads(pickle.dumps(key)) == key == copy.copy(key)
    with pytest.raises(AttributeError):
        setattr(key, name, 3)
    with pytest.raises(TypeError):
        _ = key < key


def test_keys_of_different_types_differ():
    assert len({DictKey(1), SequenceKey(1), FlattenedIndexKey(1), 1}) == 4
    assert hash(DictKey("a")) == hash("a") and DictKey(1) == DictKey(1.0)
    for make, wrong in ((SequenceKey, "a"), (FlattenedIndexKey, 1.5), (GetAttrKey, 1)):
        with pytest.raises(TypeError, match=f"{make.__name__}: argument"):
            make(wrong)
    with pytest.raises(TypeError, match="unhashable"):
        hash(DictKey([]))
    with pytest.raises(TypeError):
        DictKey()


def test_keystr():
    assert keystr(()) == "" and keystr(("a", 3)) == "a3" and keystr(("a", 3), simple=True, separator="/") == "a/3"
    assert keystr((DictKey("a"), SequenceKey(2)), separator="/") == "['a']/[2]"
    with pytest.raises(TypeError):
        keystr(3)


# ---- one level


def test_flatten_one_level():
    assert flatten_one_level({"b": 1, "a": (2,)}) == (((2,), 1), ("a", "b"))
    assert flatten_one_level([1, [2]]) == ([1, [2]], None) and flatten_one_level((1,)) == ((1,), None)
    assert flatten_one_level(None) == ((), None)
    assert flatten_one_level(Point(1, 2)) == ([1, 2], Point)
    assert flatten_one_level(Layer(1, 2)) == ([1, 2], ("layer", 3))
    assert flatten_one_level_with_keys(Layer(1, 2))[0] == [(GetAttrKey("weight"), 1), (GetAttrKey("bias"), 2)]
    assert flatten_one_level_with_keys((5,)) == (((SequenceKey(0), 5),), None)
    assert flatten_one_level_with_keys(Pair(1, 2, "q")) == ([(FlattenedIndexKey(0), 1), (FlattenedIndexKey(1), 2)], "q")
    for function in (flatten_one_level, flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="can't tree-flatten type: <class 'int'>"):
            function(3)
    assert default_registry.flatten_one_level(3) is None and default_registry.is_node(list)


# ---- registered classes


def test_custom_nodes():
    value = Pair(1, (2, None), "aux")
    leaves, treedef = tree_flatten(value)
    assert leaves == [1, 2] and repr(treedef) == "PyTreeDef(CustomNode(Pair[aux], [*, (*, None)]))"
    assert treedef.node_data() == (Pair, "aux") and treedef.children() == [tree_structure(0), tree_structure((0, None))]
    assert tree_unflatten(treedef, [3, 4]) == Pair(3, (4, None), "aux")
    assert tree_structure(Pair(1, 2, "p")) != tree_structure(Pair(1, 2, "q"))
    assert tree_map(lambda x, y: x + y, Pair(1, 2), Pair(3, 4)) == Pair(4, 6)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert tree_map(lambda x: x + 1, Sequence(1, 2)).items == (2, 3)
    assert tree_map(lambda x: -x, Named(1, [2])) == Named(-1, [-2])


def test_subclasses_of_registered_classes_are_leaves():
    class Derived(Pair):
        pass

    assert not is_tree_node(Derived) and len(tree_leaves(Derived(1, 2))) == 1


def test_registration_of_a_named_tuple_or_number_overrides():
    Special = namedtuple("Special", "a b")
    register_pytree_node(Special, lambda s: ((s.a,), s.b), lambda b, children: Special(children[0], b))
    assert tree_map(lambda x: x + 1, Special(3, 4)) == Special(4, 4)

    class Integer(int):
        pass

    assert tree_leaves(Integer(3)) == [3]
    register_pytree_node(Integer, lambda i: ((int(i),), None), lambda _, children: Integer(children[0]))
    assert type(tree_map(lambda x: x + 1, Integer(3))) is Integer


@pytest.mark.parametrize("children", [[1, 2], (1, 2), {1: 0, 2: 0}, range(1, 3), None])
def test_children_are_any_iterable(children):
    class Node:
        pass

    register_pytree_node(
        Node,
        lambda node: ((i for i in (1, 2)) if children is None else children, "aux"),
        lambda aux, children: (aux, children),
    )
    assert tree_leaves(Node()) == [1, 2]
    assert tree_map(lambda x: x, Node()) == ("aux", (1, 2))


def test_register_with_keys_derives_flatten():
    class Node:
        pass

    register_pytree_with_keys(Node, lambda node: ((("k", 1), ("l", [2])), "aux"), lambda aux, children: children)
    assert tree_leaves(Node()) == [1, 2] and tree_structure(Node()).node_data() == (Node, "aux")
    assert tree_leaves_with_path(Node()) == [(("k",), 1), (("l", SequenceKey(0)), 2)]


def test_with_keys_class_prefers_its_own_flatten():
    class Node(Named):
        def tree_flatten(self):
            return (self.x, self.y), "fast"

    register_pytree_with_keys_class(Node)
    assert tree_structure(Node(1, 2, "slow")).node_data() == (Node, "fast")


def test_duplicate_registration():
    for nodetype in (Pair, list, type(None), dict, tuple, OrderedDict, defaultdict, Config):
        with pytest.raises(ValueError, match=f"Duplicate custom PyTreeDef type registration for .*{nodetype.__name__}"):
            register_pytree_node(nodetype, lambda x: ((), None), lambda aux, children: None)
    with pytest.raises(ValueError, match="Duplicate custom dataclass PyTreeDef type registration"):
        register_dataclass(Layer)


def test_wrong_registrations():
    with pytest.raises(TypeError, match=r"argument 'nodetype'.*must be a class, got 3"):
        register_pytree_node(3, lambda x: x, lambda x: x)
    with pytest.raises(TypeError, match=r"argument 'flatten_func'.*must be callable, got 4"):
        register_pytree_node(type("Node", (), {}), 4, lambda aux, children: None)
    with pytest.raises(AttributeError, match="tree_unflatten"):
        register_pytree_node_class(type("Node", (), {}))


# ---- dataclasses


def test_dataclass_nodes():
    layer = Layer(1, [2], "first")
    leaves, treedef = tree_flatten(layer)
    assert leaves == [1, 2] and repr(treedef) == "PyTreeDef(CustomNode(Layer[('first', 3)], [*, [*]]))"
    assert treedef.node_data() == (Layer, ("first", 3))
    assert tree_map(lambda x: x * 2, layer) == Layer(2, [4], "first")
    assert tree_structure(Layer(0, [0])) != treedef == tree_structure(Layer(0, [0], "first"))
    assert treedef != tree_structure(Layer(0, [0], "first", size=4))
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    made = PyTreeDef.from_node_data_and_children(default_registry, (Layer, ("x", 1)), [tree_structure(0)] * 2)
    assert made.unflatten([1, 2]) == Layer(1, 2, "x", size=1)


def test_dataclass_field_order_is_as_given():
    @dataclass
    class Node:
        x: int
        y: int
        z: int = 5
        w: int = field(default=7, init=False)

    assert register_dataclass(Node, ["z", "x"], ["y"]) is Node
    assert tree_leaves(Node(1, 2, 3)) == [3, 1]
    assert tree_map(lambda v: v * 10, Node(1, 2, 3)) == Node(10, 2, 30)


def test_dropped_fields_take_their_default():
    @dataclass
    class Node:
        x: int
        y: int = 7

    register_dataclass(Node, ["x"], [], drop_fields=["y"])
    assert tree_map(lambda v: v + 1, Node(1, 9)) == Node(2, 7)


def test_classes_that_are_no_dataclasses():
    class Node:
        def __init__(self, p, q):
            self.p, self.q = p, q

    register_dataclass(Node, ["p"], ["q"])
    node = tree_map(lambda v: v + 1, Node(1, 2))
    assert (node.p, node.q) == (2, 2)
    broken = Node(1, 2)
    del broken.p
    with pytest.raises(AttributeError, match="'p'"):
        tree_leaves(broken)


@pytest.mark.parametrize(
    "data, meta, drop, error, text",
    [
        (["x"], [], (), ValueError, "Missing fields: {'y'}."),
        (["x", "q"], ["y"], (), ValueError, "Unexpected fields: {'q'}"),
        (["x", "y"], ["y"], (), ValueError, "{'y'} came as data_fields and as meta_fields"),
        (["x", "y"], None, (), TypeError, r"together, or neither .* data_fields=\['x', 'y'\] meta_fields=None"),
        (None, ["x"], (), TypeError, "together, or neither"),
        (["x", "y", "w"], [], (), ValueError, "Unexpected fields: {'w'}"),
        (None, None, (), ValueError, "Unexpected fields: {'w'}"),
        (["x", "y"], [], ("y",), ValueError, "Unexpected fields: {'y'}"),
    ],
)
def test_wrong_dataclass_fields(data, meta, drop, error, text):
    @dataclass
    class Node:
        x: int
        y: int
        w: int = field(default=1, init=False)

    with pytest.raises(error, match=text):
        register_dataclass(Node, data, meta, drop)
    assert not is_tree_node(Node)


def test_fields_are_required_without_a_dataclass():
    with pytest.raises(TypeError, match=r"no dataclass are not known; .*\. Got nodetype=<class"):
        register_dataclass(type("Node", (), {}))
    with pytest.raises(TypeError, match="must be a class, got 3"):
        register_dataclass(3, [], [])


def test_static_nodes():
    leaves, treedef = tree_flatten([Config(0.1), 1])
    assert leaves == [1] and treedef != tree_structure([Config(0.2), 1]) and treedef == tree_structure([Config(0.1), 1])
    assert treedef.unflatten([2]) == [Config(0.1), 2]
    assert tree_structure(Config(0.1)).node_data() == (Config, Config(0.1))
    assert hash(tree_structure(Config(0.1))) != hash(tree_structure(Config(0.2)))


def test_static_field():
    made = tree.static(default=3, metadata={"unit": "m"})
    assert isinstance(made, dataclasses.Field) and made.default == 3
    assert dict(made.metadata) == {"unit": "m", "static": True}


INTEGERS_ARE_NODES = """
import pullback.numpy as jnp, pullback.tree_util as tree_util
tree_util.register_pytree_node(int, lambda i: ((), int(i)), lambda value, _: value)
x = jnp.arange(3.0)
for _ in range(3):
    print((x + 1).tolist(), jnp.sum(x, axis=0), jnp.broadcast_to(x, (1, 3)).shape, jnp.linalg.svd(x[None])[1].shape)
"""


def test_arrays_are_leaves_where_integers_are_not():
    out = subprocess.run(
        [sys.executable, "-c", INTEGERS_ARE_NODES], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert out.stdout.splitlines() == ["[1.0, 2.0, 3.0] 3.0 (1, 3) (1,)"] * 3
