"""Pages of mutable arrays."""

WHICH = "    ref: Ref, or a part of one: ref.at[index]."
IDX = "    idx: index as of an array: integers, slices, ..., arrays; None for all."
SHAPES = "    TypeError for what is no Ref; ValueError for values of another shape or dtype than that of the part."

PAGES = {
    "new_ref": """
Arguments:
    init_val: array or scalar of any dtype.
    memory_space, kind: must be None.
Returns:
    Ref of the shape and dtype of init_val.
Raises:
    TypeError for what is no array; NotImplementedError for a memory space or kind.

>>> total = jax.new_ref(jnp.zeros(2))
>>> @jax.jit
... def add(x):
...     total[...] += x
>>> add(jnp.array([1.0, 2.0])), add(jnp.array([1.0, 2.0]))
(None, None)
>>> total[...]
Array([2., 4.], dtype=float32)
""",
    "empty_ref": """
Arguments:
    ty: ShapeDtypeStruct, array, or what else has shape and dtype.
    memory_space: must be None.
Returns:
    Ref.
Raises:
    NotImplementedError for a memory space.

>>> jax.ref.empty_ref(jax.ShapeDtypeStruct((2,), jnp.int32))[...]
Array([0, 0], dtype=int32)
""",
    "freeze": """
Arguments:
    ref: Ref.
Returns:
    Array of its shape and dtype.
Raises:
    TypeError for what is no Ref; ValueError in a traced function for a Ref from outside, and after `free_ref`.

>>> r = jax.new_ref(jnp.array([1, 2]))
>>> r[0] = 5
>>> jax.freeze(r)
Array([5, 2], dtype=int32)
""",
    "free_ref": """
Arguments:
    ref: Ref.
Returns:
    None.
Raises:
    ValueError in a traced function for a Ref from outside, and for one that has ended.

>>> r = jax.new_ref(0)
>>> jax.ref.free_ref(r)
>>> r
Ref(<freed>)
""",
    "get": f"""
Arguments:
{WHICH}
{IDX}
Returns:
    Array of the shape of the part.
Raises:
    TypeError for what is no Ref; ValueError for an integer that lies outside of its axis.

>>> jax.ref.get(jax.new_ref(jnp.array([1, 2, 3])), 1)
Array(2, dtype=int32)
""",
    "set": f"""
Arguments:
{WHICH}
{IDX}
    value: array of the shape and dtype of the part.
Returns:
    None.
Raises:
{SHAPES}

>>> r = jax.new_ref(jnp.array([1, 2, 3]))
>>> jax.ref.set(r, slice(0, 2), jnp.array([7, 8]))
>>> r[...]
Array([7, 8, 3], dtype=int32)
""",
    "swap": f"""
Arguments:
{WHICH}
{IDX}
    value: array of the shape and dtype of the part.
Returns:
    Array: the part as it was.
Raises:
{SHAPES}

>>> r = jax.new_ref(jnp.array([1, 2, 3]))
>>> jax.ref.swap(r, 0, 9), r[...]
(Array(1, dtype=int32), Array([9, 2, 3], dtype=int32))
""",
    "addupdate": f"""
Arguments:
{WHICH}
{IDX}
    x: array of the shape and dtype of the part.
Returns:
    None.
Raises:
{SHAPES}

>>> r = jax.new_ref(jnp.zeros(3))
>>> jax.ref.addupdate(r, jnp.array([0, 0, 2]), jnp.ones(3))
>>> r[...]
Array([2., 0., 1.], dtype=float32)
""",
    "Ref": """
>>> r = jax.new_ref(jnp.arange(3))
>>> r[0] += 10
>>> r
Ref([10,  1,  2], dtype=int32)
>>> r.shape, r[1:]
((3,), Array([1, 2], dtype=int32))
""",
    "AbstractRef": """
>>> jax.typeof(jax.new_ref(jnp.arange(3)))
Ref{int32[3]}
""",
    "TransformedRef": """
>>> r = jax.new_ref(jnp.arange(4))
>>> part = r.at[1:3]
>>> part[...] = jnp.array([7, 8])
>>> part, r[...]
(TransformedRef(int32[2]), Array([0, 7, 8, 3], dtype=int32))
""",
}
