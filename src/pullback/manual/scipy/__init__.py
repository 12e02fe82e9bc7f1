"""Pages of `pullback.scipy`."""
