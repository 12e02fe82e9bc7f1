"""Pages of `pullback`."""

from pullback.manual import by_name
from pullback.manual.pullback import classes, devices, transformations

PAGES = by_name(classes.PAGES, devices.PAGES, transformations.PAGES)
