"""Random programs of elementwise operations, movement, reductions, products and updates, against their references."""

import numpy as np
import pytest
from lowering_checks import check, lax, normal, spread

import pullback

F = np.float32
N, M = 6, 5


def random_program(seed, carry=False):
    rng = np.random.default_rng(seed)

    def pick(values, shape):
        found = [v for v in values if v.shape == shape]
        return found[rng.integers(len(found))] if found else None

    def tame(x):
        return lax.tanh(lax.mul(x, F(0.5)))

    def fun(a, b, v, w):
        values = [a, b, v, w]
        for _ in range(int(rng.integers(4, 22))):
            kind = rng.integers(13)
            x = values[rng.integers(len(values))]
            y = pick(values, x.shape)
            if kind == 0:
                new = tame(lax.add(x, y))
            elif kind == 1:
                new = lax.mul(tame(x), y)
            elif kind == 2:
                new = lax.sin(x)
            elif kind == 3 and x.ndim == 2:
                new = lax.reduce_sum_p.bind(x, axes=(int(rng.integers(2)),))
            elif kind == 4 and x.ndim:
                new = lax.reduce_max_p.bind(x, axes=tuple(range(x.ndim)))
            elif kind == 5 and x.ndim == 1:
                shape = (N, M) if x.shape == (M,) and rng.integers(2) else (x.shape[0], M)
                new = spread(x, shape, (1,) if shape == (N, M) and x.shape == (M,) else (0,))
            elif kind == 6 and x.ndim == 2:
                new = lax.transpose(x, (1, 0))
            elif kind == 7 and x.ndim:
                new = lax.rev(x, (0,))
            elif kind == 8 and x.ndim:
                new = lax.reshape(x, (x.size,) if x.ndim == 2 else (x.shape[0], 1))
            elif kind == 9 and x.ndim == 2:
                new = tame(lax.dot(x, lax.transpose(y, (1, 0))))
            elif kind == 10 and x.ndim:
                new = lax.concatenate([lax.slice_in_dim(x, 1, x.shape[0]), lax.slice_in_dim(y, 0, 1)], 0)
            elif kind == 11 and x.ndim == 1:
                at = lax.convert_element_type(lax.clamp(F(-3), x[0], F(9)), np.int32)
                new = lax.dynamic_update_slice(x, lax.slice_in_dim(y, 0, 1), (at,))
            elif kind == 12 and x.ndim == 0:
                new = lax.add(lax.exp(tame(x)), y)
            else:
                new = lax.neg(x)
            values.append(new)
        if carry:  # anything of the right shapes, arguments in other places included
            return [pick(values, shape) for shape in ((N, M), (N, M), (M,), (N,))] + [values[-1]]
        count = int(rng.integers(1, 6))
        return [values[-1], *(values[i] for i in rng.integers(0, len(values), count))]

    return fun


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(80))
def test_random_program(seed):
    check(
        random_program(seed),
        normal(N, M),
        normal(N, M, seed=1),
        normal(M, seed=2),
        normal(N, seed=3),
        rtol=2e-4,
        atol=2e-4,
    )


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(40))
def test_random_loop_body(seed):
    """Carries are updated in place, whatever reads them when."""

    def fun(a, b, v, w):
        def body(carry, _):
            # A body is traced more than once, and must be the same program each time.
            *new, y = random_program(seed, True)(*carry)
            return tuple(new), y

        new, ys = lax.scan(body, (a, b, v, w), None, length=3)
        return [*new, ys]

    check(fun, normal(N, M), normal(N, M, seed=1), normal(M, seed=2), normal(N, seed=3), rtol=1e-3, atol=1e-3)


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(0, 320, 8))
def test_random_program_in_place_of_its_arguments(seed, monkeypatch):
    """Donated arguments are overwritten, whatever reads them when."""
    monkeypatch.setitem(globals(), "N", 40)
    monkeypatch.setitem(globals(), "M", 30)
    arguments = normal(N, M), normal(N, M, seed=1), normal(M, seed=2), normal(N, seed=3)
    expected = pullback.jit(random_program(seed, True))(*arguments)
    for donated in ((0, 1, 2, 3), (seed // 8 % 4,)):
        given = pullback.jit(random_program(seed, True), donate_argnums=donated)
        for results in (given(*map(pullback.numpy.array, arguments)), given(*arguments)):
            for got, want in zip(results, expected):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
