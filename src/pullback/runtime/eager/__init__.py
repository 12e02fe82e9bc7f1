"""Work that runs at once: plans, kernels for blocks, the NumPy references."""
