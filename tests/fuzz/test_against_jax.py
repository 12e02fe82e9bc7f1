"""Random calls against stored results of JAX 0.10.2; `tools/against_jax.py --store` makes the file anew."""

import importlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import pullback
from fuzz.calls import INTEGERS, Call, make_call, templates
from fuzz.compare import Evidence, compare, near, shaken, verdict
from fuzz.program import FuzzProgram
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


@pytest.mark.filterwarnings("ignore")
def test_loops_of_calls_end(library, monkeypatch):
    """For every dtype of the counter: an unsigned one is never below zero, and a loop that waits for it never ends."""

    def while_loop(condition, body, state):
        for _ in range(50):
            if not condition(state):
                return state
            state = body(state)
        raise AssertionError(f"{call.text} goes on from {[a.dtype for a in call.arguments]}")

    loops = [(group, line) for group, line in templates() if "while_loop" in line]
    monkeypatch.setattr("fuzz.calls.ALL", loops)
    monkeypatch.setattr("fuzz.calls.WEIGHTS", np.full(len(loops), 1 / len(loops)))
    ours, counters = library(True), set()
    ours.names["lax"] = SimpleNamespace(while_loop=while_loop)
    for k in range(80):
        call = make_call(np.random.default_rng(k), True)
        counters.add(call.arguments[0].dtype)
        ours.program(call.text)(*(ours.argument(a._replace(form="array")) for a in call.arguments))
    assert counters == set(INTEGERS)


class Planted:
    """A stand-in for a worker: this process, whose results of `texts` a fault changes."""

    def __init__(self, library, fault=None):
        self.library, self.fault, self.asked = library, fault or (lambda task, outcome: outcome), 0

    def ask(self, tasks):
        self.asked += len(tasks)
        return [self.fault(t, self.library.evaluate(t)) for t in tasks]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "tools"))
    return importlib.import_module("against_jax")


def run_of(tool, tmp_path, library, fault):
    options = tool.arguments(["--peer", "none", "--programs", "1", "--cache", str(tmp_path)])
    run = tool.Run(options)
    run.workers = {
        (name, x64): Planted(library, f) for name, f in (("pullback", fault), ("jax", None)) for x64 in (False, True)
    }
    return run


@pytest.mark.filterwarnings("ignore")
def test_a_planted_difference_is_found_and_made_small(tool, library, tmp_path):
    def fault(task, outcome):
        """1 is added to the first result."""
        if "composed" not in task.text or isinstance(outcome, Raised):
            return outcome
        first = outcome[0]._replace(data=(outcome[0].value() + 1).astype(outcome[0].dtype).tobytes())
        return [first, *outcome[1:]]

    run = run_of(tool, tmp_path, library(False), fault)
    call = Call("composed", "def program(*x):\n    f = composed(11, 6)\n    return f(*x)\n", (), ())
    inputs = FuzzProgram(11, 6).inputs()
    arguments = tuple(Argument("array", a.dtype.name, a.shape, np.ascontiguousarray(a).tobytes()) for a in inputs)
    call = replace(call, arguments=arguments, domains=("", "", *["exact"] * (len(inputs) - 2)))
    run.batch([call], False, np.random.default_rng(0))
    (found,) = run.findings
    assert found.difference.what == "value" and "composed(11, 1)" in found.call.text
    simple = [a.value() for a in found.call.arguments]
    assert all(not a.size or np.all(a == a.reshape(-1)[0]) for a in simple)
    assert "pullback:" in tool.described(found) and "**1**" in tool.page(run)


@pytest.mark.parametrize("who, times, found", [("pullback", 99, 1), ("pullback", 1, 0), ("jax", 99, 0)])
def test_programs_that_only_here_do_not_end_are_found(tool, library, tmp_path, who, times, found):
    run, late = run_of(tool, tmp_path, library(False), None), iter([Raised(("TimeoutError",), "")] * times)
    run.workers[who, False].fault = lambda task, outcome: next(late, outcome)
    call = Call("shapes", "def program(x0):\n    return jnp.ravel(x0)\n", (), ("",))
    call = replace(call, arguments=(Argument("array", "float32", (3,), bytes(12)),))
    task = Task(call.text, call.arguments, False)
    got, want = (run.workers[w, False].ask([task])[0] for w in ("pullback", "jax"))
    run.judge(call, False, "eager", got, want, np.random.default_rng(0))
    assert [f.difference.what for f in run.findings] == ["time"] * found
    assert run.runs["timed out"] == (who == "jax")


def test_answers_are_asked_for_once(tool, tmp_path):
    from side_by_side import Answers

    answers = Answers(tmp_path / "answers.sqlite")
    outcome = [leaf(1.0, weak=True)]
    answers.put({b"a": outcome, b"b": Raised(("ValueError", "Exception"), "no"), b"c": []})
    again = Answers(tmp_path / "answers.sqlite")
    assert again.get(b"a") == outcome and again.get(b"c") == [] and again.get(b"d") is None
    assert again.get(b"b") == Raised(("ValueError", "Exception"), "no")


def test_elements_are_explained_one_by_one(tool):
    from explained_values import excused

    call = Call("special", "return special.erf(x0)", (), ())
    got, want = [leaf(np.inf, 1.0, 1e-40)], [leaf(np.nan, 2.0, 0.0)]
    rest, name = excused(call, got, want)
    assert name == "subnormal numbers" and compare(rest, want).what == "value"
    np.testing.assert_array_equal(rest[0].value(), np.array([np.inf, 1.0, 0.0], np.float32))
    rest, name = excused(replace(call, text="return special.gammaln(x0)"), got, want)
    np.testing.assert_array_equal(rest[0].value(), np.array([np.nan, 1.0, 0.0], np.float32))
