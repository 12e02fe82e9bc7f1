"""The symbols of a compiled program: what it gives, and what of the runtime it asks for by name."""

from __future__ import annotations

ENTRY = "pb_main"
SLOTS = "pb_slots"  # the table of addresses that loading fills
HOST_SLOT = "host_call"
PARALLEL_FOR = "pb_parallel_for"
INTERRUPT = "pb_interrupt_pending"
STEP = "pb_step"  # the same question of a loop that is counted, which says how far it is
SPAN = "pb_span"  # a kernel begins or has ended: programs that are compiled for a trace (runtime/programs/spans.py)
KERNEL = "pb_panels_"  # what the names of kernels of products begin with (compiler/products/symbols.py)
FUNCTION = "pb_each_"  # and those of kernels of functions of numbers (compiler/lower/functions.py)
