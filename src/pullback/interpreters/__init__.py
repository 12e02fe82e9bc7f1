"""Where third-party libraries register rules of their own primitives: faces of the records of core."""

from pullback.interpreters import ad, batching, mlir, partial_eval, xla
from pullback.util.absent import late_modules

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]
__getattr__ = late_modules(__name__, ["pxla"])
