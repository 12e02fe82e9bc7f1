"""Ragged exchanges across a named axis, written with gathers and exchanges of whole arrays.

Each device sends rows of its operand to each other one, how many and from where it says itself, and where to. What has
rows of all devices chooses for each of its own: XLA has no such operation on CPUs.
"""

from __future__ import annotations

from typing import Any

from pullback.lax.collectives.moves import all_gather, all_to_all
from pullback.lax.collectives.sums import NO_LOWERING, as_groups, axis_size
from pullback.lax.records.families import *
from pullback.util import dtypes

__all__ = ["ragged_all_to_all", "ragged_all_to_all_p"]

ragged_all_to_all_p = Primitive(
    "ragged_all_to_all",
    doc="Ragged parts exchanged across a named axis: a name, as others do it.",
    abstract_eval=NoRule("it is written with others"),
    reference=NoRule("it is written with others"),
    jvp=NoRule("it is written with others"),
    transpose=NoRule("it is written with others"),
    batch=NoRule("it is written with others"),
    lower=NO_LOWERING,
)


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """`output`, with rows of the others' operands: to device j go `send_sizes[j]` rows from `input_offsets[j]` on,
    which stand there from `output_offsets[j]` on; from device i come `recv_sizes[i]`.

    The vectors may say several parts for each device, one device's after the other's. Raises ValueError for what is no
    vector of integers, or of another length, and for an output of other rows; NameError for an unknown axis.
    """
    operand, output = (as_array(x, "ragged_all_to_all") for x in (operand, output))
    groups = as_groups(axis_index_groups)
    size = axis_size(axis_name) if groups is None else len(groups[0])
    said = {
        "input_offsets": input_offsets,
        "send_sizes": send_sizes,
        "output_offsets": output_offsets,
        "recv_sizes": recv_sizes,
    }
    vectors = [_vector(name, as_array(x, "ragged_all_to_all"), size) for name, x in said.items()]
    lengths = [v.shape[0] for v in vectors]
    if len(set(lengths)) > 1:
        raise ValueError(f"ragged_all_to_all: {', '.join(said)} must have one length, got {lengths}")
    if operand.ndim < 1 or operand.shape[1:] != output.shape[1:] or operand.dtype != output.dtype:
        raise ValueError(
            "ragged_all_to_all: operand and output must have rows of one shape and dtype, got "
            f"{operand.dtype}{list(operand.shape)} and {output.dtype}{list(output.shape)}"
        )
    if not operand.shape[0] or not output.shape[0]:
        return output

    def from_others(vector: Any) -> Any:
        parts = lax.reshape(vector, (size, lengths[0] // size))
        found = all_to_all(parts, axis_name, 0, 0, axis_index_groups=axis_index_groups)
        return lax.reshape(found, (lengths[0], 1))

    starts, sent, places = map(from_others, vectors[:3])
    counts = lax.min(sent, lax.reshape(vectors[3], (lengths[0], 1)))
    shape = lengths[0], output.shape[0]  # parts, rows of the output
    starts, places, counts = (lax.broadcast_in_dim(v, shape, (0, 1)) for v in (starts, places, counts))
    row = lax.sub(lax.broadcasted_iota(np.int32, shape, 1), places)
    comes = lax.bitwise_and(lax.ge(row, lax.full_like(row, 0)), lax.lt(row, counts))
    # In the operands of all, one after the other: the last part that reaches a row of the output has it.
    before = lax.mul(
        lax.div(lax.broadcasted_iota(np.int32, shape, 0), lax.full(shape, lengths[0] // size, np.int32)),
        lax.full(shape, operand.shape[0], np.int32),
    )
    within = lax.clamp(np.int32(0), lax.add(starts, row), np.int32(operand.shape[0] - 1))
    which = lax.reduce_max(lax.select(comes, lax.add(before, within), lax.full_like(row, -1)), (0,))
    rows = all_gather(operand, axis_name, axis_index_groups=axis_index_groups, tiled=True)
    chosen = lax.index_take(rows, [lax.max(which, lax.full_like(which, 0))], (0,))
    there = lax.broadcast_in_dim(lax.ge(which, lax.full_like(which, 0)), output.shape, (0,))
    return lax.select(there, chosen, output)


def _vector(name: str, x: Any, size: int) -> Any:
    """The vector, of 32 bits; ValueError for what is none of integers with as many for each device."""
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise ValueError(f"ragged_all_to_all {name} must be integer type, got {x.dtype}")
    if x.ndim != 1 or not x.shape[0]:
        raise ValueError(f"ragged_all_to_all: {name} must be a vector that is not empty, got shape {tuple(x.shape)}")
    if x.shape[0] % size:
        raise ValueError(f"ragged_all_to_all: {name} has {x.shape[0]} entries, for {size} devices")
    return lax.convert_element_type(x, np.int32)
