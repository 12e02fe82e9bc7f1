"""Nothing a user passes may crash the process, leak, or confuse another thread."""

import gc
import pickle
import sys
import threading
import tracemalloc
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pullback.tree_util import (
    DictKey,
    Partial,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_static,
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


class Node:
    """Its functions are set by the test that uses it."""

    def flatten(self):
        return (), None

    def unflatten(aux, children):
        return Node()


register_pytree_node(Node, lambda node: node.flatten(), lambda aux, children: Node.unflatten(aux, children))


@register_dataclass
@dataclass
class Layer:
    w: object
    b: object


@register_static
class Static:
    pass


class Leaf:
    """Can be referred to weakly."""


# ---- depth


def nested(depth):
    value = [1]
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "function",
    [
        tree_leaves,
        tree_structure,
        tree_flatten_with_path,
        lambda x: tree_map(abs, x),
        lambda x: tree_map_with_path(lambda path, leaf: leaf, x),
    ],
)
def test_too_deep(function):
    loop = []
    loop.append(loop)
    keyed = {}
    keyed["self"] = {"again": keyed}
    for value in (loop, keyed, nested(100_000)):
        with pytest.raises(RecursionError):
            function(value)


def test_depth_is_bounded_whatever_the_recursion_limit():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        for function in (tree_leaves, tree_flatten_with_path):
            with pytest.raises(RecursionError, match="depth"):
                function(nested(200_000))
        treedef = tree_structure(nested(3000))
        assert treedef.num_nodes == 3002
    finally:
        sys.setrecursionlimit(limit)


def test_deep_structures_need_no_stack():
    one = tree_structure(1)
    deep = treedef_tuple([one])
    while deep.num_nodes < 100_000:
        deep = deep.compose(deep)
    value = deep.unflatten([7])
    assert deep.flatten_up_to(value) == [7] and deep == deep.compose(one) and hash(deep) == hash(deep.compose(one))
    assert deep.flatten_up_to(deep.from_iterable_tree(value)) == [7]
    assert deep.walk(lambda children, data: len(children), None, [7]) == 1
    assert deep.children()[0].num_nodes == deep.num_nodes - 1
    assert len(repr(deep)) == 3 * (deep.num_nodes - 1) + len("PyTreeDef(*)")
    assert pickle.loads(pickle.dumps(deep)) == deep
    with pytest.raises(RecursionError):
        tree_leaves(value)


def test_recursion_in_user_code():
    class Endless:
        pass

    register_pytree_node(Endless, lambda e: ((Endless(),), None), lambda aux, children: None)
    with pytest.raises(RecursionError):
        tree_leaves(Endless())
    assert tree_leaves(nested(500)) == [1]  # the limit was given back


# ---- containers that change while they are flattened


def test_list_changes_while_flattened():
    for change in (lambda xs: xs.clear(), lambda xs: xs.append(1), lambda xs: xs.__delitem__(0)):
        value = [[0], [1], [2], [3]]

        def stop(x, value=value, change=change):
            if x == [1]:
                change(value)
            return False

        with pytest.raises(RuntimeError, match="list changed size"):
            tree_leaves(value, is_leaf=stop)


@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda pairs: defaultdict(list, pairs)])
def test_dict_changes_while_flattened(kind):
    value = kind([("a", [0]), ("b", [1]), ("c", [2])])

    def stop(x):
        if x == [0]:
            value.clear()
            gc.collect()
        return False

    assert tree_leaves(value, is_leaf=stop) == [0, 1, 2]


def test_comparison_of_keys_changes_the_dict():
    class Key:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            value.clear()
            return self.n < other.n

    value = {Key(2): "b", Key(1): "a", Key(3): "c"}
    assert tree_leaves(value) == ["a", "b", "c"]


def test_key_that_compares_equal_to_nothing():
    class Key:
        def __lt__(self, other):
            return id(self) < id(other)

        def __eq__(self, other):
            return False

        __hash__ = object.__hash__

    value = {Key(): 1, Key(): 2}
    assert sorted(tree_leaves(value)) == [1, 2]
    assert sorted(tree_structure(value).flatten_up_to(value)) == [1, 2]


def test_children_list_changes_while_visited():
    children = [[1], [2], [3]]
    node = Node()
    node.flatten = lambda: (children, None)

    def stop(x):
        if x == [1]:
            children.clear()
        return False

    assert tree_leaves(node, is_leaf=stop) == [1, 2, 3]


def test_leaves_change_while_unflattened():
    leaves = [1, 2, 3]

    def unflatten(aux, children):
        leaves.clear()
        return children

    Node.unflatten, saved = unflatten, Node.unflatten
    try:
        node = Node()
        node.flatten = lambda: ((1,), None)
        assert tree_unflatten(tree_structure([node, 2, 3]), leaves) == [(1,), 2, 3]
    finally:
        Node.unflatten = saved


def test_hostile_results_of_unflatten():
    node = Node()
    node.flatten = lambda: ((1, 2), None)
    saved = Node.unflatten
    try:
        for result in (None, NotImplemented, ..., node):
            Node.unflatten = lambda aux, children, result=result: result
            assert tree_map(abs, node) is result
    finally:
        Node.unflatten = saved


def test_flatten_whose_length_changes_between_calls():
    counter = iter(range(100))
    node = Node()
    node.flatten = lambda: (range(next(counter)), None)
    treedef = tree_structure([node, node])
    with pytest.raises(ValueError, match="Custom type arity mismatch: 2 != 0"):
        treedef_tuple([treedef.children()[0]]).flatten_up_to((node,))


def test_reentrance():
    """Flattening inside flattening, in every callback."""
    node = Node()
    node.flatten = lambda: (tree_leaves({"a": [1, {"b": 2}]}), tree_structure([1, 2]))
    assert tree_leaves([node, (node, 3)], is_leaf=lambda x: tree_leaves([x, [x]]) == []) == [1, 2, 1, 2, 3]
    assert tree_map(lambda x: tree_map(lambda y: (x, y), {"k": x}), [1, (2,)]) == [{"k": (1, 1)}, ({"k": (2, 2)},)]


def test_destructor_of_a_leaf_flattens():
    seen = []

    class Noisy:
        def __del__(self):
            seen.append(tree_leaves({"x": [1, 2]}))

    def fail(x):
        raise KeyError

    for _ in range(3):
        with pytest.raises(KeyError):
            tree_map(fail, [Noisy(), (Noisy(), 3)])
        gc.collect()
    assert seen == [[1, 2]] * 6


# ---- memory


def references():
    """How many objects the collector knows, after a collection."""
    gc.collect()
    return len(gc.get_objects())


def all_operations():
    leaf = Leaf()
    value = {
        "a": [leaf, (leaf, None)],
        "b": Point(leaf, 2),
        "c": OrderedDict(x=leaf),
        "d": defaultdict(list, y=leaf),
        "e": Layer(leaf, [leaf]),
        "f": Partial(max, leaf),
        "g": Static(),
        3 * "h": {},
    }
    leaves, treedef = tree_flatten(value)
    assert len(leaves) == 9
    tree_unflatten(treedef, leaves)
    tree_map(lambda x, y: (x, y), value, value)
    tree_map_with_path(lambda path, x: keystr(path), value)
    hash(treedef), repr(treedef), treedef == tree_structure(value), treedef.children(), treedef.node_data()
    treedef.compose(treedef).flatten_up_to(treedef.unflatten([value] * 9))
    treedef.walk(lambda children, data: children, None, leaves)
    broadcast_prefix(1, value), flatten_axes("axes", treedef, None)
    prefix_errors(value, [value]), list(equality_errors(value, {**value, "a": 3}))
    for bad in (
        lambda: tree_unflatten(treedef, leaves[1:]),
        lambda: tree_unflatten(treedef, iter([*leaves, 1])),
        lambda: treedef.flatten_up_to({**value, "e": Layer(leaf, leaf)}),
        lambda: tree_leaves({"a": leaf, 1: leaf}),
        lambda: tree_leaves([leaf, leaf], is_leaf=lambda x: x is not leaf and 3),
        lambda: tree_map(len, value),
        lambda: treedef.flatten_up_to({**value, "g": Static()}),
        lambda: flatten_axes("axes", treedef, [1]),
        lambda: tree_map(max, value, [value]),
        lambda: broadcast_prefix([1], value),
        lambda: tree_structure((1, 2)).from_iterable_tree([leaf]),
        lambda: tree_flatten_with_path({"a": leaf, 1: leaf}),
    ):
        with pytest.raises((ValueError, TypeError)):
            bad()
    return weakref.ref(leaf)


def test_no_leaks():
    for _ in range(3):
        ref = all_operations()
    gc.collect()
    assert ref() is None
    before = references()
    for _ in range(20):
        ref = all_operations()
    after = references()
    assert ref() is None
    assert after - before < 20


def test_no_memory_growth():
    value = {f"layer{i}": {"w": [1.0, (2.0,)], "b": Point(3.0, None)} for i in range(50)}

    def work():
        leaves, treedef = tree_flatten(value)
        treedef.unflatten(leaves)
        tree_map(lambda x: x, value)
        tree_flatten_with_path(value)

    work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            work()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_references_to_leaves_are_given_back():
    leaf = object()
    value = [leaf, (leaf, {"a": leaf})]
    before = sys.getrefcount(leaf)
    leaves, treedef = tree_flatten(value)
    assert sys.getrefcount(leaf) == before + 3
    del leaves
    tree_map(lambda x, y: None, value, value)
    treedef.flatten_up_to(value)
    assert sys.getrefcount(leaf) == before


def test_cycles_through_metadata_are_collected():
    node = Node()
    cell = [Leaf()]
    node.flatten = lambda cell=cell: ((1,), cell)
    ref = weakref.ref(cell[0])
    treedef = tree_structure(node)
    cell.append(treedef)
    key = DictKey(Partial(max))
    key.key.__dict__["key"] = key
    del node, cell, treedef, key
    gc.collect()
    assert ref() is None


def test_structures_keep_no_leaves_alive():
    leaf = Leaf()
    ref = weakref.ref(leaf)
    treedef = tree_structure({"a": [leaf], "b": Point(leaf, 1)})
    del leaf
    assert ref() is None and treedef.num_leaves == 3


def test_classes_die():
    """Flattening an object of a class does not keep the class alive, and a new class at its address is seen afresh."""
    for i in range(300):
        bases = (Point,) if i % 2 else (object,)
        cls = type("Temporary", bases, {})
        value = cls(1, 2) if i % 2 else cls()
        assert len(tree_leaves([value])) == (2 if i % 2 else 1)
    ref = weakref.ref(cls)
    del cls, value, bases
    gc.collect()
    assert ref() is None


# ---- threads


def test_threads():
    value = {"a": [1, (2, None)], "b": Point(3, {"c": 4}), "d": Layer(5, [6])}
    expected = tree_flatten(value)
    failures = []
    start = threading.Barrier(6)

    def work(seed):
        start.wait()
        try:
            for i in range(300):
                assert tree_flatten(value) == expected
                assert tree_map(lambda x: x + seed, value)["b"].a == 3 + seed
                mine = {f"k{seed}_{i}": [seed] * (i % 7), "z": value}
                leaves, treedef = tree_flatten(mine)
                assert treedef.unflatten(leaves) == mine and treedef == tree_structure(mine)
                cls = type(f"Class{seed}_{i}", (), {})
                register_pytree_node(cls, lambda node: ((1, 2), None), lambda aux, children: children)
                assert tree_leaves(cls()) == [1, 2]
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures


# ---- random trees

trees = st.recursive(
    st.none() | st.integers(-3, 3) | st.text(max_size=2),
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3), children, max_size=4)
        | st.dictionaries(st.integers(-5, 5), children, max_size=3)
        | st.dictionaries(st.text(max_size=3), children, max_size=4).map(OrderedDict)
        | st.dictionaries(st.text(max_size=3), children, max_size=3).map(lambda d: defaultdict(int, d))
        | st.tuples(children, children).map(lambda pair: Point(*pair))
        | st.tuples(children, children).map(lambda pair: Layer(*pair))
    ),
    max_leaves=25,
)


# The same ones in every run; no limit of time, as a machine may have other work.
EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def reference_leaves(value):
    """What the leaves are, by definition."""
    match value:
        case None:
            return []
        case OrderedDict():
            children = list(value.values())
        case dict():
            children = [value[key] for key in sorted(value)]
        case list() | tuple():
            children = list(value)
        case Layer():
            children = [value.w, value.b]
        case _:
            return [value]
    return [leaf for child in children for leaf in reference_leaves(child)]


@EXAMPLES
@given(trees)
def test_random_trees(value):
    leaves, treedef = tree_flatten(value)
    assert leaves == reference_leaves(value)
    assert treedef.unflatten(leaves) == value
    assert treedef.flatten_up_to(value) == leaves
    pairs, with_path = tree_flatten_with_path(value)
    assert with_path == treedef and [leaf for _, leaf in pairs] == leaves
    assert len({path for path, _ in pairs}) == len(leaves)
    assert treedef_tuple(treedef.children()).num_leaves == len(leaves) or treedef == tree_structure(0)
    assert broadcast_prefix(value, value) == leaves and broadcast_prefix(7, value) == [7] * len(leaves)
    assert tree_leaves(tree_map(lambda x: (x, x), value)) == [x for leaf in leaves for x in (leaf, leaf)]


@EXAMPLES
@given(trees, trees)
def test_random_pairs(one, two):
    same = tree_structure(one) == tree_structure(two)
    assert same == (not list(equality_errors(one, two)))
    assert not same or hash(tree_structure(one)) == hash(tree_structure(two))
    try:
        tree_structure(one).flatten_up_to(two)
        is_prefix = True
    except ValueError:
        is_prefix = False
    assert is_prefix == (not prefix_errors(one, two))
    if is_prefix:
        repeated = tree_leaves(tree_map(lambda x, subtree: [id(x)] * len(tree_leaves(subtree)), one, two))
        assert [id(x) for x in broadcast_prefix(one, two)] == repeated
