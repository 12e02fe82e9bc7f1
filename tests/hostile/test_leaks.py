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
    "gradients": ("g = jax.grad(lambda x: jnp.sum(x * x))", "g(x)", 4_000),
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
              abs(after[3] - counts[3]) < 1000, jax.local_devices()[0].memory_stats()["bytes_in_use"] < 1 << 20)
        """.replace("import gc", "import gc, sys")
    )
    assert out == ["True"] * 5
