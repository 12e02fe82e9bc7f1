"""Pages of `pullback.interpreters`."""
