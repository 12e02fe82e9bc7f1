"""Pages of `pullback.numpy`."""

from pullback.manual import by_name
from pullback.manual.numpy import (
    arithmetic,
    comparisons,
    creation,
    dtypes,
    exponentials,
    indexing,
    joining,
    polynomials,
    products,
    rounding,
    shapes,
    sorting,
    statistics,
    sums,
)

PAGES = by_name(
    arithmetic.PAGES,
    comparisons.PAGES,
    creation.PAGES,
    dtypes.PAGES,
    exponentials.PAGES,
    indexing.PAGES,
    joining.PAGES,
    polynomials.PAGES,
    products.PAGES,
    rounding.PAGES,
    shapes.PAGES,
    sorting.PAGES,
    statistics.PAGES,
    sums.PAGES,
)
