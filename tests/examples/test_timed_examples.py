"""The examples that time something, on small sizes: their values agree with NumPy and formulas, tables and pictures
come out, and what has no room is a gap."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
from examples import (
    _common,
    dot_einsum,
    least_squares,
    linear_layer,
    normal_samples,
    spectral_radius,
    sum_of_range,
)

import pullback as jax

EXAMPLES = ("dot_einsum", "least_squares", "linear_layer", "normal_samples", "pln", "spectral_radius", "sum_of_range")
_common.backend("pullback")


@pytest.fixture
def x64():
    """64-bit numbers for one test; also puts back what an example sets."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def rows_of(text: str) -> list[list[str]]:
    """The cells of a printed table, without its header."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("name", EXAMPLES)
def test_help(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module(f"examples.{name}").main(["--help"])
    assert stopped.value.code == 0
    assert "--backend" in capsys.readouterr().out


def test_dot_einsum(capsys, tmp_path):
    path = tmp_path / "times.png"
    assert dot_einsum.main(["--sizes", "5,101", "--rounds", "1", "--picture", str(path)]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert [row[:2] for row in rows] == [["dot", "5"], ["dot", "101"], ["einsum", "5"], ["einsum", "101"], ["eig", "5"]]
    assert all(len(row) == 7 and "-" not in row for row in rows)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("n", [1, 16, 17])
def test_dot_einsum_values(n):
    for name in dot_einsum.operations(np):
        given = dot_einsum.inputs(name, n)
        for function in dot_einsum.levels(jax, name).values():
            assert dot_einsum.error(name, given, function(*given)) < 1e-5


def test_least_squares(capsys, x64):
    assert least_squares.main(["--size", "30", "--rounds", "1"]) == 0
    assert len(rows_of(capsys.readouterr().out)) == 12


@pytest.mark.parametrize("size", [1, 17])
def test_least_squares_values(size, x64):
    for case in least_squares.cases(jax, size):
        result = case.function(*map(jax.numpy.asarray, case.inputs))
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, case.formula(*case.inputs), rtol=1e-10, atol=1e-12, err_msg=case.name)


def test_least_squares_formulas_are_derivatives():
    """By differences, which know nothing of derivative rules."""
    x, a, b, v = least_squares.inputs(7, 5, more=1)
    f, step = least_squares.least_squares(np), 1e-5
    units = step * np.eye(5)
    differences = [(f(x + u, a, b) - f(x - u, a, b)) / (2 * step) for u in units]
    np.testing.assert_allclose(least_squares.gradient_formula(x, a, b), differences, rtol=1e-6)
    gradient = least_squares.gradient_formula
    columns = [(gradient(x + u, a, b) - gradient(x - u, a, b)) / (2 * step) for u in units]
    hessian = least_squares.hessian_formula(x, a, b)
    np.testing.assert_allclose(hessian, np.array(columns).T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(least_squares.product_formula(x, a, b, v), hessian @ v)

    def softmax(x):
        y = np.exp(a @ x + b)
        return y / y.sum()

    columns = [(softmax(x + u) - softmax(x - u)) / (2 * step) for u in units]
    np.testing.assert_allclose(least_squares.softmax_formula(x, a, b), np.array(columns).T, atol=1e-9)


def test_linear_layer(capsys, tmp_path):
    path = tmp_path / "layer.png"
    sizes = ["--n", "3,50", "--p", "4", "--o", "1,20"]
    assert linear_layer.main([*sizes, "--rounds", "1", "--memory", "1e-4", "--picture", str(path)]) == 0
    rows = rows_of(capsys.readouterr().out)
    gaps = {tuple(map(int, row[:3])): [cell == "-" for cell in row[3:]] for row in rows}
    assert gaps.pop((50, 4, 20)) == [True, True, True, True, False]
    assert not any(itertools.chain(*gaps.values()))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_linear_layer_without_room(capsys):
    """The Jacobian would take 40 TB: a gap also where it is tried."""
    sizes = ["--n", "10", "--p", "1", "--o", "1000000"]
    assert linear_layer.main([*sizes, "--memory", "1e9", "--rounds", "1"]) == 0
    (row,) = rows_of(capsys.readouterr().out)
    assert row[3:7] == ["-"] * 4


@pytest.mark.parametrize("cell", [(1, 1, 1), (3, 17, 2), (16, 5, 4)])
def test_linear_layer_values(cell):
    given = linear_layer.inputs(*cell)
    for name, function in linear_layer.methods(jax).items():
        formula = linear_layer.formula_without_zeros if name == "vmap(vmap(grad))" else linear_layer.formula
        np.testing.assert_array_equal(function(*given), formula(*given), err_msg=name)


def test_normal_samples(capsys, tmp_path):
    path = tmp_path / "normal.png"
    assert normal_samples.main(["--size", "40", "--rounds", "1", "--picture", str(path)]) == 0
    rows = {row[0]: row[2:] for row in rows_of(capsys.readouterr().out)}
    assert list(rows) == ["eager", "jitted", "NumPy"]
    assert rows["eager"] == rows["jitted"]
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_sum_of_range(n, capsys):
    assert sum_of_range.main(["--n", str(n), "--rounds", "1"]) == 0
    text = capsys.readouterr().out
    rows = rows_of(text)
    assert {row[2] for row in rows} == {str(n * (n - 1) // 2)}
    assert ("C -O2" in [row[0] for row in rows]) == (sum_of_range.compiler() is not None)
    if n == 1000:
        assert "499500" in text.split("compiled for")[1], "the sum is a constant of the compiled program"


def test_sum_of_range_refuses_what_overflows(capsys):
    with pytest.raises(SystemExit):
        sum_of_range.main(["--n", "65537"])
    assert "overflows" in capsys.readouterr().err


def test_spectral_radius(capsys, tmp_path):
    path = tmp_path / "radius.png"
    assert spectral_radius.main(["--count", "7", "--rounds", "1", "--picture", str(path)]) == 0
    text = capsys.readouterr().out
    assert len(rows_of(text)) == 7
    assert ".354 -0.354" in text and ".145-0.235j" in text
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [1, 16, 17])
def test_spectral_radius_values(count):
    (matrices,) = spectral_radius.inputs(count)
    expected = [max(abs(np.linalg.eigvals(m.astype(float)))) for m in matrices]
    for name, function in spectral_radius.levels(jax).items():
        np.testing.assert_allclose(function(jax.numpy.asarray(matrices)), expected, rtol=1e-5, err_msg=name)


def test_tables_and_differences():
    text = _common.table(["what", "time"], [["a", 2e-3], ["long name", None]])
    assert text.splitlines()[1:] == ["| --------- | ---: |", "| a         | 2 ms |", "| long name |    - |"]
    assert _common.difference(np.array([1.0, 2.5]), [1, 2]) == 0.25
    with pytest.raises(ValueError, match=r"\(1,\), expected \(2,\)"):
        _common.difference([1.0], [1.0, 2.0])
