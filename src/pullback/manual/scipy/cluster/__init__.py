"""Pages of `pullback.scipy.cluster`."""
