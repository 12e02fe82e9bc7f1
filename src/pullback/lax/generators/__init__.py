"""Random words: the ciphers that make them, and `rng_bit_generator`."""
