"""Pages of `pullback.tree_util`."""

from pullback.manual import by_name
from pullback.manual.tree_util import trees

PAGES = by_name(trees.PAGES)
