"""The PLN example on the 116 x 114 data with few iterations: all five levels run, agree, fall, and the picture is
drawn."""

from __future__ import annotations

import re

import numpy as np

from .processes import python, run


def test_all_levels_agree(tmp_path):
    picture = tmp_path / "pln.png"
    text = run("pln", "--iterations", "6", "--chunk", "3", "--picture", str(picture))
    rows = re.findall(
        r"^\| (eager|jitted step|scan, ahead of time|NamedTuple|class with methods) +\|.*\| +(-\d\.\d+e\+\d+) \|$",
        text,
        re.MULTILINE,
    )
    assert len(rows) == 5
    fitted = [float(value) for _, value in rows]
    assert max(fitted) - min(fitted) < 1e-5 * abs(min(fitted))
    difference = float(re.search(r"curves: (\S+)", text)[1])
    assert difference < 1e-5
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_loss_falls_in_both_precisions():
    program = """
import sys
import numpy as np
from examples import pln
levels = pln.make_program("pullback")
import jax
for dtype in ("float32", "float64"):
    jax.config.update("jax_enable_x64", dtype == "float64")
    data = levels["data"](pln.load(1, dtype))
    losses, _ = pln.run_level(levels, "NamedTuple", data, 40, 20, quiet=True)
    assert losses.dtype == dtype, losses.dtype
    print(" ".join(map(repr, losses.tolist())))
"""
    done = python("-c", program)
    single, double = (np.array([float(x) for x in line.split()]) for line in done.stdout.splitlines())
    assert np.all(np.diff(double) < 0), "the negative ELBO falls at every iteration"
    np.testing.assert_allclose(single, double, rtol=2e-3)


def test_help():
    assert "--backend" in run("pln", "--help")
