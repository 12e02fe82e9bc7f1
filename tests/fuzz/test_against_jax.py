"""Random calls against stored results of JAX 0.10.2; `tools/against_jax.py --store` makes the file anew."""

from pathlib import Path

import numpy as np
import pytest

import pullback
from fuzz.calls import make_call
from fuzz.compare import Evidence, compare, near, shaken, verdict
from fuzz.stored import read_stored, write_stored
from fuzz.worker import Argument, Leaf, Library, Raised, Task

STORED = Path(__file__).parent / "data" / "jax_results.npz"


@pytest.fixture
def library():
    before = pullback.config.jax_enable_x64
    yield lambda x64: Library("pullback", x64)
    pullback.config.update("jax_enable_x64", before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("x64", [False, True])
def test_calls_give_what_jax_gave(library, x64):
    ours, problems = library(x64), []
    with np.errstate(all="ignore"):
        for call, wide, want in read_stored(STORED):
            if wide is x64:
                difference = compare(ours.evaluate(Task(call.text, call.arguments, False)), want)
                if difference is not None:
                    problems.append((call.text, difference))
    assert problems == []


def leaf(*values, dtype="float32", weak=False):
    array = np.asarray(values, dtype)
    return Leaf(dtype, weak, array.shape, array.tobytes())


def test_differences_are_seen():
    one = [leaf(1.0, 2.0)]
    assert compare(one, [leaf(1.0, 2.0000002)]) is None
    assert compare(one, [leaf(1.0, 2.1)]).what == "value"
    assert compare([leaf(np.nan)], [leaf(np.nan)]) is None
    assert compare([leaf(np.nan)], [leaf(1.0)]).what == "value"
    assert compare(one, [leaf(1.0, 2.0, weak=True)]).what == "weak_type"
    assert compare(one, [leaf(1.0, 2.0, dtype="float64")]).what == "dtype"
    assert compare(one, [leaf(1.0)]).what == "shape"
    assert compare(one, one * 2).what == "number"
    error = Raised(("ShapeError", "ValueError", "Exception"), "")
    assert compare(error, Raised(("ValueError", "Exception"), "")) is None
    assert compare(error, Raised(("TypeError", "Exception"), "")).what == "exception"
    assert compare(error, one).what == "exception"


def test_rounding_explains_what_the_condition_allows_and_no_more():
    got, want = [leaf(1.001)], [leaf(1.0)]
    calm, wild = [[leaf(1.0)]], [[leaf(1.0)], [leaf(1.01)]]
    assert verdict(Evidence(got, want, None, None, calm), False) == ""
    assert verdict(Evidence(got, want, None, None, wild), False) == "condition"
    truth = [leaf(1.001, dtype="float64")]
    assert verdict(Evidence(got, want, truth, None, [truth]), False) == "ask"
    assert verdict(Evidence(got, want, truth, truth, [truth]), False) == "peer"
    assert verdict(Evidence(want, got, truth, truth, [truth]), False) == ""


def test_calls_are_the_same_for_a_seed_and_are_stored_whole(tmp_path):
    calls = [make_call(np.random.default_rng(k), True) for k in range(40)]
    assert calls == [make_call(np.random.default_rng(k), True) for k in range(40)]
    outcomes = [[leaf(1.0, 2.0, weak=True)], Raised(("ValueError", "Exception"), "")] * 20
    write_stored(tmp_path / "x.npz", [(c, True, o) for c, o in zip(calls, outcomes)])
    back = read_stored(tmp_path / "x.npz")
    assert [(c.text, c.arguments, o) for c, _, o in back] == [(c.text, c.arguments, o) for c, o in zip(calls, outcomes)]


def test_shaken_arguments_move_by_one_unit():
    a = Argument("array", "complex64", (3,), np.array([1 + 2j, 0, 3], np.complex64).tobytes())
    moved = shaken(a, np.random.default_rng(0)).value()
    assert np.all(near(moved, a.value(), 2)) and np.any(moved != a.value()) and moved[1] == 0
