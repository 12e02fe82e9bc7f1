"""Pages of `pullback.lax`."""

from pullback.manual import by_name
from pullback.manual.lax import binary, collectives, control, movement, products, reductions, unary

PAGES = by_name(
    binary.PAGES,
    collectives.PAGES,
    control.PAGES,
    movement.PAGES,
    products.PAGES,
    reductions.PAGES,
    unary.PAGES,
)
