"""Children of fork(), spawn and forkserver compute, whatever other threads of the parent do at that moment."""

from pathlib import Path

import pytest

import pullback

from .processes import run

WORK = """
def busy(k, stop):
    x = jnp.ones((300, 300))
    n = 0
    while not stop:
        n += 1
        c = k + n / 7
        jax.jit(lambda v: jnp.sin(v * c) + jnp.cumsum(v) @ v)(x[0])  # compiles
        (jnp.tanh(jnp.ones(300_000)) * c).sum(), x @ x, jnp.sort(x[n % 300])
        jax.grad(lambda v: (v * v * c).sum())(x[0]), jax.random.normal(jax.random.key(n), (1000,))
        jnp.add(np.ones(n % 50 + 1, np.float32), 1)

def child(k):
    import gc, warnings
    x = jnp.arange(1.0, 1001.0)
    f = jax.jit(lambda v: jnp.cos(v * (k + 0.25)).sum() + (v[:, None] * v).sum() * 1e-6)
    assert np.allclose(f(x), np.cos(np.asarray(x) * (k + 0.25)).sum() + 500500**2 * 1e-6, rtol=1e-3)
    assert shared(x).shape == (1000,)
    m = jnp.ones((300, 300))
    assert float((m @ m).sum()) == 300**3 and float(jax.jit(jnp.dot)(m, m)[3, 4]) == 300
    assert float(jnp.tanh(jnp.full(400_000, 9.0)).mean()) > 0.99
    assert float(jax.jit(lambda v: (v * v).sum())(jnp.ones(1 << 20))) == 1 << 20
    assert jnp.sort(-x)[0] == -1000 and jnp.argsort(-x)[0] == 999
    assert (x + x)[3] == 8 and jax.grad(lambda v: (v**3).sum())(x)[1] == 12
    assert jax.random.normal(jax.random.key(k), (5,)).shape == (5,)
    called = jax.jit(lambda v: jax.pure_callback(lambda a: a + 1, jax.ShapeDtypeStruct((3,), jnp.float32), v) * 2)
    assert called(jnp.ones(3)).tolist() == [4.0] * 3
    assert jax.pmap(lambda v: v + lax.psum(v, "i"), axis_name="i")(jnp.ones((2, 3)))[0, 0] == 3
    parts = []
    threads = [threading.Thread(target=lambda: parts.append(float(jax.jit(lambda v: v @ v)(x[:9])))) for _ in range(3)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert parts == [285.0] * 3 and gc.isenabled() and not any(f[0] == "error" for f in warnings.filters)
"""


def test_forks_under_load(tmp_path):
    """Each child compiles for itself, as locks, pools and LLVM's state are whole at the fork."""
    out = run(
        f"""
        os.environ["PULLBACK_CACHE_DIR"] = {str(tmp_path)!r}
        jax.config.update("jax_num_cpu_devices", 2)
        shared = jax.jit(lambda v: jnp.exp(-v) * 2)
        """
        + WORK.replace("\n", "\n        ")
        + """
        stop = []
        threads = [threading.Thread(target=busy, args=(k, stop), daemon=True) for k in range(2)]
        [t.start() for t in threads]
        failed = 0
        for k in range(14):
            time.sleep(0.002 * (k % 5))
            pid = os.fork()
            if pid == 0:
                faulthandler.dump_traceback_later(600, exit=True)
                try:
                    child(k)
                except BaseException:
                    import traceback
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            failed += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
        stop.append(1)
        [t.join() for t in threads]
        print(failed)
        """
    )
    assert out == ["0"]


def test_a_fork_waits_for_imports_of_other_threads(tmp_path):
    """The child would wait for the lock of the module for ever: the compiler is imported when it is wanted."""
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.4)\n")
    out = run(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        thread = threading.Thread(target=lambda: __import__("slow_module"))
        thread.start()
        time.sleep(0.1)
        pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(600, exit=True)
            import slow_module
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """)
    assert out == ["0"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(tmp_path, method):
    (tmp_path / "work.py").write_text(
        "import pullback as jax, pullback.numpy as jnp\n"
        "@jax.jit\n"
        "def f(x):\n    return jnp.sin(x) @ x\n"
        "def work(k):\n    return float(f(jnp.ones(k + 1))), jnp.ones(3) * k, jax.random.key(k)\n"
    )
    out = run(
        f"""
        if __name__ == "__main__":
            import multiprocessing, sys
            sys.path.insert(0, {str(tmp_path)!r})
            import work
            work.work(3)
            stop = threading.Event()
            def load():
                while not stop.is_set():
                    jnp.tanh(jnp.ones(200_000)) @ jnp.ones(200_000)
            thread = threading.Thread(target=load)
            thread.start()
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                found = pool.map(work.work, range(6))
            stop.set()
            thread.join()
            print(all(abs(v - (k + 1) * np.sin(1)) < 1e-5 and x.tolist() == [k] * 3 and key == jax.random.key(k)
                      for k, (v, x, key) in enumerate(found)))
        """
    )
    assert out == ["True"]


def test_a_lock_is_new_in_the_child_unless_its_own_thread_holds_it():
    out = run("""
        from pullback.util.locks import Lock
        other, own, taken = Lock(), Lock(), threading.Event()
        def hold():
            with other:
                taken.set()
                time.sleep(5)
        threading.Thread(target=hold, daemon=True).start()
        taken.wait()
        with own:
            pid = os.fork()
            if pid == 0:
                with other, own:
                    pass
        if pid == 0:
            with own:
                os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        os._exit(0)
        """)
    assert out == ["0"]


def test_what_threads_wait_for_is_new_in_the_child():
    out = run("""
        from pullback.util.locks import Condition
        changed, taken = Condition(), threading.Event()
        def hold():
            with changed:
                taken.set()
                time.sleep(5)
        threading.Thread(target=hold, daemon=True).start()
        taken.wait()
        pid = os.fork()
        if pid == 0:
            with changed:
                changed.notify_all()
                os._exit(int(changed.wait_for(lambda: False, 0.01)))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        os._exit(0)
        """)
    assert out == ["0"]


def test_all_locks_are_those_of_util_locks():
    root = Path(pullback.__file__).parent
    wrong = [
        path.name
        for path in root.rglob("*.py")
        if path.name != "locks.py"
        and any(f"threading.{kind}(" in path.read_text() for kind in ("Lock", "RLock", "Condition", "Semaphore"))
    ]
    assert wrong == []
