"""Names that need what is not here; each says what that is."""

from pullback.extend.mlir import dialects, ir
from pullback.util.absent import absent_names

__all__ = ["dialects", "ir"]
__getattr__ = absent_names(__name__)
