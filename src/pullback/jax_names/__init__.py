"""pullback under JAX's names: `import jax`, and the private modules that libraries reach for."""
