"""Pages of `pullback`."""

from pullback.manual import by_name
from pullback.manual.pullback import classes, devices, late, transformations

PAGES = by_name(classes.PAGES, devices.PAGES, late.PAGES, transformations.PAGES)
