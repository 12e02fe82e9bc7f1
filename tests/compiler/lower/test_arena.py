"""The plan of the arena: what lives at the same time is apart, what does not shares memory."""

from pullback.compiler.lower.arena import plan_arena
from pullback.loops.ir import Builder


def chain(b, x, y, temporaries):
    previous = x
    for t in [*temporaries, y]:
        with b.loop(x.size) as i:
            b.store(t, i, b.add(b.load(previous, i), b.const("f32", 1)))
        previous = t


def test_a_chain_needs_two_places():
    b = Builder()
    x, y = b.input("x", "f32", 100), b.output("y", "f32", 100)
    temporaries = [b.temporary("t", "f32", 100) for _ in range(6)]
    chain(b, x, y, temporaries)
    offsets, total = plan_arena(b.function("f"))
    assert total == 2 * 448
    assert all(offset % 64 == 0 for offset in offsets.values())


def test_what_a_loop_uses_and_what_is_inside_only():
    b = Builder()
    x, y = b.input("x", "f32", 16), b.output("y", "f32", 16)
    outer, first, second = (b.temporary(name, "f32", 16) for name in ("outer", "first", "second"))
    with b.loop(16) as i:
        b.store(outer, i, b.load(x, i))
    with b.loop(5, "sequential"):
        chain(b, outer, outer, [first, second])
    with b.loop(16) as i:
        b.store(y, i, b.load(outer, i))
    offsets, total = plan_arena(b.function("f"))
    assert len({offsets[outer], offsets[first], offsets[second]}) == 3
    assert total == 3 * 64


def test_iterations_that_run_at_once_share_nothing():
    b = Builder()
    x, y = b.input("x", "f32", 16), b.output("y", "f32", 16)
    temporaries = [b.temporary("t", "f32", 16) for _ in range(4)]
    with b.loop(5, "threads"):
        chain(b, x, y, temporaries)
    offsets, total = plan_arena(b.function("f"))
    assert len(set(offsets.values())) == 4
    assert total == 4 * 64


def test_iterations_of_a_parallel_loop_share_nothing():
    """Others of them may run meanwhile, or a part of this one before a part of that one."""
    for role, places in (("parallel", 2), ("sequential", 1)):
        b = Builder()
        x, y = b.input("x", "f32", 64), b.output("y", "f32", 64)
        first, second = b.temporary("first", "f32", 64), b.temporary("second", "f32", 64)
        with b.loop(8, role) as i:
            with b.loop(8) as j:
                b.store(first, i * 8 + j, b.load(x, i * 8 + j))
            with b.loop(8) as j:
                b.store(y, i * 8 + j, b.load(first, i * 8 + j))
            with b.loop(8) as j:
                b.store(second, i * 8 + j, b.load(x, i * 8 + j))
            with b.loop(8) as j:
                b.store(y, i * 8 + j, b.load(second, i * 8 + j))
        offsets, _ = plan_arena(b.function("f"))
        assert len({offsets[first], offsets[second]}) == places, role
