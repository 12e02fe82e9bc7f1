"""Products of matrices and convolutions."""
