"""Random functions mean the same before and after the passes, interpreted and compiled, printed and parsed."""

import numpy as np
import pytest

from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.pipelines import LOOP_PASSES, PROGRAM_PASSES
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import NP_DTYPE
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.parse import parse
from pullback.loops.ir.print import canonical, to_text
from pullback.loops.passes.simplify import simplify

from .nests import RandomNest


def close(got, want):
    kind = got.dtype.kind
    if kind in "biu":
        return np.array_equal(got, want)
    eps = 2e-2 if got.dtype == np.float16 else 1e-5
    with np.errstate(all="ignore"):
        g, w = got.astype(complex), want.astype(complex)
        ok = (np.abs(g - w) <= eps * (1 + np.abs(w))) | (g == w) | ((g != g) & (w != w)) | ~np.isfinite(w)
    return bool(ok.all())


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(60))
def test_random(seed):
    nest = RandomNest(seed)
    function = nest.function()
    check(function)
    text = to_text(function)
    again = parse(text)
    assert to_text(again) == text and canonical(again) == canonical(function)
    inputs = nest.inputs()
    want = interpret(function, inputs)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(interpret(again, inputs), want))
    for step in (*PROGRAM_PASSES, *LOOP_PASSES):
        function = step.run(function)
        check(function, step.name)
        got = interpret(function, inputs)
        assert all(close(a, b) for a, b in zip(got, want)), f"{step.name} changed the meaning of\n{text}"
    assert canonical(simplify(function)) == canonical(simplify(simplify(function)))
    plan, _ = plan_arena(function)
    code = compile_function(function, plan, verify=True)
    outputs = [np.zeros(b.size, NP_DTYPE[b.dtype]) for b in function.buffers if b.space == "output"]
    code(inputs, outputs)
    for k, (a, b) in enumerate(zip(outputs, want)):
        assert close(a, b), f"output {k}: got {a}, want {b} from\n{text}\nas\n{to_text(function)}"
