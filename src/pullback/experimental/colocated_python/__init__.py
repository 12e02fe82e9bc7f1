"""Python functions and objects that run on the host of their arguments' devices: here that is this process."""

from pullback.experimental.colocated_python.func import colocated_cpu_devices, colocated_python
from pullback.experimental.colocated_python.obj import colocated_python_class

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
