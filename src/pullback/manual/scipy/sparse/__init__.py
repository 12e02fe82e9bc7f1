"""Pages of `pullback.scipy.sparse`."""
