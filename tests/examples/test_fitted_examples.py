"""The examples that fit something, on small problems: they find what they should, and draw it."""

from __future__ import annotations

import re

import pytest

from .processes import run

SMALL = {
    "digits": ("--epochs", "2"),
    "gp_regression": ("--points", "80", "--steps", "30"),
    "neural_ode": ("--steps", "40", "--paths", "8"),
    "nuts_regression": ("--points", "100", "--chains", "2", "--draws", "300"),
    "sinkhorn": ("--points", "60", "--steps", "12"),
    "transformer": ("--steps", "100", "--width", "16"),
    "waves": ("--size", "32", "--steps", "80"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SMALL)
def test_it_finds_what_it_should(name, tmp_path):
    picture, movie = tmp_path / "picture.png", tmp_path / "waves.gif"
    moving = ("--animation", str(movie)) if name == "waves" else ()
    text = run(name, *SMALL[name], "--picture", str(picture), *moving)  # ends with 0 if it has
    assert re.search(r": [\d.]+ m?s;\s.*with compilation: [\d.]+ s$", text, re.M)
    assert picture.read_bytes().startswith(b"\x89PNG")
    if moving:
        assert movie.read_bytes().count(b"\x00\x21\xf9\x04") == 20  # pictures
