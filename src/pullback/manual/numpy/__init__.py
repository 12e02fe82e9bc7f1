"""Pages of `pullback.numpy`."""

from pullback.manual import by_name
from pullback.manual.numpy import (
    algebra,
    arithmetic,
    comparisons,
    creation,
    dtypes,
    elementary,
    indexing,
    joining,
    shapes,
    sorting,
    statistics,
    sums,
)

PAGES = by_name(
    algebra.PAGES,
    arithmetic.PAGES,
    comparisons.PAGES,
    creation.PAGES,
    dtypes.PAGES,
    elementary.PAGES,
    indexing.PAGES,
    joining.PAGES,
    shapes.PAGES,
    sorting.PAGES,
    statistics.PAGES,
    sums.PAGES,
)
