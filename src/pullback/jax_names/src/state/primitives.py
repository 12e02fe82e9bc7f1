"""Stands for jax._src.state.primitives: what reads and writes mutable arrays."""

from pullback.ref import addupdate as ref_addupdate
from pullback.ref import get as ref_get
from pullback.ref import set as ref_set
from pullback.ref import swap as ref_swap
from pullback.transforms.state import addupdate_p, get_p, swap_p

__all__ = ["addupdate_p", "get_p", "ref_addupdate", "ref_get", "ref_set", "ref_swap", "swap_p"]
