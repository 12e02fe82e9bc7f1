"""Pages of `scipy.spatial`."""
