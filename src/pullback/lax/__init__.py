"""The primitives and the functions that bind them: `jax.lax`.

Functions here are strict: operands of one dtype, shapes that agree (a scalar beside an array is fine). `pullback.numpy`
promotes and broadcasts.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.core.explain import explain_all as _explain_all
from pullback.core.primitive import late as _late
from pullback.lax import _hooks, _parameters
from pullback.lax.collectives.compatibility import *
from pullback.lax.collectives.moves import *
from pullback.lax.collectives.sharding import *
from pullback.lax.collectives.states import *
from pullback.lax.collectives.sums import *
from pullback.lax.control.callback import *
from pullback.lax.control.cond import cond, cond_p, switch
from pullback.lax.control.custom_solve import *
from pullback.lax.control.loops import associative_scan, map
from pullback.lax.control.scan import scan, scan_p
from pullback.lax.control.while_loop import fori_loop, while_loop, while_p
from pullback.lax.elementwise.arithmetic import *
from pullback.lax.elementwise.bits import *
from pullback.lax.elementwise.bits import convert as _convert
from pullback.lax.elementwise.compare import *
from pullback.lax.elementwise.complex import *
from pullback.lax.elementwise.fma import *
from pullback.lax.elementwise.math import *
from pullback.lax.elementwise.special import *
from pullback.lax.fourier.fft import *
from pullback.lax.generators.bit_generator import *
from pullback.lax.movement.broadcast import *
from pullback.lax.movement.creation import *
from pullback.lax.movement.dynamic import *
from pullback.lax.movement.gather import *
from pullback.lax.movement.joining import *
from pullback.lax.movement.scatter import *
from pullback.lax.movement.shape import *
from pullback.lax.ordering.selection import *
from pullback.lax.ordering.sort import *
from pullback.lax.products.conv import *
from pullback.lax.products.conv_functions import *
from pullback.lax.products.dot import *
from pullback.lax.products.ragged import *
from pullback.lax.records import rules as _rules
from pullback.lax.reductions.cumulative import *
from pullback.lax.reductions.reductions import *
from pullback.lax.reductions.window_routing import *
from pullback.lax.reductions.windows import *
from pullback.manual import add_pages as _add_pages
from pullback.manual.lax import PAGES as _PAGES
from pullback.util.absent import absent_names as _absent_names

# Functions of arrays alone need no explanation: their primitives say what is wrong.
_explain_all(globals(), _parameters.LAX, _parameters.LAX_OWN, skip=_parameters.of_arrays(globals()))
_add_pages(globals(), _PAGES)
for _name, _value in list(globals().items()):
    if not _name.startswith("_"):
        setattr(_rules.lax, _name, _value)
_rules.lax.convert = _convert

_late.append("pullback.lax.linalg")  # a tenth of the time of an import, which most programs do not use
__all__ = [_name for _name in globals() if not _name.startswith("_")] + ["linalg"]

if _TYPE_CHECKING:
    from pullback.lax import linalg as linalg
_not_here = _absent_names(__name__)


def __getattr__(name: str):
    return _importlib.import_module("pullback.lax.linalg") if name == "linalg" else _not_here(name)


def __dir__():
    return sorted({*globals(), "linalg"})
