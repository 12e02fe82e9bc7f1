"""Windows of spectral analysis, by name: Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform" (1978); Nuttall, "Some windows with very good sidelobe behavior" (1981). Those that solve a problem of their
own (Slepian, Chebyshev, Taylor) are SciPy's.

Each function gives a symmetric window of n points, of which a periodic one is all but the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.util.extras import scipy_module

Window = np.ndarray


def _places(n: int) -> Window:
    """The points, from -1 to 1."""
    return np.linspace(-1, 1, n)


def _cosines(n: int, weights: Sequence[float]) -> Window:
    angles = np.linspace(-math.pi, math.pi, n)
    return np.asarray(sum(weight * np.cos(k * angles) for k, weight in enumerate(weights)))


def _triang(n: int) -> Window:
    return 1 - np.abs(np.arange(n) - (n - 1) / 2) / ((n + n % 2) / 2)


def _parzen(n: int) -> Window:
    x = np.abs(np.arange(n) - (n - 1) / 2) / (n / 2)
    return np.where(x <= (n - 1) / (2 * n), 1 - 6 * x**2 * (1 - x), 2 * (1 - x) ** 3)


def _bohman(n: int) -> Window:
    x = np.abs(_places(n))
    w = (1 - x) * np.cos(math.pi * x) + np.sin(math.pi * x) / math.pi
    w[[0, -1]] = 0
    return w


def _barthann(n: int) -> Window:
    x = _places(n) / 2
    return 0.62 - 0.48 * np.abs(x) + 0.38 * np.cos(2 * math.pi * x)


def _tukey(n: int, alpha: float = 0.5) -> Window:
    if alpha <= 0:
        return np.ones(n)
    edge = (np.abs(_places(n)) - (1 - min(alpha, 1))) / min(alpha, 1)
    return np.where(edge > 0, 0.5 + 0.5 * np.cos(math.pi * np.maximum(edge, 0)), 1.0)


def _general_gaussian(n: int, p: float, sig: float) -> Window:
    return np.exp(-0.5 * np.abs((np.arange(n) - (n - 1) / 2) / sig) ** (2 * p))


def _exponential(n: int, center: float | None = None, tau: float = 1.0) -> Window:
    return np.exp(-np.abs(np.arange(n) - ((n - 1) / 2 if center is None else center)) / tau)


def _cosine_sum(*weights: float) -> Callable[[int], Window]:
    return lambda n: _cosines(n, weights)


# (names, function of the number of points and the parameters, how many of these there must be, and may be)
_FAMILIES: tuple[tuple[str, Callable[..., Window], int, int], ...] = (
    ("boxcar box ones rect rectangular", np.ones, 0, 0),
    ("triang triangle tri", _triang, 0, 0),
    ("bartlett bart brt", lambda n: 1 - np.abs(_places(n)), 0, 0),
    ("hann han", _cosine_sum(0.5, 0.5), 0, 0),
    ("hamming hamm ham", _cosine_sum(0.54, 0.46), 0, 0),
    ("blackman black blk", _cosine_sum(0.42, 0.5, 0.08), 0, 0),
    ("nuttall nutl nut", _cosine_sum(0.3635819, 0.4891775, 0.1365995, 0.0106411), 0, 0),
    ("blackmanharris blackharr bkh", _cosine_sum(0.35875, 0.48829, 0.14128, 0.01168), 0, 0),
    ("flattop flat flt", _cosine_sum(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368), 0, 0),
    ("parzen parz par", _parzen, 0, 0),
    ("bohman bman bmn", _bohman, 0, 0),
    ("barthann brthan bth", _barthann, 0, 0),
    ("cosine halfcosine", lambda n: np.sin(math.pi * (np.arange(n) + 0.5) / n), 0, 0),
    ("lanczos sinc", lambda n: np.sinc(_places(n)), 0, 0),
    ("tukey tuk", _tukey, 0, 1),
    ("exponential poisson", _exponential, 0, 2),
    ("kaiser ksr", np.kaiser, 1, 1),
    ("gaussian gauss gss", lambda n, std: _general_gaussian(n, 1, std), 1, 1),
    ("general_gaussian", _general_gaussian, 2, 2),
    ("general_hamming", lambda n, alpha: _cosines(n, (alpha, 1 - alpha)), 1, 1),
    ("general_cosine", _cosines, 1, 1),
)
_OF_SCIPY = frozenset({"cheb", "chebwin", "dpss", "kaiser_bessel_derived", "kbd", "taylor", "taylorwin"})
_BY_NAME = {name: family[1:] for family in _FAMILIES for name in family[0].split()}


def window_of(window: Any, n: int) -> Window:
    """The periodic window of n points of a name, or of a tuple of a name and parameters.

    Raises ValueError for an unknown name, or other parameters; ImportError for a window of SciPy's without that.
    """
    name, *parameters = (window,) if isinstance(window, str) else window
    if name not in _BY_NAME and name not in _OF_SCIPY:
        raise ValueError(f"no window is called {name!r}; expected one of {', '.join(sorted([*_BY_NAME, *_OF_SCIPY]))}")
    if name in _OF_SCIPY:
        return np.asarray(scipy_module("signal", f"the window {name!r}").get_window(window, n))
    function, least, most = _BY_NAME[name]
    if not least <= len(parameters) <= most:
        wanted = str(most) if least == most else f"{least} to {most}"
        raise ValueError(f"the window {name!r} takes {wanted} parameters, got {window!r}")
    return np.ones(1) if n == 1 else function(n + 1, *parameters)[:-1]
