"""Pages of `pullback.lax`."""

from pullback.manual import by_name
from pullback.manual.lax import binary, classes, collectives, control, movement, products, reductions, unary

PAGES = by_name(
    binary.PAGES,
    classes.PAGES,
    collectives.PAGES,
    control.PAGES,
    movement.PAGES,
    products.PAGES,
    reductions.PAGES,
    unary.PAGES,
)
