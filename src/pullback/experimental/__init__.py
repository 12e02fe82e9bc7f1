"""Names that JAX keeps under jax.experimental."""
