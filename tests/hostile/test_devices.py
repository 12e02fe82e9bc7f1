"""Devices that run in parallel: Ctrl-C, forks, threads that call at once, an interpreter that ends meanwhile."""

import pytest
from tests.hostile.processes import run

LOOPS = {
    "without exchanges": "lambda x: lax.while_loop(lambda c: c > -1, jnp.sin, x)",
    "with exchanges": "lambda x: lax.while_loop(lambda c: c > -1, lambda c: lax.pmean(jnp.sin(c), 'i'), x)",
    "of one device, for which the others wait": (
        "lambda x: lax.psum(lax.while_loop(lambda c: (c > -1) & (lax.axis_index('i') == 1), jnp.sin, x), 'i')"
    ),
    "of the first device": (
        "lambda x: lax.psum(lax.while_loop(lambda c: (c > -1) & (lax.axis_index('i') == 0), jnp.sin, x), 'i')"
    ),
    "of one device, after which all is done": (
        "lambda x: lax.while_loop(lambda c: (c > -1) & (lax.axis_index('i') == 1), jnp.sin, x)"
    ),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_ctrl_c_ends_all_devices(loop):
    out = run(f"""
        jax.config.update("jax_num_cpu_devices", 3)
        x = np.ones(3, np.float32)
        program = jax.pmap({loop}, axis_name='i').lower(x).compile()
        work_after_ctrl_c(lambda: program(x), 0.2)  # the loops have no end
        print(*jax.pmap(lambda x: lax.psum(x, 'i'), axis_name='i')(x))  # all goes on as before
        """)
    assert out == ["3.0", "3.0", "3.0"]


def test_a_fork_has_devices_of_its_own():
    out = run("""
        jax.config.update("jax_num_cpu_devices", 4)
        f = jax.pmap(lambda x: lax.psum(jnp.sin(x) @ x.T, 'i'), axis_name='i')
        x = np.ones((4, 50, 50), np.float32)
        before = np.asarray(f(x))
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(f(x), before) else 1)
        print(os.waitpid(child, 0)[1], np.array_equal(f(x), before))
        """)
    assert out == ["0", "True"]


def test_many_threads_call_at_once():
    """Each call has devices of its own: more threads than cores, and calls inside of callbacks of calls."""
    out = run("""
        jax.config.update("jax_num_cpu_devices", 3)
        total = jax.pmap(lambda x: lax.fori_loop(0, 20, lambda _, c: lax.psum(c, 'i') / 3 + 1, x), axis_name='i')
        def host(x):
            return np.asarray(total(np.full(3, x)))[0]
        outer = jax.pmap(lambda x: lax.psum(jax.pure_callback(host, jax.ShapeDtypeStruct((), np.float32), x), 'i'), 'i')
        x = np.arange(3, dtype=np.float32)
        want = np.asarray(total(x)), np.asarray(outer(x))
        same = []
        def work():
            same.append(all(np.array_equal(total(x), want[0]) and np.array_equal(outer(x), want[1]) for _ in range(20)))
        threads = [threading.Thread(target=work) for _ in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(*want[0], *want[1], all(same), len(same))
        """)
    assert out == ["21.0", "21.0", "21.0", "63.0", "63.0", "63.0", "True", "6"]


def test_the_interpreter_ends_while_devices_run():
    out = run("""
        jax.config.update("jax_num_cpu_devices", 2)
        f = jax.pmap(lambda x: lax.while_loop(lambda c: c > -1, lambda c: lax.pmean(jnp.sin(c), 'i'), x), axis_name='i')
        threading.Thread(target=f, args=(np.ones(2, np.float32),), daemon=True).start()
        time.sleep(1.0)
        print("free")
        """)
    assert out == ["free"]
