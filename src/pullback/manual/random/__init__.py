"""Pages of `pullback.random`."""

from pullback.manual import by_name
from pullback.manual.random import distributions, keys

PAGES = by_name(distributions.PAGES, keys.PAGES)
