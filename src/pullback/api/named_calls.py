"""Which functions the jaxprs of `make_jaxpr` show as calls: `jit[name=_where]`, not what is computed within.

JAX jits these inside, so that its jaxprs have one equation for each, and readers know them by it. Here they are traced
into the program that calls them, which is then compiled as a whole. Only `make_jaxpr`, whose result is read, has them
as calls; a program that it has made computes the same.

The names are those that JAX 0.10 shows, found by running the examples of each function's docstring there. Quantiles are
not among them: where their fractions are known values they need no sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback.core import Array, Tracer, typeof
from pullback.util import config
from pullback.util.static import is_hashable

# By package: how functions are shown ({} is the name of each), and which.
_SHOWN = {
    "numpy": {
        "{}": (
            "allclose angle append arccosh argpartition argsort atleast_1d atleast_2d atleast_3d bitwise_count clip "
            "convolve copysign corrcoef correlate count_nonzero cov cross cumprod cumsum diagonal diff digitize divmod "
            "ediff1d floor_divide fmax fmin fmod frexp gcd heaviside hypot i0 isclose iscomplex isinf isreal kron lcm "
            "ldexp matvec median modf nan_to_num nancumprod nancumsum nanmax nanmean nanmedian nanmin "
            "nanprod nanstd nansum nanvar partition polyadd polyfit polysub polyval "
            "remainder rint rollaxis rot90 round searchsorted signbit sinc sort take_along_axis trace trapezoid tril "
            "triu trunc unwrap vander vecmat "
            "cholesky cond det eigh eigvals eigvalsh inv matrix_power matrix_rank norm qr slogdet solve svd fft"
        ),
        "_{}": "diag interp nanargmax nanargmin pad ptp roll_dynamic std take var where lstsq",
        "fft": "fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        "_roll_static": "roll fftshift ifftshift",
        "_flip": "flip fliplr flipud",
        "_cumsum_with_promotion": "cumulative_sum",
        "convolve": "polymul",
        "norm": "matrix_norm",
        "svd": "svdvals",
        "inv": "tensorinv",
        "solve": "tensorsolve",
    },
    "scipy": {
        "{}": (
            "bessel_jn gammasgn log_softmax block_diag convolution_matrix det dft expm expm_frechet hadamard helmert "
            "hessenberg hilbert inv invhilbert lu lu_factor lu_solve polar rsf2csf solve_sylvester"
        ),
        "_{}": "cholesky eigh qr schur solve solve_triangular sqrtm svd map_coordinates",
    },
    "image": {"_{}": "resize"},
    "nn": {"{}": "logmeanexp standardize"},
}
_NAMES = {
    package: {name: shown.format(name) for shown, names in table.items() for name in names.split()}
    for package, table in _SHOWN.items()
}


def name_in_jaxprs(fun: Callable[..., Any]) -> str | None:
    """The name under which a function is shown as a call; None for functions that are not."""
    module = getattr(fun, "__module__", None) or ""
    if not module.startswith("pullback."):
        return None
    return _NAMES.get(module.split(".")[1], {}).get(fun.__name__.lstrip("_"))


def are_shown() -> bool:
    """Whether what is traced now is for readers."""
    return config.value_of("jax_named_calls")


def can_be_call(statics: Iterable[Any], leaves: Iterable[Any]) -> bool:
    """Whether a function with these arguments may be a call: it has arrays, and nothing static is one."""
    if any([isinstance(x, (Array, Tracer, np.ndarray)) or not is_hashable(x) for x in statics]):
        return False
    try:
        return len(list(map(typeof, leaves))) > 0
    except TypeError:  # the function itself says what is wrong
        return False
