"""Pages of `pullback.export`."""

from pullback.manual import by_name
from pullback.manual.export import export

PAGES = by_name(export.PAGES)
