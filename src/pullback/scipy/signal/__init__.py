"""Signal processing: convolution and correlation, trends, spectra, as SciPy has them."""

from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.signal import PAGES as _PAGES
from pullback.scipy import _parameters
from pullback.scipy.signal._convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve
from pullback.scipy.signal._spectral import csd, detrend, istft, stft, welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]  # fmt: skip

_remember_all(globals(), _parameters.SIGNAL, at_once=True)
_explain_all(globals(), _parameters.SIGNAL, {})

_add_pages(globals(), _PAGES)
