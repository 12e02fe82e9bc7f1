"""Pages of `pullback.nn.initializers`."""

from pullback.manual import by_name
from pullback.manual.nn.initializers import initializers

PAGES = by_name(initializers.PAGES)
