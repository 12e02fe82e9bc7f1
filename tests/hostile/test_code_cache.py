"""The folder of compiled programs: whom it may belong to, and what else may be in it. Never an error, never wrong."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import pullback
from pullback.core.primitive import registry
from pullback.lax import GatherDimensionNumbers
from pullback.loops.emit import folder
from pullback.loops.emit.cache import Entry, ObjectCache, version_of
from pullback.runtime.programs.plain import decode, encode
from pullback.util.switches import switches

from .processes import run

KEY, OTHER = "ab" + "0" * 62, "ab" + "1" * 62
ENTRY = Entry(b"code", ("slot",), 64, b"facts")


@pytest.fixture(autouse=True)
def nothing_said():
    folder._said.clear()


def stored(path):
    ObjectCache(path).put(KEY, ENTRY)
    return path / KEY[:2] / KEY[2:]


def test_folders_are_made_for_the_user_alone(tmp_path):
    path = stored(tmp_path / "cache")
    assert ObjectCache(tmp_path / "cache").get(KEY) == ENTRY
    for made in (tmp_path / "cache", path.parent, path):
        assert made.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_is_refused_and_said_once(tmp_path):
    path = stored(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=f"{tmp_path}, as it may be written by other users.*CACHE_SHARED=1") as said:
        assert ObjectCache(tmp_path).get(KEY) is None and ObjectCache(tmp_path).get(KEY) is None
        ObjectCache(tmp_path).put(OTHER, ENTRY)
    assert len(said) == 1 and not (path.parent / OTHER[2:]).exists()
    with switches.set(cache_shared=True):
        assert ObjectCache(tmp_path).get(KEY) == ENTRY


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    stored(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    status = os.stat(tmp_path)
    if status.st_uid == 0:  # who could do all the same
        os.chown(tmp_path, 12345, -1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert ObjectCache(tmp_path).get(KEY) is None


def test_a_file_that_others_may_write_is_refused(tmp_path):
    stored(tmp_path).chmod(0o666)
    with pytest.warns(RuntimeWarning, match=KEY[2:]):
        assert ObjectCache(tmp_path).get(KEY) is None
    ObjectCache(tmp_path).put(KEY, ENTRY)  # written anew, in its place
    assert ObjectCache(tmp_path).get(KEY) == ENTRY


def _link(path):
    shutil.move(path, path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


def _pipe(path):
    path.unlink()
    os.mkfifo(path)


def _folder(path):
    path.unlink()
    path.mkdir()


IN_ITS_PLACE = {
    "a link": _link,
    "a pipe": _pipe,
    "a folder": _folder,
    "nothing in it": lambda path: path.write_bytes(b""),
    "the beginning": lambda path: path.write_bytes(path.read_bytes()[:60]),
    "another version": lambda path: path.write_bytes(path.read_bytes().replace(b"object-", b"object-9")),
    "a damaged byte": lambda path: path.write_bytes(path.read_bytes().replace(b"facts", b"fakts")),
    "something large": lambda path: os.truncate(path, 1 << 40),
    "what has another name": lambda path: (ObjectCache(path.parents[1]).put(OTHER, ENTRY),
                                           shutil.copy(path.parent / OTHER[2:], path)),
}  # fmt: skip


@pytest.mark.parametrize("change", IN_ITS_PLACE.values(), ids=IN_ITS_PLACE)
def test_what_is_no_entry_is_not_there(tmp_path, change):
    path = stored(tmp_path)
    change(path)
    assert ObjectCache(tmp_path).get(KEY) is None
    ObjectCache(tmp_path).put(KEY, ENTRY)
    if not path.is_dir():
        assert ObjectCache(tmp_path).get(KEY) == ENTRY


def test_a_folder_that_goes_comes_back(tmp_path):
    cache = ObjectCache(tmp_path / "cache")
    cache.put(KEY, ENTRY)
    shutil.rmtree(tmp_path / "cache")
    assert ObjectCache(tmp_path / "cache").get(KEY) is None
    cache.put(OTHER, ENTRY)
    assert ObjectCache(tmp_path / "cache").get(OTHER) == ENTRY


def test_a_full_disk_and_twenty_writers(tmp_path):
    """Files cannot grow beyond 1000 bytes; then twenty processes compile the same at once."""
    out = run(f"""
        import resource, sys
        sys.dont_write_bytecode = True  # files of modules would be cut off
        from pullback.loops.emit.writer import finish_writing
        from pullback.util.switches import switches
        switches.cache_dir = {str(tmp_path)!r}
        f = lambda x: jnp.sin(x) @ x + 1
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        right = float(jax.jit(f)(jnp.ones(3)))
        finish_writing()
        print(sum(p.is_file() for p in __import__("pathlib").Path({str(tmp_path)!r}).rglob("*")))
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        jax.clear_caches()
        children = []
        for k in range(20):
            children.append(os.fork())
            if children[-1] == 0:
                good = all(float(jax.jit(lambda x: f(x) * n)(jnp.ones(3))) == right * n for n in (1, 2, 4))
                os._exit(0 if good else 1)
        print(sum(os.waitpid(child, 0)[1] for child in children))
        """)
    assert out == ["0", "0"]
    assert not list(tmp_path.rglob(".*"))


def test_any_file_of_the_package_changes_the_key(tmp_path):
    """Code depends on all of them: rules of lowering, tables of switches, the passes and their order."""
    copy = tmp_path / "pullback"
    shutil.copytree(Path(pullback.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    seen = {version_of(copy)}
    assert version_of(copy) in seen
    changed = [max(each.glob("*.py"), default=None) for each in [copy, *copy.rglob("*/")]]
    changed += [*copy.rglob("*.so"), copy / "compiler/pipelines.py"]
    for path in filter(None, changed):
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
        seen.add(version_of(copy))
        with path.open("ab") as file:
            file.write(b"\n")
        os.utime(path, ns=(0, 1))
        seen.add(version_of(copy))
    (copy / "lax" / "_new.py").touch()
    seen.add(version_of(copy))
    assert len(seen) == 2 + 2 * len([path for path in changed if path])


def test_facts_are_plain_data():
    from functools import partial

    from pullback.compiler.lower.host_function import HostFunction
    from pullback.util.pytree import tree_flatten

    values = (
        *(None, True, -3, 2**80, 1.5, float("inf"), 2 - 1j, "text", b"\0\xff", (1, (2,)), [3], {"a": 1, 2: ()}),
        *(frozenset({1}), np.dtype("complex64"), np.dtype(pullback.dtypes.bfloat16), registry["sin"]),
        GatherDimensionNumbers,
        partial(tree_flatten, is_leaf=None).func,
        GatherDimensionNumbers((0,), (1,), (1,)),
        HostFunction(tree_flatten, "x", (((2,), np.dtype("f4")),), ()),
    )  # fmt: skip
    assert decode(encode(values)) == values
    for array in (np.arange(6.0).reshape(2, 3).T, np.zeros((0, 2), np.int8), np.ones(3, pullback.dtypes.bfloat16)):
        (back,) = decode(encode((array,)))
        assert back.dtype == array.dtype and back.shape == array.shape and (back == array).all()
    for value in (lambda: 0, os.system, object(), pullback.jit(lambda x: x), np.array([None]), os.path.join):
        with pytest.raises(TypeError):
            encode((value,))
    raw = encode((np.ones(100), "text"))
    for bad in (b"", raw[:20], raw[:-1], b"\x80\x05" + raw, raw[:8] + b"[" * 5000, raw[:8] + b"{}"):
        with pytest.raises(ValueError, match="no plain value"):
            decode(bad)
    wrong = (
        '["name","os:system"]',
        '["name","pullback.loops.emit.folder:os"]',
        '["member","pullback.lax:sin","a"]',
        '["record","pullback.loops.emit.cache:ObjectCache",{}]',
        '["partial",["name","builtins:eval"],[],[]]',
    )
    for text in wrong:
        with pytest.raises(ValueError, match="no plain value"):
            decode(len(text).to_bytes(8, "little") + text.encode())
