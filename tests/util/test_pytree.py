"""Flattening, rebuilding, mapping and comparing pytrees. Expected values: those of JAX 0.10.2, found by running it."""

import copy
import functools
import inspect
import pickle
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

from pullback import tree, tree_util
from pullback.tree_util import (
    Partial,
    PyTreeDef,
    all_leaves,
    default_registry,
    is_tree_node,
    tree_all,
    tree_broadcast,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_reduce,
    tree_reduce_associative,
    tree_structure,
    tree_transpose,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from pullback.util.pytree import build_tree

Point = namedtuple("Point", "a b")
OtherPoint = namedtuple("OtherPoint", "a b")

# tree, leaves, repr of the structure, number of nodes, node data
CASES = {
    "leaf": (1, [1], "*", 1, None),
    "string": ("abc", ["abc"], "*", 1, None),
    "none": (None, [], "None", 1, (type(None), None)),
    "tuple": ((1, 2), [1, 2], "(*, *)", 3, (tuple, None)),
    "tuple of one": ((1,), [1], "(*,)", 2, (tuple, None)),
    "empty tuple": ((), [], "()", 1, (tuple, None)),
    "list": ([1, [2]], [1, 2], "[*, [*]]", 4, (list, None)),
    "empty list": ([], [], "[]", 1, (list, None)),
    "dict": ({"b": 1, "a": (2, None)}, [2, 1], "{'a': (*, None), 'b': *}", 5, (dict, ["a", "b"])),
    "empty dict": ({}, [], "{}", 1, (dict, [])),
    "integer keys": ({2: 1, 1: 3}, [3, 1], "{1: *, 2: *}", 3, (dict, [1, 2])),
    "tuple keys": ({(1, 2): 1, (0, 5): 2}, [2, 1], "{(0, 5): *, (1, 2): *}", 3, (dict, [(0, 5), (1, 2)])),
    "mixed numbers": ({1.5: 1, 1: 2, True + 1: 3}, [2, 1, 3], "{1: *, 1.5: *, 2: *}", 4, (dict, [1, 1.5, 2])),
    "key None": ({None: 1}, [1], "{None: *}", 2, (dict, [None])),
    "named tuple": (Point(1, 2), [1, 2], "CustomNode(namedtuple[Point], [*, *])", 3, (Point, None)),
    "ordered dict": (
        OrderedDict([("b", 1), ("a", 2)]),
        [1, 2],
        "CustomNode(OrderedDict[('b', 'a')], [*, *])",
        3,
        (OrderedDict, ("b", "a")),
    ),
    "empty ordered dict": (OrderedDict(), [], "CustomNode(OrderedDict[()], [])", 1, (OrderedDict, ())),
    "ordered dict, unsortable keys": (
        OrderedDict([("a", 1), (2, 3)]),
        [1, 3],
        "CustomNode(OrderedDict[('a', 2)], [*, *])",
        3,
        (OrderedDict, ("a", 2)),
    ),
    "default dict": (
        defaultdict(list, {"b": 1, "a": 2}),
        [2, 1],
        "CustomNode(defaultdict[(<class 'list'>, ('a', 'b'))], [*, *])",
        3,
        (defaultdict, (list, ("a", "b"))),
    ),
    "partial": (
        Partial(max, 1, key=3),
        [1, 3],
        "CustomNode(Partial[<built-in function max>], [(*,), {'key': *}])",
        5,
        (Partial, max),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_flatten(name):
    value, leaves, text, num_nodes, node_data = CASES[name]
    found, treedef = tree_flatten(value)
    assert found == leaves
    assert tree_leaves(value) == leaves
    assert tree_structure(value) == treedef
    assert hash(tree_structure(value)) == hash(treedef)
    assert repr(treedef) == str(treedef) == f"PyTreeDef({text})"
    assert (treedef.num_leaves, treedef.num_nodes) == (len(leaves), num_nodes)
    assert treedef.node_data() == node_data
    assert treedef_is_leaf(treedef) == (num_nodes == 1)
    assert treedef.flatten_up_to(value) == leaves
    assert is_tree_node(type(value)) == (text != "*")


@pytest.mark.parametrize("name", CASES)
def test_round_trips(name):
    value, leaves, *_ = CASES[name]
    treedef = tree_structure(value)
    rebuilt = tree_unflatten(treedef, leaves)
    assert type(rebuilt) is type(value)
    if not isinstance(value, Partial):
        assert rebuilt == value
    assert tree_structure(rebuilt) == treedef
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert copy.deepcopy(treedef) == treedef == copy.copy(treedef)
    assert PyTreeDef.from_node_data_and_children(default_registry, treedef.node_data(), treedef.children()) == treedef
    doubled = tree_map(lambda x: (x, "m"), value)
    assert treedef.flatten_up_to(doubled) == [(leaf, "m") for leaf in leaves]
    assert treedef.compose(tree_structure(0)) == treedef


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", [tuple, iter, np.array, lambda xs: dict.fromkeys(xs)])
def test_unflatten_takes_any_iterable(name, kind):
    treedef = tree_structure(CASES[name][0])
    leaves = tree_leaves(tree_unflatten(treedef, kind(list(range(treedef.num_leaves)))))
    assert leaves == list(range(treedef.num_leaves))


def test_subclasses_are_leaves_except_named_tuples():
    for base, argument in ((list, [1]), (dict, {"a": 1}), (tuple, (1, 2)), (OrderedDict, {"a": 1}), (int, 3)):
        value = type("Sub", (base,), {})(argument)
        assert tree_leaves(value) == [value]
        assert not is_tree_node(type(value))
    for value in (
        deque([1, 2]),
        {1, 2},
        Counter("ab"),
        types.MappingProxyType({}),
        types.SimpleNamespace(a=1),
        range(3),
        frozenset(),
        functools.partial(max, 1),
        tree_structure([1, 2]),
    ):
        assert tree_leaves(value) == [value]

    class Derived(Point):
        pass

    assert repr(tree_structure(Derived(1, 2))) == "PyTreeDef(CustomNode(namedtuple[Derived], [*, *]))"
    assert type(tree_map(lambda x: x, Derived(1, 2))) is Derived


def test_default_dict_and_ordered_dict_are_rebuilt_whole():
    rebuilt = tree_map(lambda x: x + 1, defaultdict(list, {"b": 1}))
    assert rebuilt == {"b": 2} and rebuilt["new"] == []
    assert list(tree_map(lambda x: x, OrderedDict([("b", 1), ("a", 2)]))) == ["b", "a"]
    assert list(tree_map(lambda x: x, {"b": 1, "a": 2})) == ["a", "b"]


@pytest.mark.parametrize(
    "keys",
    [
        ["p0", "p1", "p10", "p2"],
        ["", "a", "a\0", "aa"],
        ["abcdefgh", "abcdefgha", "abcdefghb", "abcdefgi"],
        ["a", "b", "é", "ÿ", "Ā", "中", "𝄞"],
        [-(10**30), -1, 0, 1, 2**63, 10**30],
        [0.5, 1, True + 1.5],
    ],
)
def test_dict_keys_ascend(keys):
    shuffled = np.random.default_rng(0).permutation(len(keys))
    found = tree_structure({keys[i]: i for i in shuffled}).node_data()[1]
    assert found == keys == sorted(keys)


def test_many_string_keys_ascend():
    generator = np.random.default_rng(1)
    keys = {"".join(map(chr, generator.integers(1, 300, generator.integers(0, 12)))) for _ in range(2000)}
    assert tree_structure(dict.fromkeys(keys, 0)).node_data()[1] == sorted(keys)


def test_is_leaf():
    value = {"a": (1, 2), "b": None}
    leaves, treedef = tree_flatten(value, is_leaf=lambda x: x is None or isinstance(x, tuple))
    assert leaves == [(1, 2), None] and repr(treedef) == "PyTreeDef({'a': *, 'b': *})"
    assert tree_leaves(value, is_leaf=lambda x: True) == [value]
    assert tree_leaves(value, is_leaf=lambda x: None) == [1, 2]
    seen = []
    tree_flatten(value, is_leaf=seen.append)
    assert seen == [value, (1, 2), 1, 2, None]
    assert tree_map(lambda x: x, value, is_leaf=lambda x: x is None) == value
    assert tree_map(lambda x: x is None, value, is_leaf=lambda x: x is None) == {"a": (False, False), "b": True}


def test_map_over_several_trees():
    assert tree_map(lambda x, y: (x, y), [1, 2], [1, None]) == [(1, 1), (2, None)]
    assert tree_map(lambda x, y, z: x + y + len(z), {"a": 1, "b": [2]}, {"b": [3], "a": 4}, {"a": "x", "b": [{}]}) == {
        "a": 6,
        "b": [5],
    }
    assert tree_map(lambda x, y: y, 0, {"a": [1]}) == {"a": [1]}
    assert tree_map(lambda *xs: sum(xs), [1, 2], *([3, 4] for _ in range(20))) == [61, 82]


def test_equality_and_hash():
    structure = tree_structure
    assert structure(1) == structure(object())
    assert structure((1, 2)) != structure([1, 2])
    assert structure({"a": 1}) != structure({"b": 1})
    assert structure({"a": 1, "b": 2}) == structure({"b": 1, "a": 2})
    assert structure({1: 1}) == structure({1.0: 1}) and hash(structure({1: 1})) == hash(structure({1.0: 1}))
    assert structure(Point(1, 2)) != structure(OtherPoint(1, 2))
    assert structure(OrderedDict(a=1, b=2)) != structure(OrderedDict(b=1, a=2))
    assert structure(OrderedDict(a=1)) != structure({"a": 1})
    assert structure(((1,), 2)) != structure((1, (2,)))
    assert structure(1) != 3 and structure(1) is not None and structure(1) != "x" and (structure(1) == 3) is False
    assert structure(()) and len({structure([i]) for i in range(5)}) == 1
    many = [{"a": [0] * i, "b": ()} for i in range(100)]
    assert len({structure(x) for x in many} | {structure(x) for x in many}) == 100


def test_treedef_functions():
    inner, outer = tree_structure({"a": 1, "b": (2,)}), tree_structure((0, 0))
    assert treedef_children(inner) == [tree_structure(1), tree_structure((2,))]
    assert repr(treedef_tuple([inner, outer])) == "PyTreeDef(({'a': *, 'b': (*,)}, (*, *)))"
    assert treedef_tuple(()) == tree_structure(())
    assert treedef_tuple(x for x in [outer]) == tree_structure(((0, 0),))
    assert outer.compose(tree_structure({"a": 0, "b": None})) == tree_structure(({"a": 0, "b": None},) * 2)
    composed = tree_structure([0, (0, None)]).compose(inner)
    assert composed == tree_structure([{"a": 1, "b": (2,)}, ({"a": 1, "b": (2,)}, None)])
    assert (composed.num_leaves, composed.num_nodes) == (4, 11)
    assert tree_structure(None).compose(inner) == tree_structure(None)


def test_walk():
    def walk(value, *arguments):
        return tree_structure(value).walk(*arguments)

    def node(children, data):
        return ("N", children, data)

    assert walk({"b": 1, "a": (2, None)}, node, lambda x: -x, [1, 2]) == (
        "N",
        (("N", (-1, ("N", (), None)), None), -2),
        ["a", "b"],
    )
    assert walk(Point(1, {"a": 2}), node, None, [1, 2]) == ("N", (1, ("N", (2,), ["a"])), Point)
    with pytest.raises(ValueError, match="Too few leaves"):
        walk((1, 2), node, None, [1])
    with pytest.raises(ValueError, match="Too many leaves"):
        walk((1, 2), node, None, [1, 2, 3])


def test_build_tree_from_nested_iterables():
    assert build_tree(tree_structure((1, [2, {"a": 3, "b": 4}])), [1, (2, iter([3, 4]))]) == (1, [2, {"a": 3, "b": 4}])
    assert build_tree(tree_structure({"a": 3, "b": 4}), {"x": 1, "y": 2}) == {"a": "x", "b": "y"}
    assert build_tree(tree_structure((None, 1)), [[], 1]) == (None, 1)
    for wrong in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match="Arity mismatch"):
            build_tree(tree_structure((1, 2)), wrong)


def test_reduce_and_all():
    assert tree_reduce(lambda a, b: a + b, [1, (2, 3)]) == 6
    assert tree_reduce(lambda a, b: a + b, [1, (2, 3)], 10) == 16
    assert tree_reduce(lambda a, b: (a, b), [1, 2], None) == ((None, 1), 2)
    assert tree_reduce(lambda a, b: a + b, [(1,), (2, 3)], is_leaf=lambda x: isinstance(x, tuple)) == (1, 2, 3)
    with pytest.raises(TypeError, match="no leaves; expected some, or an initializer"):
        tree_reduce(max, [])
    assert tree_all([True, (1,)]) and tree_all([]) and tree_all({"a": None}) and not tree_all([0, {}])


@pytest.mark.parametrize(
    "count, expected",
    list(
        enumerate(
            [
                "I",
                "a",
                "(ab)",
                "(a(bc))",
                "((ab)(cd))",
                "((ab)(c(de)))",
                "((a(bc))(d(ef)))",
                "((a(bc))((de)(fg)))",
                "(((ab)(cd))((ef)(gi)))",
                "(((ab)(cd))((ef)(g(ij))))",
                "(((ab)(c(de)))((fg)(i(jk))))",
            ]
        )
    ),
)
def test_reduce_associative(count, expected):
    assert tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcdefgijklm")[:count], identity="I") == expected


def test_reduce_associative_needs_an_identity_if_empty():
    with pytest.raises(TypeError, match=r"[Mm]ust specify identity"):
        tree_reduce_associative(max, [])


def test_transpose():
    outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": 0})
    value = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert tree_transpose(outer, inner, value) == tree_transpose(outer, None, value) == {"a": [1, 3], "b": [2, 4]}
    assert tree_transpose(tree_structure([0]), tree_structure([]), [[]]) == []
    with pytest.raises(TypeError, match=r"Mismatch[^$]*\{'a': \*\}\]\)[^$]*!="):
        tree_transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3}])
    with pytest.raises(ValueError, match="Too few leaves for PyTreeDef; expected 1, got 0"):
        tree_transpose(tree_structure([]), tree_structure([0]), [])
    with pytest.raises(ValueError, match="inner_treedef cannot be inferred"):
        tree_transpose(tree_structure([]), None, [])


def test_all_leaves():
    assert all_leaves([1, 2]) and all_leaves([]) and all_leaves(x for x in (1, 2)) and all_leaves({"a": (1,)})
    assert not all_leaves([1, (2,)]) and not all_leaves([None])
    assert all_leaves([None], is_leaf=lambda x: x is None)


def test_broadcast():
    assert tree_broadcast((1, 2), ([0, 0], {"a": 0})) == ([1, 1], {"a": 2})
    assert tree_broadcast(1, {"b": 0, "a": (0, None)}) == {"a": (1, None), "b": 1}
    assert tree_broadcast({"a": 1, "b": 2}, {"b": [0, 0], "a": None}) == {"a": None, "b": [2, 2]}


def test_partial():
    assert Partial(lambda x, y: (x, y), 1)(2) == (1, 2)
    assert repr(Partial(max, 1, key=2)).endswith("Partial(<built-in function max>, 1, key=2)")  # 3.13 adds the module
    again = pickle.loads(pickle.dumps(Partial(max, 1, key=2)))
    assert (again.func, again.args, again.keywords) == (max, (1,), {"key": 2}) and type(again) is Partial
    inner = functools.partial(max, 1)
    outer = Partial(inner, 2, key=abs)
    assert (outer.args, outer.keywords) == ((2,), {"key": abs})
    assert tree_leaves(outer) == [2, abs] and outer(-5) == -5
    assert tree_structure(outer) == tree_structure(Partial(inner, 3, key=len))
    assert tree_structure(outer) != tree_structure(Partial(functools.partial(max, 1), 3, key=len))
    assert Partial(Partial(max, 1), 2)(3) == 3 and tree_leaves(Partial(Partial(max, 1), 2)) == [2]
    assert tree_map(lambda x: x + 1, Partial(max, 1))(0) == 2
    for arguments in ((), (3,)):
        with pytest.raises(TypeError):
            Partial(*arguments)


JAX_TREE_UTIL = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
JAX_TREE = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
SIGNATURES = {
    "all_leaves": "(iterable, is_leaf=None)",
    "flatten_one_level": "(tree)",
    "keystr": "(keys, *, simple=False, separator='')",
    "register_dataclass": "(nodetype, data_fields=None, meta_fields=None, drop_fields=())",
    "register_pytree_node": "(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None)",
    "register_pytree_with_keys": "(nodetype, flatten_with_keys, unflatten_func, flatten_func=None)",
    "tree_all": "(tree, *, is_leaf=None)",
    "tree_broadcast": "(prefix_tree, full_tree, is_leaf=None)",
    "tree_flatten": "(tree, is_leaf=None)",
    "tree_flatten_with_path": "(tree, is_leaf=None, is_leaf_takes_path=False)",
    "tree_leaves": "(tree, is_leaf=None)",
    "tree_leaves_with_path": "(tree, is_leaf=None, is_leaf_takes_path=False)",
    "tree_map": "(f, tree, *rest, is_leaf=None)",
    "tree_map_with_path": "(f, tree, *rest, is_leaf=None, is_leaf_takes_path=False)",
    "tree_reduce": "(function, tree, initializer=<unspecified>, is_leaf=None)",
    "tree_reduce_associative": "(operation, tree, *, identity=<unspecified>, is_leaf=None)",
    "tree_structure": "(tree, is_leaf=None)",
    "tree_transpose": "(outer_treedef, inner_treedef, pytree_to_transpose)",
    "tree_unflatten": "(treedef, leaves)",
    "treedef_tuple": "(treedefs)",
}


def test_public_names():
    assert [name for name in dir(tree_util) if not name.startswith("_")] == JAX_TREE_UTIL
    assert [name for name in dir(tree) if not name.startswith("_")] == JAX_TREE
    assert tree.map is tree_util.tree_map and tree.all is tree_util.tree_all


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    signature = inspect.signature(getattr(tree_util, name))
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(plain)) == SIGNATURES[name]
    assert getattr(tree_util, name).__doc__
