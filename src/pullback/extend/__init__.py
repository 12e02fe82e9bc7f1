"""For libraries that build on this one: jaxprs, primitives, random generators."""

from pullback.extend import core, linear_util, random, source_info_util
from pullback.util.absent import late_modules, listed

_LATE = ["backend", "lowering", "mlir", "pallas", "sharding", "xla"]

__all__ = ["core", "linear_util", "random", "source_info_util", *_LATE]  # noqa: PLE0604
__getattr__ = late_modules(__name__, _LATE)
__dir__ = listed(__name__)
