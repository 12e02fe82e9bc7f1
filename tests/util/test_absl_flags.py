"""Options on the command line, by absl; each case in a process of its own, as flags are defined once."""

import subprocess
import sys
import textwrap

import pytest
from patience import PATIENCE

pytest.importorskip("absl", reason="absl is not among the package's dependencies")


def run(body: str, *arguments: str) -> tuple[int, str]:
    """(exit status, what a script prints)."""
    script = "import pullback as jax\nfrom absl import app, flags\nflags.DEFINE_integer('mine', 3, 'x')\n"
    done = subprocess.run(
        [sys.executable, "-c", script + textwrap.dedent(body), *arguments],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.strip() + done.stderr[-300:] * (done.returncode != 0)


PARSE = """
    jax.config.parse_flags_with_absl()
    jax.config.parse_flags_with_absl()
    print(jax.config.jax_enable_x64, jax.config.jax_debug_nans, jax.config.jax_random_seed_offset)
"""
APP = """
    jax.config.config_with_absl()
    app.run(lambda argv: print(jax.config.jax_numpy_rank_promotion, jax.device_count(), flags.FLAGS.mine, argv[1:]))
"""


def test_parse_flags_with_absl():
    assert run(PARSE, "--jax_enable_x64", "--mine=4", "other") == (0, "True False 0")
    assert run(PARSE, "--jax_random_seed_offset=7", "--", "--jax_debug_nans") == (0, "False False 7")
    assert run(PARSE, "--nojax_enable_x64", "--jax_no_such=1") == (0, "False False 0")
    status, said = run(PARSE, "--jax_enable_x64=what")
    assert status and "Non-boolean argument" in said


def test_config_with_absl():
    found = run(APP, "--jax_numpy_rank_promotion=raise", "--jax_num_cpu_devices=3", "--mine=5", "a")
    assert found == (0, "raise 3 5 ['a']")
    assert run(PARSE + APP, "--jax_numpy_rank_promotion=warn", "--jax_num_cpu_devices=2") == (
        0,
        "False False 0\nwarn 2 3 []",
    )
    status, said = run(APP, "--jax_numpy_rank_promotion=zz")
    assert status and "should be one of <allow|warn|raise>" in said
