"""Stands for jax._src.image.scale: the names of jax.image, with what torchax and jax2onnx take besides."""

from typing import Any

from pullback import image
from pullback.image._scale import KERNELS, RADII
from pullback.jax_names.src import names_of

# method -> (how far it reaches in samples, its weight at a distance)
_kernels = {method: (RADII[method], kernel) for method, kernel in KERNELS.items()}


def _resize(image_: Any, shape: Any, method: Any, antialias: bool, precision: Any) -> Any:
    """As jax.image.resize."""
    return image.resize(image_, shape, method, antialias, precision)


__getattr__ = names_of(__name__, image)
