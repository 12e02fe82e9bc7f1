"""What could end or hang the process: interruption, exit and forks with work in flight, too large arrays, threads."""

import pytest

from .processes import run

LOOPS = {
    "while": "lambda x: lax.while_loop(lambda c: c[0] < 2**30, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))",
    "scan": "lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=2**30)",
    "vectors": "lambda x: lax.fori_loop(0, 2**26, lambda i, c: jnp.sin(c), x + jnp.ones(100))",
    "elements apart": "lambda x: lax.fori_loop(0, 1_500_000, lambda i, c: jax.scipy.special.gammainc(c + 1.5, 2.0),"
    " x + jnp.ones(64))",
    "traced bound": "lambda x: lax.fori_loop(0, (x * 2**29).astype(int), lambda i, c: jnp.sin(c), x)",
    "inside a scan": "lambda x: lax.scan(lambda c, _: (lax.fori_loop(0, 2**26, lambda i, d: jnp.sin(d), c), None), x,"
    " None, length=3)",
    "large bodies": "lambda x: lax.fori_loop(0, 2**20, lambda i, c: jnp.tanh(jnp.sin(c)), x + jnp.ones(2_000_000))",
    "products": "lambda x: lax.fori_loop(0, 2**20, lambda i, c: c @ c * 1e-3, x + jnp.ones((1000, 1000)))",
    "one nest": "lambda x: (jnp.sin(jnp.arange(100_000.0)[:, None] + jnp.arange(100_000.0) * x) ** 2.5).sum()",
    "samples": "lambda x: jax.random.normal(jax.random.key(0), (2**30,)).sum() * x",
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_ctrl_c_ends_a_compiled_loop(loop):
    """With little work after it, by the least of some tries, and again and again."""
    out = run(f"""
        program = jax.jit({loop}).lower(1.0).compile()
        enough, worked = 0.2 * jax.get_num_threads(), []
        while len(worked) < 3 or min(worked) > enough and len(worked) < 20:
            worked.append(work_after_ctrl_c(lambda: program(1.0), 0.3))
        print(min(worked) < enough or worked)
        print(jax.jit(lambda x: x + 1)(1))  # all goes on as before
        print(np.allclose(jax.jit(lambda x: jnp.tanh(x) @ x)(jnp.ones((300, 300))), 300 * np.tanh(1)))
        """)
    assert out == ["True", "2", "True"]


def test_ctrl_c_ends_eager_work_on_large_arrays():
    out = run("""
        x = jnp.ones(3_000_000)
        for _ in range(3):
            jnp.tanh(x)
        big = jnp.ones(2**28)
        whole, worked = work_of(lambda: jnp.tanh(big)), []
        while len(worked) < 2 or min(worked) > 0.3 * whole and len(worked) < 20:
            worked.append(work_after_ctrl_c(lambda: jnp.tanh(big), 0.3 * whole))
        print(min(worked) < 0.3 * whole or (whole, worked))
        print(float(jnp.tanh(x)[-1]) == float(jnp.tanh(x)[0]))
        """)
    assert out == ["True", "True"]


def test_a_signal_handler_that_does_not_raise_lets_the_loop_go_on():
    out = run("""
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        program = jax.jit(lambda x: lax.fori_loop(0, 2**25, lambda i, c: c * 0.5 + 1, x)).lower(0.0).compile()
        sender = threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT))
        sender.start()
        value = float(program(0.0))
        sender.join()
        print(value, len(seen))
        """)
    assert out == ["2.0", "1"]


def test_a_loop_lets_other_threads_run():
    out = run("""
        program = jax.jit(lambda x: lax.fori_loop(0, 2**28, lambda i, c: jnp.sin(c), x)).lower(1.0).compile()
        threading.Thread(target=program, args=(1.0,), daemon=True).start()
        time.sleep(0.2)
        print("free")  # and the interpreter ends while the loop runs
        """)
    assert out == ["free"]


def test_a_fork_computes():
    out = run("""
        f = jax.jit(lambda x: (x @ x).sum() + jnp.sin(x).sum())
        x = jnp.ones((300, 300))
        before = float(f(x))
        child = os.fork()
        if child == 0:
            os._exit(0 if float(f(x)) == before and float(jax.jit(lambda x: (x * 3).sum())(x)) == 270000 else 1)
        print(os.waitpid(child, 0)[1], float(f(x)) == before)
        """)
    assert out == ["0", "True"]


TOO_LARGE = [
    "jnp.zeros(2**45)",
    "jnp.ones((2**31, 2**30))",
    "jnp.zeros(2**63)",
    "jnp.arange(2**45)",
    "jax.jit(lambda x: jnp.broadcast_to(x, (2**45, 3)) + 1)(jnp.ones(3))",
    "jax.jit(lambda x: jnp.sort(jnp.broadcast_to(x, (2**45,)))[0])(1.0)",
    "jax.jit(lambda x: jnp.broadcast_to(x, (2**32, 2**32, 2**4)))(1.0)",
    "jnp.outer(jnp.ones(2**22), jnp.ones(2**22))",
    "lax.scan(lambda c, x: (c, jnp.ones(2**22)), 0.0, None, length=2**22)",
    "jax.random.bits(jax.random.key(0), (2**45,))",
]


def test_arrays_that_no_memory_holds():
    out = run(f"""
        for expression in {TOO_LARGE!r}:
            try:
                exec(expression)
                print("accepted", expression)
            except (MemoryError, OverflowError):
                print("refused")
        """)
    assert out == ["refused"] * len(TOO_LARGE)


def test_threads_that_trace_and_call_the_same_functions():
    out = run("""
        f = jax.jit(lambda x, n: jnp.sin(x) * n + x.sum(), static_argnums=1)
        g = jax.grad(lambda x: (jnp.tanh(x) ** 2).sum())
        wrong = []

        def work(k):
            try:
                for i in range(8):
                    n = (i * 7 + k) % 12
                    x = np.arange(1.0, 2.0 + n, dtype=np.float32)
                    t = np.tanh(x)
                    if not np.allclose(f(x, n), np.sin(x) * n + x.sum(), rtol=1e-5):
                        wrong.append(("f", k, i))
                    if not np.allclose(g(x), 2 * t * (1 - t * t), atol=1e-5):
                        wrong.append(("g", k, i))
                    if not np.allclose(jax.vmap(jax.jit(lambda v: v * k))(x), x * k):
                        wrong.append(("vmap", k, i))
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(len(wrong), *wrong[:2])
        """)
    assert out == ["0"]


@pytest.mark.parametrize("index", [2**30, -(2**30), 10**5])
def test_promised_indices_that_are_not_in_bounds_touch_no_other_memory(index):
    run(f"""
        x, i = jnp.ones((4, 5)), {index}
        for f in (
            lambda x, i: x.at[i].get(mode="promise_in_bounds"),
            lambda x, i: x.at[i].set(7, mode="promise_in_bounds"),
            lambda x, i: x.at[i, i].mul(7, mode="promise_in_bounds"),
            lambda x, i: jnp.take_along_axis(x, jnp.full((1, 5), i), 0, mode="promise_in_bounds"),
            jax.grad(lambda x, i: x.at[i].get(mode="promise_in_bounds").sum()),
            lambda x, i: lax.scan(lambda c, j: (c.at[j].add(1.0, mode="promise_in_bounds"), c[j]), x, i[None]),
        ):
            jax.block_until_ready(jax.jit(f)(x, jnp.asarray(i)))
        """)


def test_subinterpreters_are_refused_with_a_message():
    out = run("""
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        code = "try:\\n    import pullback\\nexcept ImportError as e:\\n    print('interpreter' in str(e), flush=True)"
        number = interpreters.create()
        interpreters.run_string(number, code)
        print(jax.jit(lambda x: x + 1)(1))
        """)
    assert out == ["True", "2"]


def test_callbacks_may_call_what_called_them():
    out = run("""
        depth = []
        @jax.jit
        def f(x):
            return jax.pure_callback(again, jax.ShapeDtypeStruct((), jnp.float32), x) + 1
        def again(x):
            depth.append(1)
            value = jnp.asarray(x)
            return np.asarray(f(value - 1) if value > 0 else value + jnp.sum(jnp.ones(3)), np.float32)
        print(float(f(jnp.float32(4))), len(depth))
        """)
    assert out == ["8.0", "5"]


def test_exceptions_leave_everything_usable():
    out = run("""
        class Bad:
            def __hash__(self): raise MemoryError("hash")
            def __eq__(self, other): raise ZeroDivisionError
        f = jax.jit(lambda x, s: x, static_argnums=1)
        seen = []
        x = jnp.ones(3)
        for use in (lambda: f(1, Bad()), lambda: x + jnp.ones(4), lambda: x[Bad()],
                    lambda: jax.grad(lambda x: x / [])(1.0), lambda: jnp.sum(Bad()), lambda: jnp.reshape(x, 4)):
            for _ in range(3):
                try:
                    use()
                except Exception as error:
                    seen.append(type(error).__name__)
        print(len(seen), float(jnp.ones(3).sum()))
        """)
    assert out == ["18", "3.0"]


def test_the_interpreter_ends_while_eager_work_runs_in_threads():
    out = run("""
        x = jnp.ones(100_000)
        def work():
            while True:
                jnp.tanh(x) + x * 2
                x[1:5] + 1
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
        print("ends")
        """)
    assert out == ["ends"]


def test_memory_lives_as_long_as_a_view_of_it():
    out = run("""
        import gc
        views = [np.asarray(jnp.arange(1000.0) + k) for k in range(50)]
        capsules = [np.from_dlpack(jnp.arange(1000.0) * k) for k in range(50)]
        parts = [(jnp.ones((2, 5000)) * k)[1] for k in range(50)]
        gc.collect()
        noise = [jnp.full(1000, -1.0) for _ in range(200)]
        print(all((v == np.arange(1000) + k).all() for k, v in enumerate(views)),
              all((v == np.arange(1000.0, dtype=np.float32) * k).all() for k, v in enumerate(capsules)),
              all(float(p[3]) == k for k, p in enumerate(parts)))
        """)
    assert out == ["True"] * 3


def test_a_fork_keeps_eager_work_going():
    out = run("""
        x = jnp.ones(5)
        for _ in range(3): x + x
        child = os.fork()
        if child == 0:
            good = (x + x).tolist() == [2.0] * 5 and float(jnp.tanh(jnp.ones(200_000)).sum()) > 0
            os._exit(0 if good and x[1:].tolist() == [1.0] * 4 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x + x).tolist() == [2.0] * 5)
        """)
    assert out == ["0", "True"]


def test_threads_that_call_python_sleep_once_the_interpreter_ends():
    """They do not take a core from what finalization still does."""
    out = run("""
        import builtins
        def called(x, sleep=time.sleep):
            sleep(0.05)  # where the interpreter's end finds it
            return x
        f = jax.jit(lambda x: jax.pure_callback(called, jax.ShapeDtypeStruct((), jnp.float32), x) + 1)
        x = jnp.float32(1)
        f(x)

        def work():
            while True:
                f(x)

        class Last:  # deleted after the interpreter has stopped to give the GIL to others
            def __del__(self, sleep=time.sleep, process_time=time.process_time, write=os.write):
                sleep(0.2)
                before = process_time()
                sleep(0.5)
                write(1, b"asleep" if process_time() - before < 0.1 else b"awake")

        builtins.last = Last()
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
        """)
    assert out == ["asleep"]


def test_eager_functions_leave_the_warnings_of_other_threads_alone():
    """Functions are traced so that what warns is not remembered; the filters of `warnings` belong to all threads."""
    out = run("""
        import warnings
        warnings.simplefilter("ignore")
        ends, raised = [], []
        def warns():
            while not ends:
                try:
                    warnings.warn("of the user's")
                except UserWarning as error:
                    raised.append(error)
        thread = threading.Thread(target=warns)
        thread.start()
        for k in range(1, 40):
            for _ in range(3):
                jnp.linspace(0.0, 1.0, k + 1), jnp.tile(jnp.ones(k), 2), jnp.median(jnp.ones((k, 3)))
        ends.append(1)
        thread.join()
        print(len(raised), len(warnings.filters) < 20)
        """)
    assert out == ["0", "True"]
