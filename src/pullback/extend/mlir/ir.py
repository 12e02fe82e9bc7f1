"""All names of MLIR's representation: each says that it is not here."""

from typing import Any

from pullback.util.absent import absent_name


def __getattr__(name: str) -> Any:
    return absent_name(__name__, name, "mlir")
