"""Versions: of this package, and of the JAX whose API it gives."""

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)

# What `jax.__version__` is for programs that ask under install_as_jax().
jax_version = "0.10.2"
jax_version_info = (0, 10, 2)
