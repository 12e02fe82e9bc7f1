"""The processes that evaluate programs by one library each, and what the other library has answered before."""

from __future__ import annotations

import hashlib
import os
import pickle
import sqlite3
import subprocess
import threading
import time
import zlib
from pathlib import Path

from fuzz.worker import SECONDS, Outcome, Raised, Task, plain, receive, rich, send

ROOT = Path(__file__).resolve().parent.parent
RESTART = 500  # programs after which a peer is started anew, as what it has compiled stays in memory


def _composers() -> bytes:
    """A digest of the files that say what a composed program is."""
    files = (ROOT / "tests" / "fuzz" / f"{name}.py" for name in ("program", "moves", "control", "reach"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).digest()


def timed_out(outcome: Outcome) -> bool:
    return isinstance(outcome, Raised) and outcome.names[0] == "TimeoutError"


class Answers:
    """What a peer has answered, kept in a file: a later run asks it only what is new."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file, self.lock = sqlite3.connect(path, check_same_thread=False), threading.Lock()
        self.file.execute("create table if not exists answers (key blob primary key, outcome blob) without rowid")

    def get(self, key: bytes) -> Outcome | None:
        with self.lock:
            row = self.file.execute("select outcome from answers where key = ?", (key,)).fetchone()
        return None if row is None else rich(pickle.loads(zlib.decompress(row[0])))

    def put(self, found: dict[bytes, Outcome]) -> None:
        rows = [(k, zlib.compress(pickle.dumps(plain(o), 5), 1)) for k, o in found.items()]
        with self.lock, self.file:
            self.file.executemany("insert or replace into answers values (?, ?)", rows)


class Worker:
    """A process that evaluates programs by one library."""

    def __init__(self, python: str, library: str, x64: bool, cache: str, answers: Answers | None = None) -> None:
        self.command = [python, str(ROOT / "tests" / "fuzz" / "worker.py"), library, str(int(x64))]
        self.asked = (python, x64, _composers())  # what an answer depends on besides the task
        self.environment = {
            **os.environ, "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
        }  # fmt: skip
        self.answers, self.lock, self.served = answers, threading.Lock(), 0
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment
        )

    def ask(self, tasks: list[Task]) -> list[Outcome]:
        """The outcomes of tasks; a task that ends the process is reported as raising `Crash`."""
        with self.lock:
            if self.answers is None:
                return self.evaluate(tasks)
            keys = [hashlib.sha256(pickle.dumps((self.asked, plain(t)), 5)).digest() for t in tasks]
            known = {k: o for k in keys if (o := self.answers.get(k)) is not None and not timed_out(o)}
            new = {k: t for k, t in zip(keys, tasks) if k not in known}
            found = dict(zip(new, self.evaluate(list(new.values()))))
            self.answers.put({k: o for k, o in found.items() if not timed_out(o)})  # it may have been a stall
            known |= found
            return [known[k] for k in keys]

    def evaluate(self, tasks: list[Task]) -> list[Outcome]:
        self.served += len(tasks)
        if self.answers is not None and self.served > RESTART:
            self.stop()
            self.served = 0
        answer = self.exchange(tasks)
        if answer is not None:
            return answer
        found: list[Outcome] = []
        for task in tasks:
            started = time.monotonic()
            one = self.exchange([task])
            late = time.monotonic() - started >= SECONDS
            lost = Raised(("TimeoutError",) if late else ("Crash",), "the process ended")
            found.append(lost if one is None else one[0])
        return found

    def exchange(self, tasks: list[Task]) -> list[Outcome] | None:
        if not tasks:
            return []
        if self.process is None:
            self.start()
        assert self.process is not None
        try:
            send(self.process.stdin, tasks)  # type: ignore[arg-type]
            answer = receive(self.process.stdout)  # type: ignore[arg-type]
        except (BrokenPipeError, EOFError):
            answer = None
        if answer is None:
            self.stop()
        return answer

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None
