"""The cache of object code: found again, and harmless when damaged, shared or full."""

import threading

import numpy as np
import pytest

from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.pipelines import optimize_loops
from pullback.loops.emit.cache import Entry, ObjectCache
from pullback.loops.emit.jit import compile_function
from pullback.loops.emit.writer import finish_writing
from pullback.loops.ir import Builder


def scale(factor, n=100, name="x"):
    b = Builder()
    x, y = b.input(name, "f32", n), b.output("y", "f32", n)
    with b.loop(n, "vector", name="j" if name == "x" else "k") as i:
        b.store(y, i, b.load(x, i) * factor)
    return b.function(f"scale_{name}")


def run(code, n=100):
    out = np.zeros(n, np.float32)
    assert code([np.arange(n, dtype=np.float32)], [out]) == 0
    return out


def files(folder):
    finish_writing()
    return [path for path in folder.rglob("*") if path.is_file()]


def test_equal_programs_are_found_whatever_their_names(tmp_path):
    cache = ObjectCache(tmp_path)
    first = compile_function(scale(2.0), cache=cache)
    finish_writing()
    again = compile_function(scale(2.0, name="other"), cache=ObjectCache(tmp_path))
    different = compile_function(scale(3.0), cache=cache)
    assert (first.cached, again.cached, different.cached) == (False, True, False)
    assert len(files(tmp_path)) == 2
    assert (run(again) == 2 * np.arange(100)).all() and (run(different) == 3 * np.arange(100)).all()
    assert "fmul" in again.llvm


@pytest.mark.parametrize("damage", [lambda raw: b"", lambda raw: raw[:-7], lambda raw: raw[:60] + b"?" + raw[61:],
                                    lambda raw: b"x" * len(raw), lambda raw: raw + b"more"])  # fmt: skip
def test_damaged_files_are_compiled_anew(tmp_path, damage):
    compile_function(scale(2.0), cache=ObjectCache(tmp_path))
    (path,) = files(tmp_path)
    intact = path.read_bytes()
    path.write_bytes(damage(intact))
    code = compile_function(scale(2.0), cache=ObjectCache(tmp_path))
    assert not code.cached and (run(code) == 2 * np.arange(100)).all()
    assert files(tmp_path) == [path] and path.read_bytes() == intact


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = compile_function(scale(2.0), cache=ObjectCache(blocked))
    assert (run(code) == 2 * np.arange(100)).all()


def test_concurrent_writers(tmp_path):
    errors = []

    def work(k):
        try:
            for _ in range(3):
                code = compile_function(scale(float(k % 3)), cache=ObjectCache(tmp_path))
                assert (run(code) == (k % 3) * np.arange(100)).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(files(tmp_path)) == 3


def test_the_least_recently_used_go_when_the_folder_is_full(tmp_path):
    cache = ObjectCache(tmp_path, limit=20_000)
    for k in range(40):
        cache.put(f"{k:064x}", Entry(bytes(1000), (), 0))
        cache._evict()
    kept = sum(path.stat().st_size for path in files(tmp_path))
    assert 5_000 <= kept <= 20_000
    cache = ObjectCache(tmp_path)
    assert cache.get(f"{39:064x}") is not None and cache.get(f"{0:064x}") is None


def test_a_full_folder_is_noticed_by_the_next_process(tmp_path):
    """By what it writes first, though that looks at one of the folders inside alone."""
    names = [f"{k % 16:02x}{k:062x}" for k in range(400)]
    before = ObjectCache(tmp_path)
    for name in names:
        before.put(name, Entry(bytes(1000), (), 0))
    ObjectCache(tmp_path, limit=40_000_000).put(f"{0:02x}{400:062x}", Entry(bytes(1000), (), 0))
    assert len(files(tmp_path)) == 401
    ObjectCache(tmp_path, limit=100_000).put(f"{1:02x}{401:062x}", Entry(bytes(1000), (), 0))
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 100_000


def test_the_folder_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "there"))
    compile_function(scale(2.0), cache=ObjectCache())
    assert files(tmp_path / "there")


def test_programs_found_need_no_passes(tmp_path):
    runs = []

    def optimize(function):
        runs.append(function.name)
        function = optimize_loops(function)
        return function, *plan_arena(function)

    def program(name):
        b = Builder()
        big = b.constant(f"big_{name}", np.arange(5000, dtype=np.float32))
        x, y, t = b.input("x", "f32", 100), b.output("y", "f32", 100), b.temporary("t", "f32", 100)
        with b.loop(100, name=name) as i:
            b.store(t, i, b.load(x, i) + b.load(big, i * 10))
        with b.loop(100, name=name) as i:
            b.store(y, i, b.load(t, 99 - i))
        return b.function(name)

    want = (np.arange(100) * 11)[::-1]
    for cache in (ObjectCache(tmp_path), ObjectCache(tmp_path)):
        for name in ("first", "second"):
            code = compile_function(program(name), optimize=optimize, cache=cache)
            assert code.arena_bytes >= 400 and (run(code) == want).all()
        finish_writing()
    assert runs == ["first"]
    assert "define i32 @pb_main" in code.llvm
