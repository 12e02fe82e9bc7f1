"""Linear systems given by functions."""

from pullback.scipy.sparse import linalg

__all__ = ["linalg"]
