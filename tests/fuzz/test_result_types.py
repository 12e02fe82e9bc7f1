"""Dtypes and weak types of results against a table that was made with JAX 0.10.2 (result_types.py)."""

import json
from pathlib import Path

import pytest

from fuzz.result_types import table

WANTED = json.loads((Path(__file__).parent / "data" / "result_types.json").read_text())


@pytest.mark.parametrize("x64", [False, True])
def test_results_have_the_types_of_jax(x64):
    got, want = table("pullback", x64), WANTED[x64]
    assert got.keys() == want.keys()
    assert [(n, got[n], want[n]) for n in want if got[n] != want[n]] == []
