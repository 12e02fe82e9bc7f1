"""Pages of `pullback.tree`."""

from pullback.manual import by_name
from pullback.manual.tree import trees

PAGES = by_name(trees.PAGES)
