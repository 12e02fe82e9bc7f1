"""Pages of `pullback.image`."""

from pullback.manual import by_name
from pullback.manual.image import image

PAGES = by_name(image.PAGES)
