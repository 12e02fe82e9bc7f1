"""Pages of `pullback.sharding`."""

from pullback.manual import by_name
from pullback.manual.sharding import sharding

PAGES = by_name(sharding.PAGES)
