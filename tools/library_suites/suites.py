"""Which libraries' own tests are run: where they lie in the source distributions, and what is left out, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """The tests of one distribution on PyPI."""

    name: str  # of the distribution
    files: tuple[str, ...]  # patterns under the unpacked source distribution
    left_out: tuple[str, ...] = ()  # parts of paths


# equinox, diffrax, lineax and optimistix publish no tests on PyPI: tests/libraries has uses of each. Those of jaxlie
# import a module that is not published.
SUITES = (
    Suite("optax", ("optax/**/*_test.py",)),
    Suite("chex", ("chex/**/*_test.py",)),
    Suite("jaxtyping", ("jaxtyping/*test*.py", "test/test_*.py")),
    Suite("flax", ("tests/**/*_test.py",), left_out=("tests/tensorboard_test.py", "tests/io_test.py")),  # TensorFlow
    Suite("dm-haiku", ("haiku/**/*_test.py",), left_out=("haiku/_src/integration/jax2tf_test.py",)),  # TensorFlow
    Suite("distrax", ("distrax/**/*_test.py",)),
    Suite("blackjax", ("tests/**/test_*.py",)),
    Suite("numpyro", ("test/**/test_*.py",)),
    Suite("jaxopt", ("tests/*_test.py", "jaxopt/**/*test*.py")),
    Suite("tinygp", ("tests/**/test_*.py",)),
    Suite("jraph", ("jraph/**/*_test.py",), left_out=("ogb_examples",)),  # downloads its data
    Suite("orbax-checkpoint", ("orbax/**/*_test.py", "orbax/**/test_*.py"), left_out=("emergency", "compatibility")),
    Suite("brax", ("brax/**/*_test.py",)),
    Suite(
        "mujoco-mjx", ("mujoco/mjx/**/*_test.py",), left_out=("mjx/warp", "integration_test")
    ),  # need a GPU, MuJoCo's own data
    Suite("quax", ("tests/u*/**/test_*.py",)),
    Suite("brainstate", ("brainstate/**/*_test.py",)),
    Suite("dm-pix", ("dm_pix/**/*_test.py",)),
    Suite("rlax", ("rlax/**/*_test.py",)),
    Suite("mctx", ("mctx/**/*_test.py",)),
    Suite("flashbax", ("flashbax/**/*_test.py",)),
    Suite("e3nn-jax", ("tests/**/*_test.py",)),
    Suite("gpjax", ("tests/**/test_*.py",)),
    Suite("interpax", ("tests/test_*.py",)),
    Suite("jax-md", ("tests/*_test.py",), left_out=("uma_", "mace_", "tpu_", "amber")),  # need downloads, other devices
    Suite("s2fft", ("tests/test_*.py",), left_out=("torch",)),
    Suite("dynamax", ("dynamax/**/*_test.py", "dynamax/**/test_*.py")),
    Suite("penzai", ("tests/**/*_test.py",), left_out=("deprecated", "transformer_consistency")),  # need torch
    Suite("asdex", ("tests/**/test_*.py",)),
    Suite("folx", ("test/test_*.py",)),
    Suite("tree-math", ("tree_math/**/*_test.py",)),
    Suite("jmp", ("jmp/**/*_test.py",)),
    Suite("jax-datetime", ("jax_datetime/**/*_test.py",)),
    Suite("jax-dataclasses", ("tests/test_*.py",)),
    Suite("jaxoplanet", ("tests/**/*_test.py",)),
    Suite("kfac-jax", ("tests/test_*.py",)),
    Suite("jax-cosmo", ("tests/test_*.py",)),
    Suite("qpax", ("test/test_*.py",)),
    Suite("nifty8", ("test/test_re/**/test_*.py", "test/test_operators/test_jax.py")),
)
