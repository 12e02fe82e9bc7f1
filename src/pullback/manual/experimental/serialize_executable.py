"""Pages of compiled functions as bytes."""

SAVED = """>>> from pullback.experimental import serialize_executable
>>> compiled = jax.jit(lambda x: 2 * x).lower(1.0).compile()
>>> data, in_tree, out_tree = serialize_executable.serialize(compiled)"""

PAGES = {
    "serialize": f"""
Arguments:
    compiled: Compiled, as of jit(f).lower(...).compile().
Returns:
    (bytes, PyTreeDef of the arguments, PyTreeDef of the results).
Raises:
    ValueError for a program that calls functions of Python.

{SAVED}
>>> type(data).__name__
'bytes'
""",
    "deserialize_and_load": f"""
Arguments:
    serialized: bytes, as of serialize: only such as you trust, since they can run anything.
    in_tree, out_tree: PyTreeDef of the arguments and of the results.
    backend: None or 'cpu'.
    execution_devices: None, or the one device where it runs.
Returns:
    Compiled.
Raises:
    ValueError for other bytes; RuntimeError for another backend; NotImplementedError for other devices.

{SAVED}
>>> serialize_executable.deserialize_and_load(data, in_tree, out_tree)(3.0)
Array(6., dtype=float32, weak_type=True)
""",
}
