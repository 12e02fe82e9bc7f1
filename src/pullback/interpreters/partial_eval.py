"""Dead code in jaxprs."""

from pullback.core import ClosedJaxpr, Jaxpr, Tracer

__all__ = ["ClosedJaxpr", "Jaxpr", "Tracer"]
