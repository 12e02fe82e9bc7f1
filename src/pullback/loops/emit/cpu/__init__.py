"""The CPUs that code is made for."""
