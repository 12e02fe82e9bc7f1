"""Real work of the libraries written for JAX, on pullback and on JAX: what docs/libraries.md shows."""
