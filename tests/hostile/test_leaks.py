"""References and memory: long loops of eager and jitted calls leave the process as it was."""

import pytest

from .processes import run

LOOPS = {
    "jitted call": ("f = jax.jit(lambda x, d: x + d['k'])", "f(x, d)", 1_000_000),
    "operators": ("", "x + y", 1_000_000),
    "scalars": ("", "x * 2.5", 300_000),
    "indexing": ("", "x[1], x[1:], m.T", 300_000),
    "iteration": ("", "list(m)", 50_000),
    "references": ("", "jnp.sort(x)", 50_000),
    "errors": ("", "fails()", 20_000),
    "shapes": ("sizes = [np.ones(k + 1, np.float32) for k in range(50)]", "jnp.add(sizes[k % 50], 1)", 100_000),
    "gradients": ("g = jax.grad(lambda x: jnp.sum(x * x))", "g(x)", 20_000),
    "gradients of programs of many lengths": ("", "jax.grad(lambda v: repeated(v, k % 40))(x)", 4_000),
    "pushforwards and batches": ("f = lambda v: jnp.tanh(v) * 2", "jax.jvp(f, (x,), (y,)), jax.vmap(f)(m)", 20_000),
    "pullbacks": ("", "jax.vjp(lambda v: jnp.sin(v) * k, x)[1](y)", 10_000),
    "scans": ("", "scale = k % 7; jax.lax.scan(lambda c, v: (c + v * scale, c), x[0], x)", 3_000),
    "large arrays of many sizes": (
        "sizes = [jnp.ones(40_000 + 64 * k) for k in range(30)]; x = sizes[0][:5]",
        "sizes[k % 30] * 2.0",
        10_000,
    ),
    "views": ("", "np.asarray(x + 1)", 200_000),
    "results in tuples": ("f = jax.jit(lambda x: (x, {'a': x + 1}))", "f(x)", 200_000),
}


@pytest.mark.parametrize("name", LOOPS)
def test_nothing_is_left_behind(name):
    setup, call, count = LOOPS[name]
    out = run(
        f"""
        import gc
        def fails():
            try:
                x + jnp.ones(7)
            except TypeError:
                pass
        def repeated(v, n):
            for _ in range(n):
                v = v * 0.5 + 1
            return jnp.sum(v)
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        x, y, m, d = jnp.ones(5), jnp.ones(5), jnp.ones((3, 4)), {{"k": jnp.ones(5)}}
        {setup}
        def loop(n):
            for k in range(n):
                {call}
        loop({count} // 10)
        gc.collect()
        before, blocks, counts = resident(), sys.getallocatedblocks(), [sys.getrefcount(v) for v in (x, y, m, None)]
        loop({count})
        gc.collect()
        after = [sys.getrefcount(v) for v in (x, y, m, None)]
        print(resident() - before < 8 << 20, abs(sys.getallocatedblocks() - blocks) < 3000, after[:3] == counts[:3],
              abs(after[3] - counts[3]) < 1000, jax.local_devices()[0].memory_stats()["bytes_in_use"] < 8 << 20)
        """.replace("import gc", "import gc, sys")
    )
    assert out == ["True"] * 5
