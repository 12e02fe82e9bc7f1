"""Pages of `pullback.experimental.sparse`."""

from pullback.manual import by_name
from pullback.manual.experimental.sparse import bcoo, matrices

PAGES = by_name(bcoo.PAGES, matrices.PAGES)
