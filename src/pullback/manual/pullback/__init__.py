"""Pages of `pullback`."""

from pullback.manual import by_name
from pullback.manual.pullback import devices, transformations

PAGES = by_name(devices.PAGES, transformations.PAGES)
