"""The thread that writes the code cache: order, forks, ends of processes."""

import os
import subprocess
import sys
import threading
import time

import pytest
from patience import PATIENCE

from pullback.loops.emit import folder, writer
from pullback.loops.emit.cache import Entry, ObjectCache
from pullback.loops.emit.writer import finish_writing, write_later

KEY = "ab" + "0" * 62
ENTRY = Entry(b"code", (), 0)


def test_who_stores_does_not_wait_and_jobs_keep_their_order():
    go, done = threading.Event(), []
    write_later(go.wait)
    for k in range(5):
        write_later(lambda k=k: done.append(k))
    assert done == []
    go.set()
    finish_writing()
    assert done == [0, 1, 2, 3, 4]


def test_a_folder_that_others_may_write_is_refused_at_once(tmp_path):
    tmp_path.chmod(0o777)
    folder._said.clear()
    with pytest.warns(RuntimeWarning, match="may be written by other users"):
        ObjectCache(tmp_path).put(KEY, ENTRY, later=True)
    finish_writing()
    assert not list(tmp_path.iterdir())


def test_a_job_that_fails_does_not_stop_the_others():
    done = []
    write_later(lambda: 1 / 0)
    write_later(lambda: done.append(1))
    finish_writing()
    assert done == [1]


def test_the_thread_ends_when_there_is_nothing_to_do_and_another_one_follows(monkeypatch):
    monkeypatch.setattr(writer, "IDLE", 0.001)
    for _ in range(20):
        done = threading.Event()
        write_later(done.set)
        finish_writing()
        assert done.is_set()
        time.sleep(0.002)
    finish_writing()
    thread = writer._thread
    if thread is not None:
        thread.join(PATIENCE)
    assert writer._thread is None


def test_a_process_that_ends_has_written_all(tmp_path):
    lines = ["import sys", "from pullback.loops.emit.cache import Entry, ObjectCache", "from pathlib import Path",
             "ObjectCache(Path(sys.argv[1])).put(sys.argv[2], Entry(b'code', (), 0), later=True)"]  # fmt: skip
    subprocess.run([sys.executable, "-c", "\n".join(lines), str(tmp_path), KEY], check=True, timeout=PATIENCE)
    assert ObjectCache(tmp_path).get(KEY) == ENTRY


def test_where_no_thread_can_begin_all_is_written_at_once(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    finish_writing()
    if (thread := writer._thread) is not None:  # which has nothing to do, and ends
        thread.join(PATIENCE)
    monkeypatch.setattr(threading.Thread, "start", start)
    done = []
    write_later(lambda: done.append(1))
    assert done == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_writes_at_once(tmp_path):
    go = threading.Event()
    write_later(go.wait)  # the parent's thread is busy, and not in the child
    cache = ObjectCache.__new__(ObjectCache)
    child = os.fork()
    if child == 0:
        cache.__init__(tmp_path)
        cache.put(KEY, ENTRY, later=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    go.set()
    assert ObjectCache(tmp_path).get(KEY) == ENTRY
