"""Pages of `pullback.lax.linalg`."""

from pullback.manual import by_name
from pullback.manual.lax.linalg import linalg

PAGES = by_name(linalg.PAGES)
