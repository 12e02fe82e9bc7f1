"""Programs that show what pullback does, each runnable on JAX too."""
