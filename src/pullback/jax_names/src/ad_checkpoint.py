"""Stands for jax._src.ad_checkpoint: the names of jax.ad_checkpoint, and the primitive (oryx)."""

from pullback import ad_checkpoint
from pullback.extend.core.primitives import remat_p
from pullback.jax_names.src import names_of

__getattr__ = names_of(__name__, ad_checkpoint)

__all__ = ["remat_p"]
