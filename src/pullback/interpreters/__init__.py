"""Where third-party libraries register rules of their own primitives: faces of the records of core."""

from pullback.interpreters import ad, batching, mlir, partial_eval, xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "xla"]
