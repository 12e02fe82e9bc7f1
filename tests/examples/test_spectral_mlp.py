"""The network that learns spectral radii, on few matrices: it learns, and two devices have the losses of one."""

from __future__ import annotations

import re

from .processes import python, run


def test_both_ways_learn_alike(tmp_path):
    picture = tmp_path / "losses.png"
    text = run("spectral_mlp", "--count", "2048", "--epochs", "8", "--picture", str(picture))
    rows = re.findall(r"\| (one device|two devices) +\| +([\d.]+) \| +([\d.]+) \| +([\d.]+) \| +([\d.]+)", text)
    assert [row[0] for row in rows] == ["one device", "two devices"]
    for _, first, last, new, example in rows:
        assert float(first) > 1.5 and float(last) < 0.45 and float(new) < 0.45 and 1.2 < float(example) < 1.7
    assert float(re.search(r"s losses: (\S+);", text)[1]) < 1e-3
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_mistakes():
    done = python("-m", "examples.spectral_mlp", "--batch", "63", code=2)
    assert "cannot be shared by 2 devices" in done.stderr
    assert "--backend" in run("spectral_mlp", "--help")
