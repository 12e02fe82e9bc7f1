"""Control flow, and calls of the user's functions."""
