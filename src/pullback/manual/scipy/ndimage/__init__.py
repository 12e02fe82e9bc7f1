"""Pages of `pullback.scipy.ndimage`."""

from pullback.manual import by_name
from pullback.manual.scipy.ndimage import ndimage

PAGES = by_name(ndimage.PAGES)
