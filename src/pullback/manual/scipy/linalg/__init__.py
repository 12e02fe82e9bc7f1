"""Pages of `pullback.scipy.linalg`."""

from pullback.manual import by_name
from pullback.manual.scipy.linalg import linalg

PAGES = by_name(linalg.PAGES)
