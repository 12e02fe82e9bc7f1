"""Tests of code generation are spread over the CPUs that code can be made for."""

from cpu_levels import some_cpu

__all__ = ["some_cpu"]
