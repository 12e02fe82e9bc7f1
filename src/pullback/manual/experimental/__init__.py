"""Pages of `pullback.experimental`."""
