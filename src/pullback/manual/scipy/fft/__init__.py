"""Pages of `pullback.scipy.fft`."""

from pullback.manual import by_name
from pullback.manual.scipy.fft import transforms

PAGES = by_name(transforms.PAGES)
