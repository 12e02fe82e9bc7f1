"""Pages of `pullback.scipy.stats`."""

from pullback.manual import by_name
from pullback.manual.scipy.stats import summary

PAGES = by_name(summary.PAGES)
