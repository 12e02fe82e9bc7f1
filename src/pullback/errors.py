"""The exceptions: the public names of util/errors.py and core."""

import pullback.util.errors as _errors
from pullback.core import JaxprTypeError
from pullback.util.absent import no_attribute as _no_attribute
from pullback.util.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    JAXIndexError,
    JaxRuntimeError,
    JAXTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError", "JaxRuntimeError",
    "JaxprTypeError", "KeyReuseError",
    "NonConcreteBooleanIndexError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "UnexpectedTracerError",
]  # fmt: skip


def __getattr__(name: str):
    """The errors that have no name in JAX, for pickles."""
    found = vars(_errors).get(name)
    if isinstance(found, type) and issubclass(found, _errors.Explained):
        return found
    raise _no_attribute(__name__, name)
