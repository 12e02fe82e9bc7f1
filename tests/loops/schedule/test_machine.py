"""Machines, and what nests are expected to take on them."""

import json
import pathlib

import numpy as np
import pytest

import pullback as jax
from pullback import tune
from pullback.loops.ir import Builder
from pullback.loops.schedule import machine as machines
from pullback.loops.schedule import price as pricing
from pullback.loops.schedule.machine import AVX2_SERVER, AVX512_SERVER, LAPTOP, NOMINAL, TINY, host, using
from pullback.loops.schedule.price import price


def walk(rows, columns, down):
    """Copies of a matrix's elements, column after column or row after row."""
    b = Builder()
    x, y = b.input("x", "f32", rows * columns), b.output("y", "f32", rows * columns)
    outer, inner = (columns, rows) if down else (rows, columns)
    with b.loop(outer) as i, b.loop(inner) as j:
        place = j * columns + i if down else i * columns + j
        b.store(y, place, b.load(x, place) + 1.0)
    return b.function("walk").body[-1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A code cache of this test's own."""
    place = tmp_path / "cache"
    monkeypatch.setattr(machines, "default_folder", lambda: place)
    machines._host.cache_clear()
    yield place
    machines._host.cache_clear()


def test_this_machine_has_caches_one_larger_than_the_other():
    found = machines.of_system()
    assert 1 << 12 <= found.first.bytes < found.second.bytes <= found.last.bytes
    assert found.cores >= 1 and found.vector_bytes in (16, 32, 64)


@pytest.mark.parametrize("machine", [AVX2_SERVER, AVX512_SERVER, LAPTOP, TINY])
def test_going_down_columns_that_no_cache_holds_costs_a_line_an_element(machine):
    down, along = price(walk(20_000, 5000, True), machine), price(walk(20_000, 5000, False), machine)
    assert down.moved["second"] > 10 * along.moved["second"]
    assert down.total > 2 * along.total
    assert along.moved["memory"] == pytest.approx(2 * 4 * 20_000 * 5000, rel=0.1)


def test_what_a_cache_holds_is_fetched_once():
    small = price(walk(16, 16, True), NOMINAL)
    assert small.moved == {"second": 0, "last": 0, "memory": 0}
    assert price(walk(200, 200, True), TINY).moved["memory"] > 0


def test_lines_are_found_once_for_all_caches(monkeypatch):
    """And not at all for what the first one holds: most nests of small programs."""
    asked, lines = [], pricing._Access.lines
    monkeypatch.setattr(pricing._Access, "lines", lambda self, line: asked.append(line) or lines(self, line))
    price(walk(16, 16, True), NOMINAL)
    assert asked == []
    price(walk(20_000, 5000, True), NOMINAL)
    assert sorted(asked) == [NOMINAL.line] * 2 + [pricing.PAGE] * 2


def test_another_machine_for_a_while():
    with using(TINY):
        assert host() is TINY
    assert host() is not TINY


def test_measured_times_are_kept_for_this_machine_only(folder):
    path = pathlib.Path(machines.keep_measured({"memory_ns": 123.0, "second_ns": 1.5, "gathered": 7.0}))
    assert path.parent == folder
    assert host().memory_ns == 123.0 and host().second.line_ns == 1.5 and host().gathered == 7.0
    path.write_text(json.dumps(json.loads(path.read_text()) | {"of": "another"}))
    machines._host.cache_clear()
    assert host().memory_ns == NOMINAL.memory_ns


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"of": 3}'])
def test_a_damaged_file_is_as_none(folder, text):
    pathlib.Path(machines.keep_measured({})).write_text(text)
    machines._host.cache_clear()
    assert host() == machines.of_system()


def test_tuning(folder, monkeypatch, capsys):
    monkeypatch.setattr(tune, "LEAST", 1e-4)
    monkeypatch.setattr(tune, "of_system", lambda: TINY)
    assert tune.main() == 0
    assert "memory_ns" in capsys.readouterr().out
    kept = json.loads((folder / machines.FILE).read_text())
    assert all(kept[name] > 0 for name in ("second_ns", "last_ns", "memory_ns", "shared_ns", "gathered"))


def test_the_schedule_as_text():
    x = np.ones((1000, 700), "f4")
    with using(AVX2_SERVER):
        text = jax.jit(lambda x: jax.nn.softmax(x, 0)).lower(x).as_text("schedule")
    assert "nest 1" in text and "computes" in text and "fetches" in text
    assert "runner-up" in text and "written" in text
