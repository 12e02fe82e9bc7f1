"""The model of more hosts says what follows from its parameters."""

from __future__ import annotations

import pytest
from benchmarks.scale import model

NET = model.Network(latency=1e-5, post=1e-6, rate=1e9, adding=1e10)


def test_operations_cost_messages_and_bytes():
    small, large = model.Operation("sum", 8, 3), model.Operation("sum", 1e6, 1)
    assert model.seconds(small, 1, NET) == 0
    assert model.seconds(small, 2, NET) == pytest.approx(3 * (1e-5 + 1e-6 + 8e-9 + 8e-10))
    assert model.seconds(large, 4, NET) == pytest.approx(2 * (1e-5 + 3e-6) + 2 * 0.75e-3 + 0.75e-4)
    assert model.seconds(model.Operation("permute", 1e6, 2), 9, NET) == pytest.approx(2 * (1.1e-5 + 1e-3))


def test_many_processes_meet_in_rounds():
    assert [model.rounds(p) for p in (15, 16, 17, 1024)] == [([15], 0), ([8, 2], 0), ([8, 2], 1), ([8, 8, 8, 2], 0)]
    small, large = model.Operation("sum", 8, 1), model.Operation("sum", 1.6e7, 1)
    assert model.seconds(small, 16, NET) == pytest.approx(2e-5 + 8 * (1e-6 + 8e-9 + 8e-10))
    assert model.seconds(large, 16, NET) == pytest.approx(2 * (2e-5 + 8e-6 + 0.015) + 0.0015)
    assert model.seconds(small, 17, NET) == pytest.approx(model.seconds(small, 16, NET) + 2.2e-5 + 16.8e-9)


@pytest.mark.parametrize("name", model.PROGRAMS)
def test_one_process_takes_what_was_measured_and_weak_scaling_falls(name):
    program = model.fitted(name, 1024, once=0.03, twice=0.05)
    assert program.fixed == pytest.approx(0.01) and program.shared == pytest.approx(0.02)
    assert program.time(1, NET) == pytest.approx(0.03) and program.time(1, NET, work=2) == pytest.approx(0.05)
    weak = [program.time(1, NET) / program.time(p, NET, work=p) for p in model.HOSTS]
    assert weak == sorted(weak, reverse=True) and 0 < weak[-1] < weak[0] <= 1
    assert program.time(4, NET, cores=2) == pytest.approx(2 * program.time(4, NET))


def test_the_network_follows_from_two_sizes():
    big, two = 1 << 22, model.Network(5e-7, 5e-7, 1e10, 2e10)
    ours = {("permute", n): two.latency + two.post + n / two.rate for n in (4, big)}
    ours["all_reduce", big] = model.seconds(model.Operation("sum", big, 1), 2, two)
    found = model.measured(ours)
    assert found.rate == pytest.approx(two.rate, rel=1e-3) and found.adding == pytest.approx(two.adding, rel=1e-3)
