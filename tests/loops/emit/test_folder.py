"""Files of the code cache are written as they must be for us to trust them."""

import os
import stat

import pytest

from pullback.loops.emit.folder import default_folder, read, usable, write
from pullback.util.switches import switches


@pytest.fixture
def everybody_may():
    """New files are open to all, where nobody says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("everybody_may")
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_written_is_read_again_whatever_the_mask(tmp_path, shared):
    folder = tmp_path / "programs"
    with switches.set(cache_shared=shared):
        assert usable(folder, make=True)
        write(folder / "one", b"first")
        write(folder / "one", b"second")
        assert read(folder / "one", 100) == b"second"
        assert stat.S_IMODE((folder / "one").stat().st_mode) == (0o644 if shared else 0o600)
        assert [path.name for path in folder.iterdir()] == ["one"]


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        write(tmp_path / "taken", b"content")
    with pytest.raises(OSError):
        write(tmp_path / "missing" / "file", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_users_without_a_home_have_a_temporary_folder(monkeypatch):
    """Not one of the name ~ where they happen to be."""
    for name in ("PULLBACK_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert os.path.isabs(default_folder())
