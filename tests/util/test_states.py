"""Options that libraries define by the names under which JAX makes its own (`jax._src.config.bool_state`, ...)."""

import pytest

import pullback
import pullback.numpy as jnp
from pullback.util import config as module
from pullback.util import flags
from pullback.util.config import config


@pytest.fixture(autouse=True)
def _no_options_are_left():
    known, listeners = dict(flags.options), list(flags._listeners)
    traced = list(flags._traced)
    yield
    flags._listeners[:], flags._traced[:] = listeners, traced
    for name in [name for name in flags.options if name not in known]:
        del flags.options[name], flags._global[name]
    flags.set_globally(flags.options["jax_enable_x64"], config.jax_enable_x64)


def test_states_have_a_value_for_the_process_and_one_inside_of_a_with():
    state = module.bool_state("lib_fast", False, "Be fast.")
    with state(True):
        assert state.value is True and config.lib_fast is True
    assert state.value is False
    config.update("lib_fast", True)
    assert state.value is True
    with pytest.raises(Exception, match="lib_fast already defined"):
        module.bool_state("lib_fast", False, "Be fast.")


@pytest.mark.parametrize(
    ("make", "default", "good", "bad"),
    [
        (lambda: module.enum_state("lib_o", ["a", "b"], "a", ""), "a", "b", "c"),
        (lambda: module.optional_enum_state("lib_o", ["a"], None, ""), None, "a", "c"),
        (lambda: module.int_state("lib_o", 3, ""), 3, 5, "x"),
        (lambda: module.float_state("lib_o", 3.0, ""), 3.0, 5, "x"),
        (lambda: module.string_state("lib_o", "q", ""), "q", "r", 3),
        (lambda: module.optional_string_state("lib_o", None, ""), None, "r", 3),
    ],
)
def test_states_take_values_of_their_kind(make, default, good, bad):
    state = make()
    assert state.value == default
    with state(good):
        assert state.value == good
    with pytest.raises(ValueError, match="lib_o"), state(bad):
        pass


def test_hooks_and_validators_are_asked_and_traces_depend_on_what_says_so():
    told, traced = [], []

    def refuse_seven(value):
        if value == 7:
            raise ValueError("not seven")

    state = module.int_state(
        "lib_n",
        1,
        "",
        update_global_hook=lambda value: told.append(("process", value)),
        update_thread_local_hook=lambda value: told.append(("thread", value)),
        include_in_trace_context=True,
        validator=refuse_seven,
    )
    fun = pullback.jit(lambda x: traced.append(state.value) or x)
    fun(jnp.ones(2))
    with state(2):
        fun(jnp.ones(2)), fun(jnp.ones(2))
    fun(jnp.ones(2))
    with pytest.raises(ValueError, match="not seven"), state(7):
        pass
    config.update("lib_n", 3)
    assert traced == [1, 2]
    assert told == [("process", 1), ("thread", 2), ("thread", None), ("process", 3)]
