"""The libraries' own tests, from their source distributions, on pullback and on JAX."""
