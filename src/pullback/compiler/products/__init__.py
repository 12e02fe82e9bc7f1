"""Loop nests of matrix products and convolutions."""
