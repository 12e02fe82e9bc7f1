"""Some random programs in every run of the tests; `python -m fuzz --seconds 3600` in tests/ runs as many as wanted."""

import numpy as np
import pytest

from fuzz.program import disagreement, run

PROGRAMS, CHUNK = 150, 10


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs(first):
    for seed in range(first, first + CHUNK):
        problem = run(seed, 2 + seed % 24)
        assert not problem, f"python -m fuzz --seed {seed}: {problem}"


# Layout of row-local memory, memory taken over too early, local memory of nests that are functions of their own.
@pytest.mark.parametrize(("seed", "moves"), [(130, 7), (136, 8), (908, 22), (1111, 5), (1459, 20)])
def test_programs_that_were_wrong_once(seed, moves):
    problem = run(seed, moves)
    assert not problem, problem


def test_disagreements_are_seen():
    one = np.linspace(1, 2, 5, dtype=np.float32)
    wide = one.astype(np.float64)
    assert not disagreement(one, one, wide, exact=False)
    assert disagreement(one * np.float32(1.0001), one, wide, exact=False)
    assert disagreement(np.nextafter(one, np.float32(9)), one, wide, exact=True)
    assert disagreement(one[:4], one, wide, exact=False)
    assert disagreement(np.array([1, 2]), np.array([1, 3]), np.array([1, 3]), exact=True)
