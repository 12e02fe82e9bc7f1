"""Random numbers: every common distribution, few and many; permutations and choices; keys, and samplers mapped over
keys. Results are not compared: libraries have streams of their own (ours are JAX's, which the tests compare)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program

RNG = np.random.default_rng(0)
F4 = np.float32


def _program(
    name: str,
    sample: Callable[[Any, Any], Any],
    numpy: Callable | None = None,
    torch: Callable[[Any], Callable] | None = None,
    arguments: tuple = (),
    **more: Any,
) -> Program:
    """`sample(jax, key, *arguments)`; NumPy's side has a generator of its own, PyTorch's the global one."""
    of_torch = None if torch is None else lambda lib: _without_key(torch(lib))
    return Program(
        name,
        inputs=lambda rng: (np.array([0, 7], np.uint32), *arguments),
        jax=lambda jax: lambda key, *rest: sample(jax, key, *rest),
        numpy=None if numpy is None else _without_key(numpy),
        torch=of_torch,
        tolerance=None,
        **more,
    )


def _without_key(function: Callable) -> Callable:
    return lambda _key, *rest: function(*rest)


def _simple(n: int) -> list[Program]:
    """Distributions in closed form."""
    shape = (n,)
    return [
        _program(
            f"uniform of {n:.0e}",
            lambda jax, k: jax.random.uniform(k, shape),
            lambda: RNG.random(n, dtype=F4),
            lambda torch: lambda: torch.rand(n),
        ),
        _program(
            f"normal of {n:.0e}",
            lambda jax, k: jax.random.normal(k, shape),
            lambda: RNG.standard_normal(n, dtype=F4),
            lambda torch: lambda: torch.randn(n),
        ),
        _program(
            f"bernoulli of {n:.0e}",
            lambda jax, k: jax.random.bernoulli(k, 0.3, shape),
            lambda: RNG.random(n, dtype=F4) < 0.3,
            lambda torch: lambda: torch.empty(n).bernoulli_(0.3),
        ),
        _program(
            f"randint of {n:.0e}",
            lambda jax, k: jax.random.randint(k, shape, 0, 1000),
            lambda: RNG.integers(0, 1000, n, dtype=np.int32),
            lambda torch: lambda: torch.randint(0, 1000, shape, dtype=torch.int32),
        ),
        _program(
            f"exponential of {n:.0e}",
            lambda jax, k: jax.random.exponential(k, shape),
            lambda: RNG.standard_exponential(n, dtype=F4),
            lambda torch: lambda: torch.empty(n).exponential_(),
        ),
        _program(
            f"gumbel of {n:.0e}",
            lambda jax, k: jax.random.gumbel(k, shape),
            lambda: RNG.gumbel(size=n),
        ),
        _program(
            f"truncated normal of {n:.0e}",
            lambda jax, k: jax.random.truncated_normal(k, -2.0, 2.0, shape),
            torch=lambda torch: lambda: torch.nn.init.trunc_normal_(torch.empty(n)),
        ),
    ]


def _rejection(n: int, limit: float | None = None) -> list[Program]:
    """Distributions by loops."""
    shape = (n,)

    def gamma(a: float, **more: Any) -> Program:
        return _program(
            f"gamma({a}) of {n:.0e}",
            lambda jax, k: jax.random.gamma(k, a, shape),
            lambda: RNG.standard_gamma(a, n, dtype=F4),
            lambda torch: lambda: torch._standard_gamma(torch.full(shape, a)),
            **more,
        )

    def poisson(mean: float) -> Program:
        return _program(
            f"poisson({mean}) of {n:.0e}",
            lambda jax, k: jax.random.poisson(k, mean, shape),
            lambda: RNG.poisson(mean, n),
            lambda torch: lambda: torch.poisson(torch.full(shape, mean)),
        )

    if limit is not None:
        return [gamma(2.5, thread=18984, limit=limit)]
    return [
        gamma(2.5),
        gamma(0.3),
        _program(f"beta(2, 3) of {n:.0e}", lambda jax, k: jax.random.beta(k, 2.0, 3.0, shape),
                 lambda: RNG.beta(2.0, 3.0, n)),
        _program(f"dirichlet of {n // 10} x 10", lambda jax, k, a: jax.random.dirichlet(k, a, (n // 10,)),
                 lambda a: RNG.dirichlet(a, n // 10),
                 lambda torch: lambda a: torch._sample_dirichlet(a.expand(n // 10, 10)),
                 arguments=(np.full(10, 1.5, F4),)),
        poisson(5.0),
        poisson(50.0),
        _program(f"binomial(100, 0.3) of {n:.0e}", lambda jax, k: jax.random.binomial(k, 100.0, 0.3, shape),
                 lambda: RNG.binomial(100, 0.3, n)),
        _program(f"student t(5) of {n:.0e}", lambda jax, k: jax.random.t(k, 5.0, shape),
                 lambda: RNG.standard_t(5.0, n)),
    ]  # fmt: skip


def _permutation(n: int, **more: Any) -> Program:
    return _program(
        f"permutation of {n:.0e}",
        lambda jax, k: jax.random.permutation(k, n),
        lambda: RNG.permutation(n),
        lambda torch: lambda: torch.randperm(n),
        **more,
    )


def _choices(n: int) -> list[Program]:
    p = np.full(2 * n, 1 / (2 * n))
    return [
        _program(f"choice of {n:.0e} of {2 * n:.0e} without replacement",
                 lambda jax, k: jax.random.choice(k, 2 * n, (n,), replace=False),
                 lambda: RNG.choice(2 * n, n, replace=False)),
        _program(f"choice of {n:.0e} of {2 * n:.0e}, weighted",
                 lambda jax, k, p: jax.random.choice(k, 2 * n, (n,), p=p),
                 lambda _: RNG.choice(2 * n, n, p=p),
                 lambda torch: lambda p: torch.multinomial(p, n, replacement=True), arguments=(p.astype(F4),)),
        _program(f"choice of {n:.0e} of {2 * n:.0e}, weighted, without replacement",
                 lambda jax, k, p: jax.random.choice(k, 2 * n, (n,), replace=False, p=p),
                 lambda _: RNG.choice(2 * n, n, replace=False, p=p),
                 lambda torch: lambda p: torch.multinomial(p, n, replacement=False), arguments=(p.astype(F4),)),
    ]  # fmt: skip


def _categorical(rows: int, columns: int) -> Program:
    logits = np.random.default_rng(1).standard_normal((rows, columns)).astype(F4)
    return _program(
        f"categorical of {rows} x {columns} logits",
        lambda jax, k, x: jax.random.categorical(k, x),
        lambda x: np.argmax(x + RNG.gumbel(size=x.shape), -1),
        lambda torch: lambda x: torch.multinomial(torch.softmax(x, -1), 1),
        arguments=(logits,),
    )


ROWS = np.random.default_rng(2).standard_normal((10_000, 16)).astype(F4)
COVARIANCE = (np.eye(32) + 0.1).astype(F4)

PROGRAMS = [
    *[program for n in (10, 10_000, 1_000_000, 10_000_000) for program in _simple(n)],
    *[program for n in (10, 10_000) for program in _rejection(n)],
    *_rejection(1_000_000, limit=60e-3),
    _permutation(10),
    _permutation(10_000, thread=5328, limit=0.1e-3),
    _permutation(1_000_000),
    _program("permutation of 10000 x 16 rows", lambda jax, k, x: jax.random.permutation(k, x),
             lambda x: RNG.permutation(x), lambda torch: lambda x: x[torch.randperm(10_000)], arguments=(ROWS,)),
    *_choices(10),
    *_choices(10_000),
    _categorical(10, 10),
    _categorical(1000, 100),
    _program("categorical, 10000 draws of 100", lambda jax, k, x: jax.random.categorical(k, x, shape=(10_000,)),
             None, lambda torch: lambda x: torch.multinomial(torch.softmax(x, -1), 10_000, replacement=True),
             arguments=(ROWS.reshape(-1)[:100],)),
    _program("multivariate normal of 1000 x 32", lambda jax, k, c: jax.random.multivariate_normal(
             k, jax.numpy.zeros(32), c, (1000,)),
             lambda c: RNG.multivariate_normal(np.zeros(32), c, 1000, method="cholesky"),
             lambda torch: lambda c: torch.randn(1000, 32) @ torch.linalg.cholesky(c).T, arguments=(COVARIANCE,)),
    _program("split in 2", lambda jax, k: jax.random.split(k)),
    _program("split in 1e6", lambda jax, k: jax.random.split(k, 1_000_000)),
    _program("fold_in", lambda jax, k: jax.random.fold_in(k, 7)),
    _program("fold_in of 1000, mapped", lambda jax, k: jax.vmap(lambda i: jax.random.fold_in(k, i))(
             jax.numpy.arange(1000))),
    _program("bits of 1e6", lambda jax, k: jax.random.bits(k, (1_000_000,)),
             lambda: RNG.integers(0, 2**32, 1_000_000, dtype=np.uint32)),
    _program("normal of 100 x 100", lambda jax, k: jax.random.normal(k, (100, 100)),
             lambda: RNG.standard_normal((100, 100), dtype=F4), lambda torch: lambda: torch.randn(100, 100)),
    _program("normal of 100, mapped over 1000 keys", lambda jax, k: jax.vmap(
             lambda k: jax.random.normal(k, (100,)))(jax.random.split(k, 1000)),
             lambda: RNG.standard_normal((1000, 100), dtype=F4), lambda torch: lambda: torch.randn(1000, 100)),
    _program("uniform of 3, mapped over 10000 keys", lambda jax, k: jax.vmap(
             lambda k: jax.random.uniform(k, (3,)))(jax.random.split(k, 10_000)),
             lambda: RNG.random((10_000, 3), dtype=F4), lambda torch: lambda: torch.rand(10_000, 3)),
    _program("permutation of 100, mapped over 1000 keys", lambda jax, k: jax.vmap(
             lambda k: jax.random.permutation(k, 100))(jax.random.split(k, 1000)),
             lambda: RNG.permuted(np.tile(np.arange(100), (1000, 1)), axis=1)),
]  # fmt: skip
