"""How many devices there are, and who may say so; each case in a process of its own, as the number is fixed once."""

import os
import subprocess
import sys
import textwrap

import pytest
from patience import PATIENCE

import pullback as jax


def run(body: str, flags: str = "") -> list[str]:
    """The words that a script prints; AssertionError if it fails."""
    script = "import pullback as jax, pullback.numpy as jnp\n" + textwrap.dedent(body)
    environment = {**os.environ, "XLA_FLAGS": flags}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


COUNTS = "print(jax.device_count(), jax.local_device_count(), len(jax.devices()), len(jax.local_devices()))"


def test_one_device_by_default():
    assert run(COUNTS) == ["1"] * 4


def test_xla_flags():
    assert run(COUNTS, "--other --xla_force_host_platform_device_count=3") == ["3"] * 4
    body = """
        import os
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"  # after the import, before the first use
        print(jax.device_count())
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=5"
        print(jax.device_count())
    """
    assert run(body) == ["2", "2"]


def test_num_cpu_devices():
    body = """
        jax.config.update("jax_num_cpu_devices", 4)
        print(jax.device_count(), jax.process_count(), jax.process_index(), jax.devices()[3].id, jax.default_backend())
        jax.config.update("jax_num_cpu_devices", 4)  # nothing changes
        try:
            jax.config.update("jax_num_cpu_devices", 2)
        except RuntimeError as error:
            assert "before backends are initialized" in str(error) and "4 of them" in str(error), error
            print(jax.device_count(), jax.config.jax_num_cpu_devices)
    """
    assert run(body, "--xla_force_host_platform_device_count=3") == ["4", "1", "0", "3", "cpu", "4", "4"]


def test_placement():
    body = """
        jax.config.update("jax_num_cpu_devices", 3)
        zero, one, two = jax.devices()
        x = jnp.ones(3)
        put = jax.device_put({"a": x, "b": 1.0}, two)
        assert x.devices() == {zero} and not x.committed
        assert put["a"].devices() == put["b"].devices() == {two} and put["a"].committed
        assert jax.device_put(x, jax.sharding.SingleDeviceSharding(one)).devices() == {one}
        with jax.default_device(one):
            y, z = jnp.ones(2), jax.jit(jnp.sin)(x)
        assert y.devices() == z.devices() == {one} and not y.committed and y.sharding.device_set == {one}
        assert (y + 1).devices() == jnp.sin(y).devices() == {zero} and (y + put["a"][:2]).devices() == {two}
        found = []
        jax.config.update("jax_default_device", two)
        assert jnp.ones(2).devices() == (x + 1).devices() == {two} and x.device == zero  # it stays where it was made
        import threading
        thread = threading.Thread(target=lambda: found.append(jnp.ones(2).device))
        thread.start()
        thread.join()
        with jax.default_device(None):
            assert found == [two] and jnp.ones(2).device == zero
        print("ok")
    """
    assert run(body) == ["ok"]


def test_distributed_with_one_process():
    from pullback import distributed

    assert not distributed.is_initialized()
    distributed.shutdown()
    distributed.initialize()
    assert distributed.is_initialized()
    with pytest.raises(RuntimeError, match="only be called once"):
        distributed.initialize()
    distributed.shutdown()
    jax.distributed.initialize("localhost:1234", num_processes=1, process_id=0)
    jax.distributed.shutdown()
    assert not jax.distributed.is_initialized()
    with pytest.raises(ValueError, match="process_id is 1"):
        distributed.initialize(num_processes=1, process_id=1)
    with pytest.raises(ValueError, match="num_processes must be at least 1"):
        distributed.initialize(num_processes=0)
    assert not distributed.is_initialized()
