"""Stands for jax._src.test_util: the comparisons of it that libraries' tests use."""

from pullback.jax_names.src.public_test_util import check_close, check_grads, check_jvp, check_vjp


def device_under_test() -> str:
    """The platform that tests run on."""
    return "cpu"


__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp", "device_under_test"]
