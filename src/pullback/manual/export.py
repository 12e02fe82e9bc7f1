"""Pages of functions that are exported."""

PAGES = {
    "export": """
Arguments:
    fun_jit: jitted function.
    platforms: list of 'cpu', 'cuda', 'rocm' and 'tpu'; None for the default one.
    disabled_checks: list of DisabledSafetyCheck.
    _override_lowering_rules: must be None.
Returns:
    Function of arguments or ShapeDtypeStructs that gives an Exported.
Raises:
    ValueError for functions that are not jitted.

>>> exported = jax.export.export(jax.jit(lambda x: 2 * x))(jax.ShapeDtypeStruct((2,), jnp.int32))
>>> exported.call(jnp.array([1, 2], dtype=jnp.int32))
Array([2, 4], dtype=int32)
""",
    "deserialize": """
Arguments:
    blob: bytes or bytearray.
Returns:
    Exported.
Raises:
    ValueError for other bytes.

>>> blob = jax.export.export(jax.jit(lambda x: 2 * x))(jax.ShapeDtypeStruct((2,), jnp.int32)).serialize()
>>> jax.export.deserialize(blob).call(jnp.array([1, 2], dtype=jnp.int32))
Array([2, 4], dtype=int32)
""",
    "default_export_platform": """
Returns:
    str.

>>> jax.export.default_export_platform()
'cpu'
""",
    "symbolic_shape": """
Arguments:
    shape_spec: text, or None.
    constraints: list of texts.
    scope: SymbolicScope of the variables; None for a new one.
    like: tuple of integers that "_" and "..." stand for; None for none.
Returns:
    Tuple of integers and symbolic dimensions.
Raises:
    ValueError for what is no shape.

>>> jax.export.symbolic_shape("b, 2*n, ...", like=(4, 6, 3))
(b, 2*n, 3)
""",
    "symbolic_args_specs": """
Arguments:
    args: tree of arrays or ShapeDtypeStructs.
    shapes_specs: tree prefix of texts and None.
    constraints: list of texts.
    scope: SymbolicScope of the variables; None for a new one.
Returns:
    Tree of ShapeDtypeStructs.

>>> jax.export.symbolic_args_specs((jnp.zeros((2, 3)), 1.0), ("n, ...", None))[0]
ShapeDtypeStruct(shape=(n, 3), dtype=float32)
""",
    "is_symbolic_dim": """
Arguments:
    p: dimension.
Returns:
    bool.
Raises:
    Nothing.

>>> jax.export.is_symbolic_dim(jax.export.symbolic_shape("n, 3")[0]), jax.export.is_symbolic_dim(3)
(True, False)
""",
    "register_namedtuple_serialization": """
Arguments:
    nodetype: named tuple.
    serialized_name: text.
Returns:
    The type.

>>> from collections import namedtuple
>>> Point = jax.export.register_namedtuple_serialization(namedtuple("Point", "x y"), serialized_name="example.Point")
""",
    "register_pytree_node_serialization": """
Arguments:
    nodetype: class that is a node.
    serialized_name: text.
    serialize_auxdata: function of the static data that gives bytes.
    deserialize_auxdata: function of the bytes that gives the static data.
    from_children: function of the static data and the children that gives a node; None for the registered one.
Returns:
    The type.

>>> class Box:
...     def __init__(self, x):
...         self.x = x
>>> jax.tree_util.register_pytree_node(Box, lambda b: ((b.x,), None), lambda aux, children: Box(*children))
>>> there, back = lambda aux: b"", lambda data: None
>>> jax.export.register_pytree_node_serialization(
...     Box, serialized_name="example.Box", serialize_auxdata=there, deserialize_auxdata=back
... ) is Box
True
""",
    "to_c": """
Arguments:
    f: jitted or other function, or dictionary of (function, *arguments) by name.
    example_args: arrays, trees of arrays or ShapeDtypeStructs.
    path: folder to write into.
    name: text; None for the name of the folder.
    cpu: 'host', 'x86-64', 'x86-64-v2', 'x86-64-v3' or 'x86-64-v4': the least CPU.
    blas: file of a library, flags of a linker, or 'numpy'; None for the system's.
Returns:
    Library.

>>> library = jax.export.to_c(jax.jit(jnp.sin), jnp.ones(3), path="build/sin")  # doctest: +SKIP
>>> try:
...     jax.export.to_c(jax.jit(jnp.sin), jnp.ones(3), path="build/sin", cpu="other")
... except ValueError:
...     print("no such CPU")
no such CPU
""",
    "Exported": """
>>> exported = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((2,), jnp.float32))
>>> exported.in_avals, exported.platforms
((ShapedArray(float32[2]),), ('cpu',))
""",
    "DisabledSafetyCheck": """
>>> check = jax.export.DisabledSafetyCheck.custom_call("my_call")
>>> exported = jax.export.export(jax.jit(jnp.sin), disabled_checks=[check])(1.0)
>>> exported.disabled_safety_checks == (check,)
True
""",
    "Library": """
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
...     found = jax.export.to_c(jnp.sin, jnp.ones(3), path=folder + "/model")
...     found.header.name, found.library.name
('model.h', 'libmodel.so')
""",
    "SymbolicScope": """
Arguments:
    constraints: texts such as "a >= 4", "b <= 2*a" or "mod(c, 2) == 0".

>>> a, b = jax.export.symbolic_shape("a, b", scope=jax.export.SymbolicScope(["a >= 4", "b == 2*a"]))
>>> a >= 3, b
(True, 2*a)
""",
}
