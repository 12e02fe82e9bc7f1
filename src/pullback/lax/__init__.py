"""The primitives and the functions that bind them: `jax.lax`.

Functions here are strict: operands of one dtype, shapes that agree (a scalar beside an array is fine). `pullback.numpy`
promotes and broadcasts.
"""

from pullback.lax import (
    _hooks,
    _rules,
    linalg,
)
from pullback.lax._arithmetic import *
from pullback.lax._bits import *
from pullback.lax._bits import convert as _convert
from pullback.lax._broadcast import *
from pullback.lax._callback import *
from pullback.lax._collective_moves import *
from pullback.lax._collectives import *
from pullback.lax._compare import *
from pullback.lax._complex import *
from pullback.lax._cond import cond, cond_p, switch
from pullback.lax._conv import *
from pullback.lax._conv_functions import *
from pullback.lax._creation import *
from pullback.lax._cumulative import *
from pullback.lax._dot import *
from pullback.lax._dynamic import *
from pullback.lax._fft import *
from pullback.lax._fma import *
from pullback.lax._gather import *
from pullback.lax._joining import *
from pullback.lax._loops import associative_scan, map
from pullback.lax._math import *
from pullback.lax._other import *
from pullback.lax._reductions import *
from pullback.lax._scan import scan, scan_p
from pullback.lax._scatter import *
from pullback.lax._selection import *
from pullback.lax._shape import *
from pullback.lax._sharding import *
from pullback.lax._solve import *
from pullback.lax._sort import *
from pullback.lax._special import *
from pullback.lax._while import fori_loop, while_loop, while_p
from pullback.lax._windows import *

for _name, _value in list(globals().items()):
    if not _name.startswith("_"):
        setattr(_rules.lax, _name, _value)
_rules.lax.convert = _convert
