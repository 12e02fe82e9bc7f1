"""Names that JAX keeps under jax.experimental."""

from pullback.experimental.hijax import cur_qdd
from pullback.lax.control.callback import io_callback
from pullback.util.absent import late_modules, listed
from pullback.util.config import enable_x64


def disable_x64():
    """Context manager: 64-bit types become 32-bit ones inside, as with `enable_x64(False)`."""
    return enable_x64(False)


__getattr__ = late_modules(__name__, ["compilation_cache"])

__all__ = ["cur_qdd", "disable_x64", "enable_x64", "io_callback"]

__dir__ = listed(__name__)
