"""Pages of `pullback.scipy.optimize`."""

from pullback.manual import by_name
from pullback.manual.scipy.optimize import minimize

PAGES = by_name(minimize.PAGES)
