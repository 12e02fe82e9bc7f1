"""Pages of `pullback.scipy.sparse.linalg`."""

from pullback.manual import by_name
from pullback.manual.scipy.sparse.linalg import solvers

PAGES = by_name(solvers.PAGES)
