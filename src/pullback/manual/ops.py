"""Pages of sums and other folds over segments."""

from pullback.manual._arguments import SEGMENT_ARGUMENTS

PAGES = {
    "segment_sum": f"""
Arguments:
{SEGMENT_ARGUMENTS}
Returns:
    Array [num_segments, ...].
Raises:
    TypeError for ids that are no integers.

>>> jax.ops.segment_sum(jnp.array([1, 2, 4]), jnp.array([0, 0, 2]))
Array([3, 0, 4], dtype=int32)
""",
    "segment_prod": f"""
Arguments:
{SEGMENT_ARGUMENTS}
Returns:
    Array [num_segments, ...].

>>> jax.ops.segment_prod(jnp.array([3, 2, 4]), jnp.array([0, 0, 2]))
Array([6, 1, 4], dtype=int32)
""",
    "segment_max": f"""
Arguments:
{SEGMENT_ARGUMENTS}
Returns:
    Array [num_segments, ...].

>>> jax.ops.segment_max(jnp.array([1.0, 2.0, 4.0]), jnp.array([0, 0, 2]))
Array([  2., -inf,   4.], dtype=float32)
""",
    "segment_min": f"""
Arguments:
{SEGMENT_ARGUMENTS}
Returns:
    Array [num_segments, ...].

>>> jax.ops.segment_min(jnp.array([1.0, 2.0, 4.0]), jnp.array([0, 0, 2]))
Array([ 1., inf,  4.], dtype=float32)
""",
}
