"""The primitives and the functions that bind them: `jax.lax`.

Functions here are strict: operands of one dtype, shapes that agree (a scalar beside an array is fine). `pullback.numpy`
promotes and broadcasts.
"""

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.core.explain import explain_all as _explain_all
from pullback.core.primitive import late as _late
from pullback.lax import _hooks, _parameters
from pullback.lax.collectives.compatibility import *
from pullback.lax.collectives.sharding import *
from pullback.lax.control.scan import scan, scan_p
from pullback.lax.control.while_loop import fori_loop, while_loop, while_p
from pullback.lax.elementwise.arithmetic import *
from pullback.lax.elementwise.bits import *
from pullback.lax.elementwise.bits import convert as _convert
from pullback.lax.elementwise.compare import *
from pullback.lax.elementwise.complex import *
from pullback.lax.elementwise.fma import *
from pullback.lax.elementwise.math import *
from pullback.lax.elementwise.powers import *
from pullback.lax.movement.broadcast import *
from pullback.lax.movement.creation import *
from pullback.lax.movement.dynamic import *
from pullback.lax.movement.gather import *
from pullback.lax.movement.joining import *
from pullback.lax.movement.scatter import *
from pullback.lax.movement.scatter_functions import *
from pullback.lax.movement.shape import *
from pullback.lax.ordering.sort import *
from pullback.lax.products.dot import *
from pullback.lax.records import rules as _rules
from pullback.lax.reductions.cumulative import *
from pullback.lax.reductions.reductions import *
from pullback.manual import add_pages as _add_pages
from pullback.manual.lax import PAGES as _PAGES
from pullback.util.absent import absent_names as _absent_names
from pullback.util.tracebacks import shorten as _shorten

# Modules that are imported when one of their names is first asked for: most programs use none of them.
_LATE = {
    "collectives.constraint": "with_sharding_constraint",
    "collectives.moves": (
        "all_gather all_gather_p all_to_all all_to_all_p pbroadcast ppermute ppermute_p precv psend pshuffle "
        "psum_scatter pswapaxes reduce_scatter_p"
    ),
    "collectives.ragged": "ragged_all_to_all ragged_all_to_all_p",
    "collectives.states": "pcast",
    "collectives.sums": "axis_index axis_index_p axis_size pmax pmax_p pmean pmin pmin_p psum psum_invariant_p psum_p",
    "control.callback": "debug_callback debug_callback_p io_callback io_callback_p pure_callback pure_callback_p",
    "control.cond": "cond cond_p switch",
    "control.custom_solve": "custom_linear_solve custom_root linear_solve_p",
    "control.loops": "associative_scan map",
    "elementwise.special": (
        "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc digamma digamma_p erf erf_inv erf_inv_p erf_p "
        "erfc erfc_p igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p lgamma lgamma_p polygamma "
        "polygamma_p random_gamma_grad random_gamma_grad_p regularized_incomplete_beta_p zeta zeta_p"
    ),
    "fourier.fft": "FftType fft fft_p",
    "generators.bit_generator": "rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p",
    "ordering.selection": "approx_max_k approx_min_k approx_top_k_p top_k top_k_p",
    "products.conv": "conv_general_dilated_p",
    "products.conv_functions": (
        "conv conv_general_dilated conv_general_dilated_local conv_general_dilated_patches "
        "conv_general_shape_tuple conv_shape_tuple conv_transpose conv_transpose_shape_tuple "
        "conv_with_general_padding"
    ),
    "products.conv_shapes": (
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_dimension_numbers conv_general_permutations "
        "padtype_to_pads"
    ),
    "products.ragged": "ragged_dot ragged_dot_general",
    "reductions.computations": "reduce reduce_p",
    "reductions.window_routing": "select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p",
    "reductions.windows": (
        "reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p reduce_window_shape_tuple "
        "reduce_window_sum_p"
    ),
}
_WHERE = {_name: _module for _module, _names in _LATE.items() for _name in _names.split()}
_late.extend(["pullback.lax.linalg", *[f"pullback.lax.{_module}" for _module in _LATE]])


def _public(names: dict) -> dict:
    """These names as they are public: functions say which argument is wrong, and have a page."""
    found = {**names, "__name__": __name__}
    # Functions of arrays alone need no explanation: their primitives say what is wrong.
    _explain_all(found, _parameters.LAX, _parameters.LAX_OWN, skip=_parameters.of_arrays(names))
    _add_pages(found, _PAGES)
    return found


globals().update(_public(globals()))
for _name, _value in list(globals().items()):
    if not _name.startswith("_"):
        setattr(_rules.lax, _name, _value)
_rules.lax.convert = _convert
__all__ = [_name for _name in [*globals(), *_WHERE, "linalg"] if not _name.startswith("_")]

if _TYPE_CHECKING:
    from pullback.lax import linalg as linalg
    from pullback.lax.collectives.constraint import *
    from pullback.lax.collectives.moves import *
    from pullback.lax.collectives.ragged import *
    from pullback.lax.collectives.states import *
    from pullback.lax.collectives.sums import *
    from pullback.lax.control.callback import *
    from pullback.lax.control.cond import cond, cond_p, switch
    from pullback.lax.control.custom_solve import *
    from pullback.lax.control.loops import associative_scan, map
    from pullback.lax.elementwise.special import *
    from pullback.lax.fourier.fft import *
    from pullback.lax.generators.bit_generator import *
    from pullback.lax.ordering.selection import *
    from pullback.lax.products.conv import *
    from pullback.lax.products.conv_functions import *
    from pullback.lax.products.conv_shapes import *
    from pullback.lax.products.ragged import *
    from pullback.lax.reductions.computations import *
    from pullback.lax.reductions.window_routing import *
    from pullback.lax.reductions.windows import *

_not_here = _absent_names(__name__)


def __getattr__(name: str):
    if name == "linalg":
        return _importlib.import_module("pullback.lax.linalg")
    if name not in _WHERE:
        try:
            return _not_here(name)
        except AttributeError as error:
            _shorten(error, _sys._getframe())
            raise
    module = _importlib.import_module(f"pullback.lax.{_WHERE[name]}")
    for found, value in _public({each: getattr(module, each) for each in _LATE[_WHERE[name]].split()}).items():
        globals().setdefault(found, value)  # another thread may have been here
    return globals()[name]


def __dir__():
    return sorted({*globals(), *_WHERE, "linalg"})
