"""Options: global values, thread-local overrides, validation, epochs; and the environment switches."""

import threading

import pytest

from pullback.util import config as module
from pullback.util.config import config
from pullback.util.switches import Switches, switches


def test_update_and_read():
    assert config.jax_enable_x64 is False
    config.update("jax_enable_x64", True)
    try:
        assert config.jax_enable_x64 is True and config.x64_enabled and config.read("jax_enable_x64")
        assert config.values["jax_enable_x64"] is True and module.enable_x64.value is True
    finally:
        config.update("jax_enable_x64", False)


def test_bad_names_and_values():
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_foo"):
        config.update("jax_foo", 1)
    with pytest.raises(AttributeError, match="did you mean jax_enable_x64"):
        config.update("jax_enable_x46", 1)
    with pytest.raises(AttributeError):
        _ = config.jax_foo
    with pytest.raises(AttributeError, match=r"use config\.update"):
        config.jax_enable_x64 = True
    with pytest.raises(ValueError, match=r"expected one of \['allow', 'warn', 'raise'\]; got foo"):
        config.update("jax_numpy_rank_promotion", "foo")
    with pytest.raises(ValueError, match="must be of type int"):
        config.update("jax_num_cpu_devices", "zoo")
    with pytest.raises(ValueError, match="expected None or one of"), module.default_matmul_precision("zoo"):
        pass
    with pytest.raises(ValueError, match="expected a Device"):
        config.update("jax_default_device", "zoo")
    with pytest.raises(TypeError, match="ambiguous"):
        bool(module.enable_x64)
    with pytest.raises(TypeError, match="value is required"):
        module.numpy_rank_promotion()


def test_overrides_nest_and_are_per_thread():
    seen = []
    with module.enable_x64(True):
        with module.enable_x64(False):
            assert not module.x64_enabled()
        assert module.x64_enabled()
        worker = threading.Thread(target=lambda: seen.append(module.x64_enabled()))
        worker.start()
        worker.join()
    assert seen == [False] and not module.x64_enabled()

    @module.debug_nans()
    def inner():
        return config.jax_debug_nans

    assert inner() is True and config.jax_debug_nans is False


def test_global_change_is_seen_by_threads_with_overrides():
    with module.debug_nans(True):
        config.update("jax_enable_x64", True)
        try:
            assert module.x64_enabled() and config.jax_debug_nans
        finally:
            config.update("jax_enable_x64", False)
        assert not module.x64_enabled() and config.jax_debug_nans


def test_epoch_is_the_same_object_for_equal_settings():
    base = config.epoch()
    with module.enable_x64(True):
        first = config.epoch()
    with module.enable_x64(True):
        second = config.epoch()
    assert first is second and first is not base and config.epoch() is base
    with module.log_compiles(True):
        assert config.epoch() is base  # does not change what a trace means
    hash(base)


def test_override_is_restored_after_an_error():
    with pytest.raises(RuntimeError), module.disable_jit():
        assert config.jax_disable_jit
        raise RuntimeError
    assert not config.jax_disable_jit


def test_switches():
    parsed = Switches(
        {"PULLBACK_DUMP": "loops,asm@step:/some/folder", "PULLBACK_CHECK": "2", "PULLBACK_NUM_THREADS": "3"}
    )
    assert (
        parsed.dump.stages == {"loops", "asm"}
        and parsed.dump.function == "step"
        and parsed.dump.folder == "/some/folder"
    )
    assert parsed.check == 2 and parsed.num_threads == 3 and parsed.interpret is False
    for name, text, message in [
        ("CHECK", "3", "expected 0, 1 or 2"),
        ("DUMP", "loop", "unknown stage 'loop'"),
        ("INTERPRET", "perhaps", "expected one of"),
        ("NUM_THREADS", "-1", "whole number"),
        ("NUM_THREADS", "1025", "up to 1024"),
        ("NUM_THREADS", "9" * 30, "up to 1024"),
        ("NUM_THREADS", "²", "whole number"),
        ("NUM_THREADS", "", "whole number"),
        ("CACHE_PROGRAMS", "-1", "whole number"),
        ("CPU", "x86-64-v5", "expected one of host, x86-64, x86-64-v2"),
    ]:
        with pytest.raises(ValueError, match=f"PULLBACK_{name}='{text}': .*{message}"):
            Switches({f"PULLBACK_{name}": text})
    with switches.set(check=2):
        assert switches.check == 2
    with pytest.raises(TypeError, match="unknown switch 'chekc'"), switches.set(chekc=1):
        pass


def test_update_takes_its_arguments_by_name():
    """klujax writes them so."""
    before = config.read("jax_log_compiles")
    config.update(name="jax_log_compiles", val=before)
    assert config.read("jax_log_compiles") == before


def test_options_have_the_names_of_their_context_managers():
    assert (module.debug_nans.__name__, module.transfer_guard.__name__) == ("debug_nans", "transfer_guard")
