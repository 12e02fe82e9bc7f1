"""The example of an exported training step: C++ finds what Python finds."""

from __future__ import annotations

from examples import export_to_c


def test_cplusplus_fits_the_model_that_python_fits(tmp_path, capsys):
    assert export_to_c.main(["--path", str(tmp_path / "osc"), "--length", "60", "--steps", "40"]) == 0
    text = capsys.readouterr().out
    assert "C++ and Python agree to the last bit" in text
    assert {"liboscillator.so", "oscillator.h", "fit"} <= {path.name for path in (tmp_path / "osc").iterdir()}
