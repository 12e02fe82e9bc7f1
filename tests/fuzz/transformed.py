"""Whole random programs under transformations: jvp and vjp against differences, vmap against single rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback
from fuzz.library import using
from fuzz.oracle import LONG, NotSmooth, Oracle, wrap
from fuzz.program import INEXACT, SLACK, FuzzProgram, disagreements, is_large, meaning
from pullback import numpy as jnp


def run_derivatives(seed: int, count: int) -> str:
    """jvp along a random direction, and vjp of random cotangents, of the inexact results in the inexact inputs."""
    program = FuzzProgram(seed, count)
    inputs = program.inputs()
    rng = np.random.default_rng([seed, 3])
    chosen = [k for k in INEXACT if k < len(inputs)]
    tangents = [rng.standard_normal(inputs[k].shape).astype(np.float32) for k in chosen]
    sizes = [inputs[k].size for k in chosen]
    if not sum(sizes):
        return ""

    def along(oracle: Oracle, arrays: list[np.ndarray]) -> Any:
        """Of one vector, the inexact inputs joined, the inexact results joined."""

        def function(joined):
            parts, rest = list(arrays), np.asarray(joined)
            for k, n in zip(chosen, sizes):
                parts[k], rest = wrap(rest[:n].reshape(arrays[k].shape)), rest[n:]
            found = program.function(*(wrap(x.astype(LONG)) if x.dtype == np.float32 else wrap(x) for x in parts))
            return joined_floats(found, program.exact)

        whole = np.concatenate([arrays[k].reshape(-1) for k in chosen])
        return oracle.derivative(function, whole, np.concatenate([t.reshape(-1) for t in tangents]))

    try:
        with np.errstate(all="ignore"), using(oracle := Oracle(LONG)):
            want = along(oracle, inputs)
            moved = list(inputs)
            for k in chosen:
                moved[k] = np.nextafter(moved[k], np.float32(0))
            lost = np.abs(along(oracle, moved) - want)
    except NotSmooth:
        return ""
    if not want.size or not np.all(np.isfinite(want)):
        return ""
    with using(pullback):

        def function(*parts):
            arrays = list(map(jnp.asarray, inputs))
            for k, part in zip(chosen, parts):
                arrays[k] = part
            out = program.function(*arrays)
            return [x for x, exact in zip(out, program.exact) if not exact and np.dtype(x.dtype).kind == "f"]

        primals = tuple(jnp.asarray(inputs[k]) for k in chosen)
        got = pullback.jit(lambda p, t: pullback.jvp(function, p, t)[1])(primals, tuple(map(jnp.asarray, tangents)))
        got = np.concatenate([np.asarray(x, LONG).reshape(-1) for x in got])
        weights = rng.standard_normal(want.size).astype(np.float32)

        def total(parts, w):
            out = [jnp.reshape(x, (-1,)) for x in function(*parts)]
            return jnp.sum(jnp.concatenate(out) * w)

        try:
            gradients = pullback.jit(pullback.grad(total))(primals, jnp.asarray(weights))
        except ValueError as error:
            if "Reverse-mode differentiation does not work" not in str(error):
                raise
            gradients = None
    scale = float(np.abs(want).max())
    allowed = 16 * SLACK * (float(lost.max()) + 1.2e-7 * max(scale, 1e-3))
    error = float(np.abs(got - want).max())
    if error > allowed:
        return f"jvp: error {error:.3g} of {scale:.3g}, where {allowed:.3g} is allowed"
    if gradients is None:
        return ""
    products = [np.asarray(g, LONG) * t for g, t in zip(gradients, tangents)]
    expected = float(np.sum(want * weights))
    size = float(np.sum(np.abs(want * weights))) + sum(float(np.sum(np.abs(p))) for p in products)
    error = abs(float(sum(np.sum(p) for p in products)) - expected)
    if not error <= allowed * max(1.0, np.sqrt(want.size)) + 64 * 1.2e-7 * size:
        return f"vjp: {expected + error:.6g} along the tangents instead of {expected:.6g} (or the other side)"
    return ""


def joined_floats(found: list[Any], exact: list[bool]) -> np.ndarray:
    """The inexact float results as one vector."""
    parts = [np.asarray(x, LONG).reshape(-1) for x, e in zip(found, exact) if not e and x.dtype.kind == "f"]
    return np.concatenate(parts) if parts else np.zeros(0, LONG)


def run_mapped(seed: int, count: int) -> str:
    """vmap of a program over two rows of inputs, against each row by itself."""
    if is_large(seed):
        return ""
    program = FuzzProgram(seed, count)
    first = program.inputs()
    rows = [first, [np.flip(x) for x in first]]
    try:
        wants = [meaning(program, row) for row in rows]
    except NotSmooth:
        return ""
    with using(pullback):
        mapped = pullback.jit(pullback.vmap(program.function))
        got = [np.asarray(x) for x in mapped(*(jnp.asarray(np.stack(pair)) for pair in zip(*rows)))]
    for k, want in enumerate(wants):
        if problem := disagreements([g[k] for g in got], want):
            return f"vmap, row {k}: {problem}"
    return ""
