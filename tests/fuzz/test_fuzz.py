"""Some random programs in every run of the tests; `python -m fuzz --seconds 3600` in tests/ runs as many as wanted."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from fuzz import passes
from fuzz.__main__ import attempt
from fuzz.library import using
from fuzz.oracle import LONG, NotSmooth, Oracle, wrap
from fuzz.program import FuzzProgram, Meaning, disagreement, disagreements, meaning
from pullback.loops.schedule import machine

PROGRAMS, CHUNK = 70, 10


@pytest.mark.sample(4)
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs(first):
    for seed in range(first, first + CHUNK):
        problem = attempt(seed, 2 + seed % 24)
        assert not problem, f"python -m fuzz --seed {seed}: {problem}"


# Programs found by `python -m fuzz --passes`; a pass that none of them reaches any more needs another program.
REACHING = ((13, 15), (23, 25), (39, 17), (63, 17), (125, 7), (20, 22), (205, 7))


def test_a_few_programs_reach_every_pass():
    reached = set().union(*(passes.reached(seed, moves) for seed, moves in REACHING))
    # Random programs have no derivatives in integers.
    gradient = pullback.grad(lambda x: jnp.sum(x * 2.0), allow_int=True)
    reached |= passes.changing(pullback.make_jaxpr(gradient)(np.arange(3)))
    # Nor that many operands, or so much to do for each of many rows.
    many = pullback.make_jaxpr(lambda *xs: jnp.concatenate(xs))(*np.ones((40, 5), "f4"))
    rows = pullback.make_jaxpr(lambda x: jnp.log(jnp.sum(x * x, 1)))(np.ones((300, 100), "f4"))
    # Nor places counted by rows, indices taken apart, products of batches with work on their results, or what does not
    # fit a cache.
    places = pullback.make_jaxpr(lambda x, i: jnp.sin(x).at[jnp.arange(40), i].add(1.0))(
        np.ones((40, 5)), np.zeros(40, int)
    )
    parts = pullback.make_jaxpr(lambda x: jnp.tile(x, (3, 5)) + 1.0)(np.ones((12, 12), "f4"))
    batch = pullback.make_jaxpr(lambda x, y: pullback.nn.softmax(x @ y) @ x)(*np.ones((2, 8, 64, 64), "f4"))
    large = pullback.make_jaxpr(jnp.add)(*[pullback.ShapeDtypeStruct((5_000_000,), jnp.float32)] * 2)
    # Nor arrays that are written in place.
    placed = pullback.make_jaxpr(lambda x: pullback.freeze(pullback.new_ref(x * 2.0)) + 1.0)(np.ones(3, "f4"))
    # Nor loops of which each element has steps of its own.
    steps = lambda x: pullback.lax.while_loop(lambda x: x > 1, lambda x: x * 0.5, x)
    halved = pullback.make_jaxpr(pullback.vmap(steps))(np.ones(800, "f4"))
    # Nor so many updates of unknown places.
    scatter = pullback.make_jaxpr(lambda x, i: x.at[i].add(1.0))(np.ones(9), np.zeros(100, int))
    # Nor so often the same.
    turns = lambda x: [x := jnp.sin(jnp.cumsum(x, 0)) * jnp.exp(-x * x) for _ in range(6)]
    layers = pullback.make_jaxpr(turns)(np.ones((50, 60), "f4"))
    # Nor loops that leave much for their derivatives.
    loop = lambda x: pullback.lax.scan(lambda c, _: (jnp.sin(c) / (1 + c * c), None), x, None, length=9)[0].sum()
    left = pullback.make_jaxpr(pullback.grad(loop))(np.ones(40_000, "f4"))
    # Nor numbers of 16 bits that are only moved.
    moved = pullback.make_jaxpr(lambda x: x.T)(np.ones((30, 40), "f2"))
    # Nor rolls in two directions at once.
    rolled = pullback.make_jaxpr(lambda x: jnp.roll(x, (1, 1), (0, 1)) + jnp.roll(x, 1, 0))(np.ones((30, 40), "f4"))
    # Nor places that follow from indices, in loops whose steps wait for each other; nor rolls by what is computed.
    x = np.ones(30, "f4")
    step = lambda i: lambda c, k: (jnp.where(i - 1 > k, jnp.sin(c) + c.sum(), c), None)
    counted = pullback.make_jaxpr(lambda x: pullback.lax.scan(step(jnp.arange(30)), x, jnp.arange(90))[0])(x)
    turned = pullback.make_jaxpr(lambda x, k: jnp.roll(x, k))(x, 3)
    # Nor bits that are moved one by one, nor most of an argument that is set.
    bit = lambda x: sum(((x >> k) & 1) << (7 - k) for k in range(8))
    bits = pullback.make_jaxpr(bit)(np.ones(30, "u1"))
    inside = pullback.make_jaxpr(lambda x: x.at[1:].add(1.0))(np.ones(30, "f4"))
    # Nor what takes long to compute, of constants alone.
    known = pullback.make_jaxpr(lambda x: x * jnp.cos(jnp.arange(30.0)))(np.ones(30, "f4"))
    # Nor folds over the steps of a loop that waits for itself.
    chain = lambda x: pullback.lax.scan(lambda c, row: (jnp.sin(c) + row, c), x[0], x)[1].max(0)
    folded = pullback.make_jaxpr(chain)(np.ones((90, 30), "f4"))
    # Nor loops over what is reversed.
    backwards = lambda x: pullback.lax.scan(lambda c, row: (jnp.sin(c) + row, c), x[0], x[::-1])[1]
    reversed_ = pullback.make_jaxpr(backwards)(np.ones((90, 30), "f4"))
    # Nor loops whose steps read what those before them set.
    follow = lambda x: pullback.lax.fori_loop(1, 90, lambda i, y: y.at[i].set(y[i - 1] * 0.5 + x[i]), x)
    recurrence = pullback.make_jaxpr(follow)(np.ones(90, "f4"))
    # Nor stacks of what shares its work.
    turn = lambda _, v: jnp.stack([jnp.sin(v[0] * v[1]) + v[2], jnp.sin(v[0] * v[1]) * v[2], v[0]])
    stacked = pullback.make_jaxpr(lambda v: pullback.lax.fori_loop(0, 10, turn, v))(np.ones((3, 2000), "f4"))
    several = (
        stacked,
        recurrence,
        folded,
        reversed_,
        many,
        rows,
        places,
        parts,
        batch,
        large,
        placed,
        halved,
        scatter,
        layers,
        left,
        moved,
        rolled,
    )
    for program in (*several, counted, turned, bits, inside, known):
        reached |= passes.changing(program)
    # Nor lookups, on a machine that is slow to gather.
    chosen = pullback.make_jaxpr(lambda x, i: x[:, i] * 2)(np.ones((300, 400), "f4"), np.arange(400, dtype="i4"))
    with machine.using(machine.ZEN4_SERVER):
        reached |= passes.changing(chosen)
    # Those that change only programs of several processes have tests of their own (loops/schedule/test_overlap.py).
    assert passes.names() - reached == {"overlap"}


def test_disagreements_are_seen():
    one = np.linspace(1, 2, 5, dtype=np.float32)
    wide = one.astype(LONG)
    assert not disagreement(one, wide, False, 0.0)
    assert disagreement(one * np.float32(1.0001), wide, False, 0.0)
    assert not disagreement(one * np.float32(1.0001), wide, False, 1e-5)
    assert disagreement(np.nextafter(one, np.float32(9)), wide, True, 0.0)
    assert disagreement(one[:4], wide, False, 0.0)
    assert disagreement(np.array([1, 2]), np.array([1, 3]), True, 0.0)
    assert disagreement(np.array([1, 2], np.int16), np.array([1, 2]), True, 0.0)
    assert disagreements([one], Meaning([wide, wide], [False, False], [0.0, 0.0]))


def test_a_wrong_result_of_a_program_is_seen():
    program = FuzzProgram(3, 5)
    want = meaning(program, program.inputs())
    good = [v.astype(np.float32) if v.dtype.kind == "f" else v for v in want.values]
    assert not disagreements(good, want)
    for k, value in enumerate(good):
        if value.size:
            bad = value.copy()
            bad.reshape(-1)[-1] = 77
            assert disagreements([*good[:k], bad, *good[k + 1 :]], want)


def test_the_oracle_differentiates():
    oracle = Oracle(LONG)
    x = wrap(np.linspace(-1, 1.3, 6).astype(LONG))
    with using(oracle):
        slope = oracle.grad(lambda a: np.sum(np.sin(a) * a))(x)
        np.testing.assert_allclose(slope, np.cos(x) * x + np.sin(x), rtol=1e-12)
        # The gradient of a gradient, along ones.
        found = oracle.jvp(oracle.grad(lambda a: np.sum(np.exp(a) * a**2)), (x,), (np.ones(6, LONG),))[1]
        np.testing.assert_allclose(found, np.exp(x) * (x**2 + 4 * x + 2), rtol=1e-8)
        with pytest.raises(NotSmooth):
            oracle.grad(lambda a: np.sum(np.abs(a - x[2])))(x)


def test_the_oracle_draws_the_words_of_threefry():
    # From the known answers of Random123's kat_vectors, for a counter and a key of zeros.
    from fuzz.oracle import _bits

    assert int(_bits((np.uint32(0), np.uint32(0)), (1,), np.uint32)[0]) == 0x6B200159 ^ 0x99BA4EFE
