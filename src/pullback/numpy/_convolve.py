"""convolve and correlate of vectors."""
