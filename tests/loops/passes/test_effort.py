"""What passes do not do again: statements that do not change stay the same objects, and facts of them are kept."""

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.graph.structure import networks
from pullback.loops.ir import Builder, Kernel, Loop, Run
from pullback.loops.ir.visit import Substitute, forget_facts, loads, nodes, reads, statements
from pullback.loops.passes import places as places_pass
from pullback.loops.passes import simplify as simplify_pass
from pullback.loops.passes import split as split_pass
from pullback.loops.passes.simplify import simplify
from pullback.loops.passes.split import split
from pullback.loops.schedule import cost
from pullback.util.switches import switches


@pytest.fixture
def joined():
    """A nest that is cut where it changes sides, and one without a choice."""
    b = Builder()
    x, y, z = b.input("x", "f32", 2000), b.output("y", "f32", 2000), b.output("z", "f32", 2000)
    with b.loop(2000) as i:
        b.store(y, i, b.select(i < 1500, b.load(x, i), b.load(x, i - 1500)))
    with b.loop(2000) as i:
        b.store(z, i, b.load(x, i) * 2.0)
    return b.function("f")


def test_what_is_simple_stays_the_same_object(joined):
    first = simplify(joined)
    second = simplify(first)
    assert all(a is b for a, b in zip(first.body, second.body, strict=True))


def test_split_leaves_loops_without_choices_as_they_are(joined):
    simple = simplify(joined)
    parts = split(simple)
    assert len(parts.body) == 3 and parts.body[-1] is simple.body[-1]


def test_split_looks_at_settled_loops_once(joined, monkeypatch):
    seen = []
    original = split_pass._points
    monkeypatch.setattr(split_pass, "_points", lambda loop, trips: (seen.append(loop), original(loop, trips))[1])
    split(simplify(joined))
    assert len(seen) == len(set(seen)) == 4  # two nests, then the two parts of the first


def test_renamed_copies_are_told_apart():
    b = Builder()
    y = b.output("y", "f32", 1)
    b.store(y, 0, 1.0)
    body = b.function("f").body
    copies = [Substitute({}, lambda var: var).block(body)[0] for _ in range(2)]
    assert copies[0] is not copies[1]


def test_facts_are_kept_until_a_program_is_compiled(joined, monkeypatch, tmp_path):
    monkeypatch.setattr(switches, "cache_dir", str(tmp_path))
    pb.clear_caches()
    nest = joined.body[0]
    (store,) = nest.body
    assert nodes(store) is nodes(store) and reads(store) == (nest.var,) and len(loads(store)) == 1
    assert nodes.cache_info().currsize
    pb.jit(lambda x: x * 3.25 + 1)(np.arange(7, dtype=np.float32))
    assert not nodes.cache_info().currsize and not loads.cache_info().currsize
    forget_facts()


def test_a_kernel_is_priced_once_however_often_it_runs(monkeypatch):
    b = Builder()
    x, y = b.buffer("x", "f32", 64, "temporary"), b.buffer("y", "f32", 64, "temporary")
    with b.loop(64) as i:
        b.store(y, i, b.load(x, i) * 2.0)
    kernel = Kernel("k", (x, y), (), b.function("k").body)
    body = tuple(Run(kernel, (x, y), ()) for _ in range(50))
    calls = []
    original = cost._expressions
    monkeypatch.setattr(cost, "_expressions", lambda *args: (calls.append(args), original(*args))[1])
    price = cost.cost(body)
    assert price == 50 * cost.cost(body[:1]) and len(calls) <= 2
    assert not any(isinstance(stmt, Loop) for stmt in statements(body))


def test_places_of_exchanges_are_not_compared_pair_by_pair(monkeypatch):
    seen = []
    original = places_pass._Joined.both
    monkeypatch.setattr(places_pass._Joined, "both", lambda self, x, y: (seen.append(1), original(self, x, y))[1])
    monkeypatch.setattr(networks, "MIN_ROWS_OF_MANY", 256)
    x = np.zeros((10, 300), "f4")
    pb.jit(lambda x: pb.numpy.sort(x, 0).T).lower(x).as_text("nests")
    assert 0 < len(seen) < 5000  # 148,000 where every pair is looked at


def test_wide_indices_are_sought_in_shared_choices_once(monkeypatch):
    """Data that is chosen again and again, then read as an index: each choice is shared by two of the next."""
    b = Builder()
    keys, y = b.input("keys", "i32", 2), b.output("y", "i64", 1)
    first, second = b.load(keys, 0), b.load(keys, 1)
    least = b.const("i32", 3), b.const("i32", 5)
    for _ in range(16):
        condition = b.op("lt", first, second)
        least = tuple(b.select(condition, *pair) for pair in (least, least[::-1]))
    b.store(y, 0, b.convert(least[0], "i64"))
    seen = []
    original = simplify_pass._Simplify._wide
    monkeypatch.setattr(
        simplify_pass._Simplify, "_wide", lambda self, *args: (seen.append(1), original(self, *args))[1]
    )
    simplify(b.function("f"))
    assert len(seen) < 500  # 262,000 where what is shared is looked at each time
