"""What could end or hang the process: interruption, exit and forks with work in flight, too large arrays, threads."""

import pytest

from .processes import run

LOOPS = {
    "while": "lambda x: lax.while_loop(lambda c: c[0] < 2**30, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))",
    "scan": "lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=2**30)",
    "vectors": "lambda x: lax.fori_loop(0, 2**26, lambda i, c: jnp.sin(c), x + jnp.ones(100))",
    "traced bound": "lambda x: lax.fori_loop(0, (x * 2**29).astype(int), lambda i, c: jnp.sin(c), x)",
    "inside a scan": "lambda x: lax.scan(lambda c, _: (lax.fori_loop(0, 2**26, lambda i, d: jnp.sin(d), c), None), x,"
    " None, length=3)",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_ctrl_c_ends_a_compiled_loop(loop):
    out = run(f"""
        program = jax.jit({loop}).lower(1.0).compile()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        started = time.time()
        try:
            program(1.0)
        except KeyboardInterrupt:
            print("interrupted", time.time() - started < 10)
        print(jax.jit(lambda x: x + 1)(1))  # all goes on as before
        """)
    assert out == ["interrupted", "True", "2"]


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
    for expression in TOO_LARGE:
        out = run(f"""
            try:
                {expression}
            except (MemoryError, OverflowError):
                print("refused")
            """)
        assert out == ["refused"], expression


def test_threads_that_trace_and_call_the_same_functions():
    out = run("""
        f = jax.jit(lambda x, n: jnp.sin(x) * n + x.sum(), static_argnums=1)
        g = jax.grad(lambda x: (jnp.tanh(x) ** 2).sum())
        wrong = []

        def work(k):
            try:
                for i in range(15):
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

        threads = [threading.Thread(target=work, args=(k,)) for k in range(12)]
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
