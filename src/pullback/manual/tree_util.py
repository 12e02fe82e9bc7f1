"""Pages of functions on trees."""

from pullback.manual._arguments import IS_LEAF, TAKES_PATH, TREE

PAGES = {
    "tree_map": f"""
Arguments:
    f: function of a leaf, and of as many subtrees as there are further trees.
{TREE}
    rest: trees that have the structure of tree, or go on beyond its leaves.
{IS_LEAF}
Returns:
    Tree of the structure of tree.
Raises:
    ValueError if a further tree has another structure.

>>> jax.tree_util.tree_map(lambda x, y: x + y, {{"a": 1, "b": (2, 3)}}, {{"a": 10, "b": (20, 30)}})
{{'a': 11, 'b': (22, 33)}}
""",
    "tree_map_with_path": f"""
Arguments:
    f: function of a key path, a leaf, and further leaves.
{TREE}
    rest: trees of the same structure.
{IS_LEAF}
{TAKES_PATH}
Returns:
    Tree of the structure of tree.

>>> jax.tree_util.tree_map_with_path(lambda path, x: jax.tree_util.keystr(path), {{"a": 1, "b": (2, 3)}})
{{'a': "['a']", 'b': ("['b'][0]", "['b'][1]")}}
""",
    "tree_leaves": f"""
Arguments:
{TREE}
{IS_LEAF}
Returns:
    List of leaves; None is no leaf.
Raises:
    What `is_leaf` and the flattening of users' classes raise; ValueError for keys of dictionaries that have no order.

>>> jax.tree_util.tree_leaves({{"b": 1, "a": (2, None)}})
[2, 1]
""",
    "tree_leaves_with_path": f"""
Arguments:
{TREE}
{IS_LEAF}
{TAKES_PATH}
Returns:
    List of pairs.
Raises:
    What `is_leaf` and the flattening of users' classes raise; ValueError for keys of dictionaries that have no order.

>>> [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path({{"a": (1, 2)}})]
[("['a'][0]", 1), ("['a'][1]", 2)]
""",
    "tree_flatten": f"""
Arguments:
{TREE}
{IS_LEAF}
Returns:
    Pair of a list and a PyTreeDef.
Raises:
    What `is_leaf` and the flattening of users' classes raise; ValueError for keys of dictionaries that have no order.

>>> jax.tree_util.tree_flatten({{"a": 1, "b": (2, 3)}})
([1, 2, 3], PyTreeDef({{'a': *, 'b': (*, *)}}))
""",
    "tree_flatten_with_path": f"""
Arguments:
{TREE}
{IS_LEAF}
{TAKES_PATH}
Returns:
    Pair of a list of pairs and a PyTreeDef.
Raises:
    What `is_leaf` and the flattening of users' classes raise; ValueError for keys of dictionaries that have no order.

>>> leaves, treedef = jax.tree_util.tree_flatten_with_path({{"a": 1}})
>>> leaves
[((DictKey(key='a'),), 1)]
""",
    "tree_unflatten": """
Arguments:
    treedef: PyTreeDef.
    leaves: iterable of as many values as it has leaves.
Returns:
    Tree.
Raises:
    ValueError for another number of leaves.

>>> leaves, treedef = jax.tree_util.tree_flatten({"a": 1, "b": (2, 3)})
>>> jax.tree_util.tree_unflatten(treedef, [10 * leaf for leaf in leaves])
{'a': 10, 'b': (20, 30)}
""",
    "tree_structure": f"""
Arguments:
{TREE}
{IS_LEAF}
Returns:
    PyTreeDef.
Raises:
    What `is_leaf` and the flattening of users' classes raise; ValueError for keys of dictionaries that have no order.

>>> jax.tree_util.tree_structure({{"a": 1, "b": (2, None)}})
PyTreeDef({{'a': *, 'b': (*, None)}})
""",
    "tree_all": f"""
Arguments:
{TREE}
{IS_LEAF}
Returns:
    bool.
Raises:
    What `is_leaf` and the flattening of users' classes raise; ValueError for keys of dictionaries that have no order.

>>> jax.tree_util.tree_all({{"a": True, "b": (1, 0)}})
False
""",
    "tree_reduce": f"""
Arguments:
    function: function of what there is so far and a leaf.
{TREE}
    initializer: what there is before the first leaf; not given, the first leaf.
{IS_LEAF}
Returns:
    The last result.
Raises:
    TypeError without leaves and initializer.

>>> jax.tree_util.tree_reduce(lambda x, y: x + y, {{"a": 1, "b": (2, 3)}})
6
""",
    "tree_reduce_associative": f"""
Arguments:
    operation: associative function of two values.
{TREE}
    identity: the result without leaves.
{IS_LEAF}
Returns:
    The result.
Raises:
    TypeError without leaves and identity.

>>> jax.tree_util.tree_reduce_associative(lambda x, y: x + y, [1, 2, 3])
6
""",
    "tree_broadcast": f"""
Arguments:
    prefix_tree: tree whose leaves stand for subtrees.
    full_tree: tree.
{IS_LEAF}
Returns:
    Tree of the structure of full_tree.
Raises:
    ValueError if it is no prefix.

>>> jax.tree_util.tree_broadcast((1, 2), (0, {{"a": 0, "b": 0}}))
(1, {{'a': 2, 'b': 2}})
""",
    "tree_transpose": """
Arguments:
    outer_treedef: PyTreeDef.
    inner_treedef: PyTreeDef; None for that of the first subtree.
    pytree_to_transpose: tree.
Returns:
    Tree.
Raises:
    TypeError if the leaves do not fit.

>>> outer, inner = jax.tree_util.tree_structure([0, 0]), jax.tree_util.tree_structure({"a": 0})
>>> jax.tree_util.tree_transpose(outer, inner, [{"a": 1}, {"a": 2}])
{'a': [1, 2]}
""",
    "all_leaves": f"""
Arguments:
    iterable: values.
{IS_LEAF}
Returns:
    bool.

>>> jax.tree_util.all_leaves([1, 2.5]), jax.tree_util.all_leaves([1, (2,)])
(True, False)
""",
    "flatten_one_level": f"""
Arguments:
{TREE}
Returns:
    Pair of an iterable of children and metadata.
Raises:
    ValueError for a leaf.

>>> children, keys = jax.tree_util.flatten_one_level({{"a": (1, 2)}})
>>> list(children), keys
([(1, 2)], ('a',))
""",
    "flatten_one_level_with_keys": f"""
Arguments:
{TREE}
Returns:
    Pair of an iterable of pairs and metadata.
Raises:
    ValueError for a leaf.

>>> children, keys = jax.tree_util.flatten_one_level_with_keys({{"a": (1, 2)}})
>>> list(children)
[(DictKey(key='a'), (1, 2))]
""",
    "is_tree_node": """
Arguments:
    typ: type.
Returns:
    bool.

>>> jax.tree_util.is_tree_node(tuple), jax.tree_util.is_tree_node(int)
(True, False)
""",
    "keystr": """
Arguments:
    keys: key path: tuple of keys.
    simple: whether keys are printed without brackets and dots.
    separator: text between simple keys.
Returns:
    str.

>>> path = jax.tree_util.tree_leaves_with_path({"a": (1,)})[0][0]
>>> jax.tree_util.keystr(path), jax.tree_util.keystr(path, simple=True, separator="/")
("['a'][0]", 'a/0')
""",
    "register_dataclass": """
Arguments:
    nodetype: dataclass, or another class.
    data_fields: list of names; None for all others than static fields.
    meta_fields: list of names; None for static fields.
    drop_fields: list of names of fields that are neither.
Returns:
    The class.

>>> import dataclasses
>>> @jax.tree_util.register_dataclass
... @dataclasses.dataclass
... class Point:
...     x: float
...     y: float
>>> jax.tree_util.tree_map(lambda x: 2 * x, Point(1.0, 2.0)).y
4.0
""",
    "register_pytree_node": """
Arguments:
    nodetype: class.
    flatten_func: function of a node that gives its children and anything that can be compared.
    unflatten_func: function of the latter and the children that gives a node.
    flatten_with_keys_func: as flatten_func, with pairs of keys and children; None for numbers as keys.
Returns:
    None.
Raises:
    ValueError for a class that is registered.

>>> class Pair:
...     def __init__(self, a, b):
...         self.a, self.b = a, b
>>> jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda aux, children: Pair(*children))
>>> jax.tree_util.tree_leaves(Pair(1, 2))
[1, 2]
""",
    "register_pytree_node_class": """
Arguments:
    cls: class with the two methods.
Returns:
    The class.
Raises:
    ValueError for a class that is registered; AttributeError for one without the methods.

>>> @jax.tree_util.register_pytree_node_class
... class Box:
...     def __init__(self, x):
...         self.x = x
...     def tree_flatten(self):
...         return (self.x,), None
...     @classmethod
...     def tree_unflatten(cls, aux, children):
...         return cls(*children)
>>> jax.tree_util.tree_leaves(Box(1))
[1]
""",
    "register_pytree_with_keys": """
Arguments:
    nodetype: class.
    flatten_with_keys: function of a node that gives pairs of keys and children, and anything that can be compared.
    unflatten_func: function of the latter and the children that gives a node.
    flatten_func: as flatten_with_keys, with the children alone; None to take them from it.
Returns:
    None.

>>> class Pair:
...     def __init__(self, a, b):
...         self.a, self.b = a, b
>>> keys = [jax.tree_util.GetAttrKey("a"), jax.tree_util.GetAttrKey("b")]
>>> jax.tree_util.register_pytree_with_keys(Pair, lambda p: (tuple(zip(keys, (p.a, p.b))), None), lambda _, c: Pair(*c))
>>> [jax.tree_util.keystr(path) for path, leaf in jax.tree_util.tree_leaves_with_path(Pair(1, 2))]
['.a', '.b']
""",
    "register_pytree_with_keys_class": """
Arguments:
    cls: class with the methods.
Returns:
    The class.
Raises:
    ValueError for a class that is registered; AttributeError for one without the methods.

>>> @jax.tree_util.register_pytree_with_keys_class
... class Box:
...     def __init__(self, x):
...         self.x = x
...     def tree_flatten_with_keys(self):
...         return ((jax.tree_util.GetAttrKey("x"), self.x),), None
...     @classmethod
...     def tree_unflatten(cls, aux, children):
...         return cls(*children)
>>> jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path(Box(1))[0][0])
'.x'
""",
    "register_static": """
Arguments:
    cls: class.
Returns:
    The class.

>>> @jax.tree_util.register_static
... class Name(str):
...     pass
>>> jax.tree_util.tree_leaves((1, Name("a")))
[1]
""",
    "treedef_children": """
Arguments:
    treedef: PyTreeDef.
Returns:
    List of PyTreeDef.

>>> jax.tree_util.treedef_children(jax.tree_util.tree_structure((1, [2])))
[PyTreeDef(*), PyTreeDef([*])]
""",
    "treedef_is_leaf": """
Arguments:
    treedef: PyTreeDef.
Returns:
    bool.

>>> jax.tree_util.treedef_is_leaf(jax.tree_util.tree_structure(1))
True
""",
    "treedef_tuple": """
Arguments:
    treedefs: iterable of PyTreeDef.
Returns:
    PyTreeDef.

>>> jax.tree_util.treedef_tuple([jax.tree_util.tree_structure(1), jax.tree_util.tree_structure([2])])
PyTreeDef((*, [*]))
""",
    "DictKey": """
Arguments:
    key: the key.

>>> leaves, structure = jax.tree_util.tree_flatten_with_path({"a": 1})
>>> leaves[0][0], str(leaves[0][0][0])
((DictKey(key='a'),), "['a']")
""",
    "SequenceKey": """
Arguments:
    idx: integer.

>>> leaves, structure = jax.tree_util.tree_flatten_with_path([7])
>>> leaves[0][0], str(leaves[0][0][0])
((SequenceKey(idx=0),), '[0]')
""",
    "GetAttrKey": """
Arguments:
    name: name of the attribute.

>>> str(jax.tree_util.GetAttrKey("weights"))
'.weights'
""",
    "FlattenedIndexKey": """
Arguments:
    key: integer.

>>> str(jax.tree_util.FlattenedIndexKey(0))
'[<flat index 0>]'
""",
    "PyTreeDef": """
>>> structure = jax.tree_util.tree_structure({"a": [1, 2], "b": None})
>>> structure.num_leaves, structure.unflatten([5, 6])
(2, {'a': [5, 6], 'b': None})
""",
    "Partial": """
Arguments:
    func: function.
    args, kw: its first arguments, and those by name: trees of arrays.

>>> scale = jax.tree_util.Partial(jnp.multiply, 2.0)
>>> jax.jit(lambda f, x: f(x))(scale, jnp.ones(2))
Array([2., 2.], dtype=float32)
""",
}
