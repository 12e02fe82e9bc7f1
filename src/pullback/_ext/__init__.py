"""The native runtime, with types: arrays, call cache of `jit`, programs, memory and threads.

`_core` is the extension module itself; its interface is written down in `_core.pyi`.
"""

from pullback._ext import _core, _repr
from pullback._ext._core import Array

_core.check_main_interpreter()  # the module is made anew without its start where the main interpreter has it already
for _type in [found for found in vars(_core).values() if isinstance(found, type)]:
    _type.__name__ = _type.__name__  # which drops the module from the name that Python's own errors show
_core.set_hooks(repr=_repr.array_repr)

__all__ = ["Array", "_core"]
