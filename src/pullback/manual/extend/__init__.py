"""Pages of `pullback.extend`."""
