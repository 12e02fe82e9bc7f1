"""What a report of a fault should say about the installation."""

from __future__ import annotations

import os
import platform
import sys

import numpy as np
import scipy

from pullback import version
from pullback.runtime.arrays.devices import devices, local_device_count, process_count


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, devices and the options set in the environment, or return them as text."""
    found = devices()
    lines = [
        f"pullback: {version.__version__} (the API of jax {version.jax_version})",
        f"numpy:  {np.__version__}",
        f"scipy:  {scipy.__version__}",
        f"python: {sys.version}",
        f"device info: {found[0].device_kind}-{len(found)}, {local_device_count()} local devices",
        f"process_count: {process_count()}",
        f"platform: {platform.uname()}",
    ]
    lines += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(("JAX_", "PULLBACK_"))]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


__all__ = ["print_environment_info"]
