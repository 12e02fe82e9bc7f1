"""Private modules of JAX that published libraries import nevertheless; only the names that they need."""
