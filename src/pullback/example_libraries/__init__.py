"""Two small libraries that programs of the documents use: layers (`stax`) and optimizers (`optimizers`)."""

from __future__ import annotations

from pullback.util.absent import late_modules as _late_modules

__all__ = ["optimizers", "stax"]

__getattr__ = _late_modules(__name__, __all__)
