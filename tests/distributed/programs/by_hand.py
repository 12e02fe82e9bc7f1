"""by_hand.py ADDRESS COUNT NUMBER PROGRAM ...: the program as process NUMBER of those that meet at the address."""

import runpy
import sys

import pullback as jax

address, count, number, *rest = sys.argv[1:]
jax.distributed.initialize(address, int(count), int(number), initialization_timeout=900)
assert jax.process_index() == int(number) and jax.process_count() == int(count)
real = jax.distributed.initialize


def first_call():
    """What the program's own call does: nothing more."""
    jax.distributed.initialize = real


jax.distributed.initialize = first_call
sys.argv = rest
runpy.run_path(rest[0], run_name="__main__")
