"""Which functions remember plans (`api/eager.py`), and which of their arguments are arrays; the others are static.

Not here are functions whose results' shapes or errors depend on values, those that take functions, and those that make
arrays of nested lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._ext import _core
from pullback.api.eager import eager, remembering
from pullback.core import Tracer
from pullback.core.kinds import Kinds
from pullback.numpy._parameters import NUMPY, NUMPY_OWN

# Arguments that are arrays: the functions that have no others but static ones.
_ARRAYS = {
    "x": (
        "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_count "
        "bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor frexp "
        "invert isfinite isinf isnan log log10 log1p log2 logical_not matrix_transpose positive rad2deg radians "
        "reciprocal rint sign signbit sin sinc sinh spacing sqrt square tan tanh trunc i0 iscomplex isneginf isposinf "
        "isreal modf cumulative_prod cumulative_sum unstack vander astype nan_to_num"
    ),
    "val": "real imag",
    "z": "angle",
    "x1 x2": (
        "arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod gcd greater greater_equal "
        "heaviside hypot lcm ldexp less less_equal matvec mod nextafter not_equal pow power remainder true_divide "
        "bitwise_left_shift bitwise_right_shift left_shift right_shift vecdot vecmat"
    ),
    "a initial where mean": (
        "all any amax amin max min mean prod sum std var nanmax nanmin nanmean nanprod nansum nanstd nanvar "
        "argmax argmin nanargmax nanargmin ptp count_nonzero cumprod cumsum nancumprod nancumsum median nanmedian "
        "around round sort argsort argpartition partition ravel reshape permute_dims swapaxes squeeze transpose "
        "moveaxis rollaxis roll expand_dims diagonal trace ones_like zeros_like packbits unpackbits sort_complex resize"
    ),
    "a q weights": "average percentile quantile nanpercentile nanquantile",
    "a b": "allclose isclose cross dot inner kron matmul outer tensordot vdot",
    "a v": "convolve correlate searchsorted",
    "a bins weights": "histogram histogram_bin_edges",
    "x y w p": "polyfit",
    "a indices": "take",
    "a fill_value": "full_like",
    "a1 a2": "array_equal array_equiv polyadd polymul polysub",
    "arr min max": "clip",
    "arr indices": "take_along_axis",
    "arr values": "append",
    "arr indices values": "put_along_axis",
    "array": "broadcast_to pad",
    "arrays": "block concatenate concat stack",
    "element test_elements": "isin",
    "f varargs": "gradient",
    "keys": "lexsort",
    "p k": "polyder polyint",
    "seq_of_zeros": "poly",
    "ary to_end to_begin": "ediff1d split array_split hsplit vsplit dsplit",
    "a prepend append": "diff",
    "A": "tile",
    "condition x y": "where",
    "condlist choicelist default": "select",
    "tup": "column_stack dstack hstack vstack",
    "m": "flip fliplr flipud rot90 tril triu",
    "p x": "polyval",
    "v": "diag diagflat",
    "x y": "corrcoef trapezoid",
    "m y fweights aweights": "cov",
    "x xp fp": "interp",
    # Those of sets and of places that are true have results of a known shape where `size` is given.
    "ar": "unique",
    "ar1 ar2": "intersect1d setdiff1d setxor1d union1d",
    "a": "argwhere flatnonzero nonzero",
    "condition a": "compress",
    "condition arr": "extract",
    "arr mask vals": "place",
    "a repeats": "repeat",
    "a ind v": "put",
    "a val": "fill_diagonal",
    "x weights": "bincount",
    "x y weights": "histogram2d",
    "sample weights": "histogramdd",
    "arr obj values": "insert",
    "arr": "delete trim_zeros",
    "indices": "unravel_index",
    "multi_index": "ravel_multi_index",
    "a choices": "choose",
    "u v": "polydiv",
    "x bins": "digitize",
    "arys": "atleast_1d atleast_2d atleast_3d",
    "args": "broadcast_arrays",
    "operands": "einsum",
    "xi": "meshgrid",
    "start stop base": "geomspace linspace logspace",
    "": (
        "arange bartlett blackman diag_indices eye full hamming hanning identity indices ones tri zeros "
        "tril_indices triu_indices"
    ),
    "beta": "kaiser",
    "p": "roots unwrap",
}
# Arguments that are static where they are Python ints: x ** 2 is a product.
_LITERAL = dict.fromkeys(("power", "pow", "histogram", "histogram_bin_edges", "insert", "repeat"), (1,))
# What is compiled for its first call (runtime/eager/bits.py): running sums, and matrices.
_AT_ONCE = frozenset({
    *("convolve", "correlate", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum"),
    *("polyfit", "polymul", "roots", "unwrap", "vander"),
})  # fmt: skip


def _kinds(fun: Callable[..., Any]) -> Kinds:
    own = NUMPY_OWN.get(fun.__name__.lstrip("_"))
    return NUMPY | own if own else NUMPY


def remembered(namespace: dict[str, Any]) -> dict[str, Any]:
    """The functions of the tables, remembering, by name."""
    made: dict[Any, Any] = {}
    found = {}
    for arguments, names in _ARRAYS.items():
        for name in names.split():
            fun = namespace.get(name)
            if fun is None:  # of a module that is imported later
                continue
            if fun not in made:  # some have two names
                made[fun] = remembering(fun, arguments.split(), _kinds(fun), _LITERAL.get(name, ()), name in _AT_ONCE)
                made[fun].__module__ = "pullback.numpy"  # where pickles find it
            found[name] = made[fun]
    return found


# ---- arrays

_UNCHANGED = ("getitem", "iter", "contains")
_METHODS = {
    "self": "reshape transpose flatten astype view round mT real imag",
    "self b": "dot",
    "self min max": "clip",
    "self where": "std var",
    "a initial where": (
        "all any max min prod sum argmax argmin ptp cumsum cumprod mean ravel squeeze swapaxes repeat diagonal trace "
        "sort argsort argpartition"
    ),
    "x": "conj conjugate",
    "a indices": "take",
    "a v": "searchsorted",
}


def install(operators: dict[str, Any], methods: dict[str, Any]) -> None:
    """Give arrays and tracers operators and methods that remember."""
    for name, function in operators.items():
        if name not in _UNCHANGED:
            literal = (1,) if name == "pow" else ()
            remembers = eager(function, (), (), literal)
            _core.set_operators({name: remembers})
            setattr(Tracer, f"__{name}__", remembers)
    _core.set_operators({"transpose": eager(methods["T"].fget)})
    for arguments, names in _METHODS.items():
        for name in names.split():
            attribute = methods[name]
            if isinstance(attribute, property):
                getter: Any = attribute.fget
                made: Any = property(eager(getter), doc=attribute.__doc__)
            else:
                plain = getattr(attribute, "__wrapped__", attribute)
                made = remembering(plain, arguments.split(), _kinds(plain), at_once=name in _AT_ONCE)
            _core.set_array_attribute(name, made)
            setattr(Tracer, name, made)
