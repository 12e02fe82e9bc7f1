"""The overhead of a call: compiled programs so small that nothing else is left."""

from __future__ import annotations

import numpy as np

from benchmarks.program import Program

PROGRAMS = [
    Program(
        "x + 1, a scalar",
        inputs=lambda rng: (np.float32(1.0),),
        jax=lambda jax: lambda x: x + 1,
        numpy=lambda x: x + 1,
        torch=lambda torch: lambda x: x + 1,
    ),
    Program(
        "dot of 5",
        inputs=lambda rng: (rng.standard_normal(5).astype("f4"), rng.standard_normal(5).astype("f4")),
        jax=lambda jax: lambda x, y: jax.numpy.dot(x, y),
        numpy=lambda x, y: np.dot(x, y),
        torch=lambda torch: lambda x, y: torch.dot(x, y),
    ),
    Program(
        "sum of a dict of 40 arrays",
        inputs=lambda rng: ({f"p{k}": rng.standard_normal(5).astype("f4") for k in range(40)},),
        jax=lambda jax: lambda d: sum(d.values()),
        numpy=lambda d: sum(d.values()),
    ),
]
