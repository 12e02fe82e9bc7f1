"""What is said when pytrees do not match. Types and facts are those of JAX 0.10.2, learned by running it."""

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

from pullback.tree_util import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    PyTreeDef,
    SequenceKey,
    default_registry,
    register_pytree_node,
    tree_broadcast,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
    treedef_tuple,
)
from pullback.util.pytree import broadcast_prefix, equality_errors, flatten_axes, prefix_errors

Point = namedtuple("Point", "a b")
Other = namedtuple("Other", "a b")


class Box:
    def __init__(self, x, aux):
        self.x, self.aux = x, aux

    def __repr__(self):
        return f"Box({self.x}, {self.aux})"


register_pytree_node(Box, lambda box: ((box.x,), box.aux), lambda aux, children: Box(children[0], aux))


def make(flatten, unflatten=lambda aux, children: None, keys=None):
    """An object of a new registered class."""

    class Node:
        def __repr__(self):
            return "Node()"

    register_pytree_node(Node, flatten, unflatten, keys)
    return Node()


# ---- treedef.flatten_up_to

UP_TO = [
    (None, 1, "Expected None, got 1."),
    ((1, 2), [1, 2], r"Expected tuple, got \[1, 2\]."),
    ((1, 2), Point(1, 2), "Expected tuple, got Point"),
    ((1, 2), None, "Expected tuple, got None"),
    ((1, 2), (1,), r"Tuple arity mismatch: 1 != 2; tuple: \(1,\)."),
    ([1], "x", "Expected list, got 'x'."),
    ([1], [], r"List arity mismatch: 0 != 1; list: \[\]."),
    ({"a": 1}, OrderedDict(a=1), "Expected dict, got OrderedDict"),
    ({"a": 1}, defaultdict(int, a=1), "Expected dict, got defaultdict"),
    ({"a": 1, "b": 2}, {}, r"Dict key mismatch; expected keys: \['a', 'b'\]; present keys: \[\]."),
    ({"a": 1, "b": 2}, {"c": 1, "a": 2}, r"expected keys: \['a', 'b'\]; present keys: \['a', 'c'\]."),
    (Point(1, 2), (1, 2), r"Expected named tuple, got \(1, 2\)."),
    (Point(1, 2), Other(1, 2), "Named tuple type mismatch: expected type: .*Point.*, tuple: Other"),
    (OrderedDict(a=1), {"a": 1}, "Custom node type mismatch: expected type: .*OrderedDict.*, value: {'a': 1}."),
    (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2), r"Mismatch custom node data: \('a', 'b'\) != \('b', 'a'\)"),
    (Box(1, "p"), 3, "Custom node type mismatch: expected type: .*Box.*, value: 3."),
    (Box(1, "p"), Box(1, "q"), r"Mismatch custom node data: 'p' != 'q'; value: Box\(1, q\)."),
    (((1, 2), [3]), ((1, 2), [3, 4]), "List arity mismatch: 2 != 1"),
]


@pytest.mark.parametrize("prefix, value, text", UP_TO)
def test_flatten_up_to(prefix, value, text):
    with pytest.raises(ValueError, match=text):
        tree_structure(prefix).flatten_up_to(value)


@pytest.mark.parametrize("prefix, value, text", UP_TO)
def test_every_mismatch_has_a_prefix_error(prefix, value, text):
    errors = prefix_errors(prefix, value)
    assert errors and all("pytree structure error" in str(error("name")) for error in errors)
    for function in (broadcast_prefix, tree_broadcast):
        with pytest.raises(ValueError, match=r"pytree structure error.* at key path\n    broadcast_prefix prefix_tree"):
            function(prefix, value)
    with pytest.raises(ValueError, match=r"pytree structure error.* at key path\n    tree_map tree"):
        tree_map(lambda x, y: x, prefix, value)
    with pytest.raises(ValueError, match="at key path\n    tree_map_with_path tree"):
        tree_map_with_path(lambda path, x, y: x, prefix, value)


def test_a_leaf_is_a_prefix_of_anything():
    for value in (None, (), {"a": [1]}, Box(1, 2)):
        assert tree_structure(1).flatten_up_to(value) == [value] and not prefix_errors(1, value)
    assert broadcast_prefix(1, None) == []
    assert broadcast_prefix(None, (1, 2), is_leaf=lambda x: x is None) == [None, None]
    assert broadcast_prefix((3, {"a": 4, "b": 5}), ([0, 0], {"b": Box((1, 2), 0), "a": None})) == [3, 3, 5, 5]


# ---- prefix_errors: message, where, what

PREFIX = [
    ((1, 2), (1,), "different lengths of tuple", "in_axes", ["length 2", "length 1"]),
    ((1, 2), [1, 2], "different types", "in_axes", ["<class 'tuple'>", "<class 'list'>"]),
    (
        {"a": 1, "c": 2},
        {"b": 1, "c": 2},
        "different pytree metadata",
        "in_axes",
        ["keys\n    a c\n", "one with\n    b c\n", "Only in the prefix: a; only in the tree: b"],
    ),
    (
        OrderedDict(a=1, b=2),
        OrderedDict(a=1),
        "different numbers of pytree children",
        "in_axes",
        ["with 2 children\n    a b", "belongs to has 1\n    a", "\n    b"],
    ),
    ((1, (2, 3)), (1, 5), "different types", "in_axes[1]", ["<class 'tuple'>", "<class 'int'>"]),
    ((1, None), (1, 2), "different types", "in_axes[1]", ["NoneType", "is_leaf=lambda x: x is None"]),
    ([1, {"x": (1, 2)}], [1, {"x": 3}], "different types", "in_axes[1]['x']", ["<class 'int'>"]),
    (Box(1, "p"), Box(1, "{q}"), "different pytree metadata", "in_axes", ["- p", "+ {q}"]),
    (Box((1,), "p"), Box((1, 2), "p"), "different lengths of tuple", "in_axes[<flat index 0>]", ["length 2"]),
    (Point(1, 2), Other(1, 2), "different types", "in_axes", ["Point", "Other"]),
    (Point(1, (2, 3)), Point(1, (2,)), "different lengths of tuple", "in_axes.b", []),
    (Partial(max, 1), Partial(min, 1), "different pytree metadata", "in_axes", ["function max", "function min"]),
    ({"a": 1}, 3, "different types", "in_axes", ["<class 'dict'>", "<class 'int'>"]),
]


@pytest.mark.parametrize("prefix, value, title, where, facts", PREFIX)
def test_prefix_errors(prefix, value, title, where, facts):
    (error,) = prefix_errors(prefix, value)
    text = str(error("in_axes"))
    assert isinstance(error("in_axes"), ValueError)
    assert text.startswith(f"pytree structure error: {title} at key path\n    {where}\n")
    for fact in facts:
        assert fact in text


def test_all_prefix_errors_are_found():
    errors = prefix_errors(((1, 2), (3, 4)), ((1,), (3, 4, 5)))
    assert ["name[0]" in str(errors[0]("name")), "name[1]" in str(errors[1]("name"))] == [True, True]
    assert prefix_errors((None, 1), (3, 1), lambda x: x is None) == []


# ---- flatten_axes


def test_flatten_axes():
    treedef = tree_structure(((0, 0), {"a": 0, "b": None}))
    assert flatten_axes("in_axes", treedef, 1) == [1, 1, 1]
    assert flatten_axes("in_axes", treedef, None) == [None] * 3
    assert flatten_axes("in_axes", treedef, (None, 2)) == [None, None, 2]
    assert flatten_axes("in_axes", treedef, ((0, None), {"a": 3, "b": None})) == [0, None, 3]
    assert flatten_axes("in_axes", tree_structure(None), 3) == []


@pytest.mark.parametrize("tupled", [False, True])
def test_flatten_axes_errors(tupled):
    with pytest.raises(ValueError) as caught:
        flatten_axes("vmap in_axes", tree_structure(((0, 0), 0)), ((0, 1, 2), {"a": 1}), tupled_args=tupled)
    text = str(caught.value)
    assert text.startswith("vmap in_axes specification: expected a tree prefix of the value it is for")
    assert "Mismatch details (2 found)" in text and "vmap in_axes[0]" in text and "vmap in_axes[1]" in text
    assert "a leaf" in text and "_Leaf" not in text


@pytest.mark.parametrize(
    "given, found",
    [({"a": 0}, "But it is a dict"), ((0,), "But it is a tuple of length 1, for")],
)
def test_flatten_axes_of_arguments_that_are_no_tuple_of_entries(given, found):
    with pytest.raises(ValueError, match=f"expected one sharding or PartitionSpec for all arguments.*{found}"):
        flatten_axes("pjit in_shardings", tree_structure((0, 0)), given, tupled_args=True)


def test_flatten_axes_never_builds_users_objects_unless_it_fails():
    def refuse(aux, children):
        raise RuntimeError("no placeholders")

    treedef = tree_structure(make(lambda node: ((1, 2), None), refuse))
    assert flatten_axes("in_axes", treedef_tuple([treedef]), (0,)) == [0, 0]
    with pytest.raises(ValueError, match=r"expected a tree prefix.*\n.*no placeholders"):
        flatten_axes("in_axes", treedef_tuple([treedef]), (0, 1))


# ---- equality_errors

EQUALITY = [
    ((1, 2), (1,), (), "tuple of length 2", "tuple of length 1", "the lengths do not match"),
    ((1, 2), [1, 2], (), "<class 'tuple'>", "<class 'list'>", "their Python types differ"),
    (
        {"a": 1},
        {"b": 1},
        (),
        "<class 'dict'> with pytree metadata ('a',)",
        "<class 'dict'> with pytree metadata ('b',)",
        "the pytree node metadata does not match",
    ),
    (
        OrderedDict(a=1, b=2),
        OrderedDict(a=1),
        (),
        "<class 'collections.OrderedDict'> with 2 children",
        "<class 'collections.OrderedDict'> with 1 child",
        "the numbers of children do not match, with the symmetric difference of key sets: {'b'}",
    ),
    (
        [1, {"x": (1, 2)}],
        [1, {"x": 3}],
        (SequenceKey(1), DictKey("x")),
        "<class 'tuple'>",
        "<class 'int'>",
        "their Python types differ",
    ),
    (
        Box((1,), 0),
        Box((), 0),
        (FlattenedIndexKey(0),),
        "tuple of length 1",
        "tuple of length 0",
        "the lengths do not match",
    ),
    (
        Point(1, 2),
        Point(1, None),
        (GetAttrKey("b"),),
        "<class 'int'>",
        "<class 'NoneType'>",
        "their Python types differ",
    ),
]


@pytest.mark.parametrize("one, two, path, thing1, thing2, reason", EQUALITY)
def test_equality_errors(one, two, path, thing1, thing2, reason):
    assert list(equality_errors(one, two)) == [(path, thing1, thing2, reason)]
    assert list(equality_errors(one, one)) == []
    assert [error[0] for error in equality_errors([0, one], [0, two])] == [(SequenceKey(1), *path)]


# ---- unflatten


@pytest.mark.parametrize("value, count", [(1, 1), ((1, 2), 2), ({"a": (1, None)}, 1), (None, 0)])
@pytest.mark.parametrize("kind", [list, iter])
def test_wrong_number_of_leaves(value, count, kind):
    if count:
        with pytest.raises(ValueError, match=f"Too few leaves for PyTreeDef; expected {count}, got {count - 1}"):
            tree_unflatten(tree_structure(value), kind(range(count - 1)))
    with pytest.raises(ValueError, match=f"Too many leaves for PyTreeDef; expected {count}."):
        tree_unflatten(tree_structure(value), kind(range(count + 1)))


def test_endless_leaves():
    def endless():
        while True:
            yield 1

    with pytest.raises(ValueError, match=r"Too many leaves for PyTreeDef; expected 2\."):
        tree_unflatten(tree_structure((1, 2)), endless())


def test_arguments_of_wrong_types():
    with pytest.raises(TypeError, match="'leaves' must be a sequence, got 3"):
        tree_unflatten(tree_structure(1), 3)
    with pytest.raises(TypeError, match="'treedef' must be a PyTreeDef"):
        tree_unflatten([1, 2], [3])
    with pytest.raises(TypeError, match="'is_leaf' is 3; expected a callable or None"):
        tree_leaves([1], is_leaf=3)
    with pytest.raises(TypeError, match="tree_map: argument 'f' must be a function, got 3"):
        tree_map(3, [1])
    with pytest.raises(TypeError, match="treedef_tuple: expected a PyTreeDef, got 1"):
        treedef_tuple([1])
    with pytest.raises(TypeError, match="compose: expected a PyTreeDef, got 1"):
        tree_structure(1).compose(1)
    with pytest.raises(TypeError):
        PyTreeDef()


@pytest.mark.parametrize("answer", ["yes", np.bool_(True), 1, 0])
def test_is_leaf_must_return_a_bool(answer):
    with pytest.raises(ValueError, match=r"is_leaf returned .*, which is neither True nor False"):
        tree_leaves({"a": 1}, is_leaf=lambda x: answer)


# ---- dict keys


def test_unsortable_keys():
    class Bad:
        def __lt__(self, other):
            raise ZeroDivisionError("boom")

    bad = {Bad(): 1, Bad(): 2}
    for value, cause in (({"a": 1, 2: 3}, TypeError), ({1j: 1, 2j: 2}, TypeError), (bad, ZeroDivisionError)):
        for function in (tree_leaves, tree_flatten_with_path, tree_structure({}).flatten_up_to):
            with pytest.raises(ValueError, match="Comparator raised exception while sorting pytree dict") as caught:
                function(value)
            assert type(caught.value.__cause__) is cause
    assert tree_leaves({Bad(): 1}) == [1]
    with pytest.raises(TypeError, match="not supported between instances"):
        tree_leaves(defaultdict(list, {"a": 1, 2: 3}))


# ---- what registered functions may return


@pytest.mark.parametrize("result", [3, None, ((1,), 2, 3), ((1,),), [(1,), 2]])
def test_flatten_must_return_a_pair(result):
    node = make(lambda node: result, keys=lambda node: result)
    with pytest.raises(ValueError, match=r"returned .* for a .*Node.*; expected a tuple \(children, aux_data\)"):
        tree_flatten(node)
    with pytest.raises(ValueError, match=r"with keys returned .*; expected a tuple \(pairs of keys"):
        tree_flatten_with_path(node)


@pytest.mark.parametrize("children", [3, None])
def test_children_must_be_iterable(children):
    with pytest.raises(ValueError, match=rf"returned \({children}, None\) for a .*cannot be iterated over"):
        tree_flatten(make(lambda node: (children, None)))


@pytest.mark.parametrize("pairs", [(1, 2), (("k", 1, 3),), (["k", 1],)])
def test_keys_must_come_in_pairs(pairs):
    with pytest.raises(ValueError, match=r"as child 0 of a .*; expected a tuple \(key, child\)"):
        tree_flatten_with_path(make(lambda node: ((1, 2), None), keys=lambda node: (pairs, None)))


@pytest.mark.parametrize("fields", [3, ("x",), ("x", "y", "z")])
def test_fields_of_named_tuples_must_fit(fields):
    value = type("Fake", (tuple,), {"_fields": fields})((1, 2))
    assert tree_leaves(value) == [1, 2]
    with pytest.raises(ValueError, match="is a named tuple with _fields"):
        tree_flatten_with_path(value)


# ---- metadata


def test_metadata_that_does_not_compare():
    one, two = (tree_structure(Box(1, np.arange(3))) for _ in range(2))
    assert one == one and hash(one) == hash(two)
    for compare in (
        lambda: one == two,
        lambda: one.flatten_up_to(Box(1, np.arange(3))),
        lambda: tree_map(max, Box(1, np.arange(3)), Box(1, np.arange(3))),
    ):
        with pytest.raises(ValueError, match="comparing their metadata failed") as caught:
            compare()
        assert isinstance(caught.value.__cause__, ValueError)
    assert hash(tree_structure(Box(1, [1]))) == hash(tree_structure(Box(2, [1])))


# ---- structures from parts


@pytest.mark.parametrize(
    "node_data, children, error",
    [
        (None, [1], ValueError),
        ((type(None), None), [1], ValueError),
        ((dict, ["a", "b"]), [1], ValueError),
        ((dict, None), [1], TypeError),
        ((set, 0), [1], ValueError),
        ((3, None), [1], TypeError),
        (5, [1], TypeError),
        ((OrderedDict, ("a",)), [1, 2], ValueError),
        ((OrderedDict, 3), [1], ValueError),
        ((defaultdict, (int,)), [1], ValueError),
        ((defaultdict, ("a",)), [1], ValueError),
        ((defaultdict, (int, "a")), [1], ValueError),
    ],
)
def test_impossible_parts(node_data, children, error):
    with pytest.raises(error):
        PyTreeDef.from_node_data_and_children(default_registry, node_data, [tree_structure(c) for c in children])
    with pytest.raises(TypeError, match="expected a PyTreeDef, got 1"):
        PyTreeDef.from_node_data_and_children(default_registry, (tuple, None), [1])
    with pytest.raises(TypeError, match="expected 3 arguments"):
        PyTreeDef.from_node_data_and_children(default_registry, (tuple, None))


@pytest.mark.parametrize(
    "state",
    [
        [],
        [(0, 0, None, None)] * 2,
        [(2, 1, None, None)],
        [(2, 10**6, None, None)],
        [(99, 0, None, None)],
        [(-1, 0, None, None)],
        [(0, -1, None, None)],
        [(0, 0, None, None), (5, 1, ["a", "b"], None)],
        [(5, 0, None, None)],
        [(6, 0, None, set)],
        [(6, 0, None, 3)],
        [(3, 0, None, tuple)],
        [(7, 0, None, Box)],
        [3],
        [(1,)],
        3,
        [("a", 0, 0, 0)],
    ],
)
def test_damaged_pickles(state):
    with pytest.raises((ValueError, TypeError)):
        PyTreeDef._from_state(state)


# ---- errors of user code pass unchanged


def test_user_errors_pass():
    def fail(*args):
        raise ZeroDivisionError

    def broken():
        yield 1
        raise KeyError("gen")

    good = make(lambda node: ((1, 2), None), fail)
    for run in (
        lambda: tree_leaves(make(fail)),
        lambda: tree_map(lambda x: x, good),
        lambda: tree_map(fail, [1]),
        lambda: tree_leaves([1], is_leaf=fail),
        lambda: tree_flatten_with_path(make(fail, keys=fail)),
        lambda: tree_structure(0).walk(fail, fail, [1]),
        lambda: tree_structure((0,)).walk(fail, None, [1]),
    ):
        with pytest.raises(ZeroDivisionError):
            run()
    node = make(lambda node: (broken(), None))
    for run in (lambda: tree_leaves(node), lambda: tree_unflatten(tree_structure((1, 2)), broken())):
        with pytest.raises(KeyError, match="gen"):
            run()


def test_value_errors_of_the_mapped_function_are_not_explained_away():
    def fail(x, y):
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        tree_map(fail, [1], [2])
