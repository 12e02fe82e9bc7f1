"""Pages of `pullback.numpy.fft`."""

from pullback.manual import by_name
from pullback.manual.numpy.fft import transforms

PAGES = by_name(transforms.PAGES)
