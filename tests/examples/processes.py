"""Python in a process of its own: examples set up devices, or put pullback in JAX's place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from patience import PATIENCE

ROOT = Path(__file__).parents[2]


def python(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`python *arguments` in the project's folder; AssertionError with what it wrote unless it ends with `code`."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def run(example: str, *arguments: str) -> str:
    """What an example prints."""
    return python("-m", f"examples.{example}", *arguments).stdout
