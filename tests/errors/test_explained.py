"""Errors say where they are explained, and there is an explanation."""

from __future__ import annotations

import importlib.util
import pickle
import re
import traceback
from pathlib import Path

import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import errors
from pullback.__main__ import main
from pullback.explain import explained
from pullback.util.errors import Explained

DOCS = Path(__file__).parents[2] / "docs"


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def branches(x):
    return x if x > 0 else -x


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: jax.jit(branches)(1.0), "TracerBoolConversionError"),
        (lambda: jnp.sin("text"), "ArgumentError"),
        (lambda: jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x", "x")), "DuplicateSpecError"),
    ],
)
def test_the_note_below_the_message(call, name):
    error = raised(call)
    text = "".join(traceback.format_exception(error))
    (line,) = [line for line in text.splitlines() if line.startswith("Explained:")]
    assert f"explain {name}, or errors.html#{name.lower()}" in line
    assert "Explained" not in str(error)  # what programs compare is the message


def test_a_note_is_there_once_after_pickling():
    error = pickle.loads(pickle.dumps(raised(lambda: jax.jit(branches)(1.0))))
    assert len(error.__notes__) == 1


def test_all_public_errors_are_explained():
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), Explained), name
        assert getattr(errors, name) in explained()[name]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    folder = tmp_path_factory.mktemp("docs")
    generate.write_errors(folder)
    text = (folder / "errors.md").read_text()
    assert text.count("```python") == text.count("\n```\n")
    return text


@pytest.mark.parametrize("name", explained())
def test_the_note_of_each_class_leads_to_a_section(name, page):
    kind = explained()[name][0]
    (note,) = kind.__new__(kind).__notes__
    (anchor,) = re.findall(r"errors\.html#(\w+)", note)
    assert f"({anchor})=\n## {name}\n" in page


def test_the_command(capsys):
    assert main(["explain", "jax.errors.TracerBoolConversionError"]) == 0
    assert "jnp.where(x > 0, x, -x)  # right" in capsys.readouterr().out
    assert main(["explain"]) == 0
    assert "ArgumentError: An argument" in capsys.readouterr().out
    assert main(["explain", "TracerBolConversion"]) == 2
    assert "did you mean TracerBoolConversionError" in capsys.readouterr().err
