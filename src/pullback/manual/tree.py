"""Pages of functions on trees that have no other name."""

PAGES = {
    "static": """
Arguments:
    kwargs: arguments of dataclasses.field.
Returns:
    Field.

>>> import dataclasses
>>> @jax.tree_util.register_dataclass
... @dataclasses.dataclass
... class Model:
...     x: float
...     name: str = jax.tree.static(default="linear")
>>> jax.tree.leaves(Model(1.0))
[1.0]
""",
}
