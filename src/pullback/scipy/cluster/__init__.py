"""Clusters: vector quantization."""

from pullback.scipy.cluster import vq

__all__ = ["vq"]
