"""The folder of compiled parts in JAX; all its names are gone by now."""
