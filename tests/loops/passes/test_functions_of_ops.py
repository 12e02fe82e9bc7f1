"""Math that one nest uses many times is a function that the nest calls."""

import sys

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.pipelines import optimize_loops
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import Builder, Op
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.print import to_text
from pullback.loops.ir.visit import expressions, function_of, statements, subexpressions
from pullback.loops.passes.expand_math import expand_math


def chain(names, steps, n, dtype="f32"):
    """One nest that applies functions in turn, `steps` times."""
    b = Builder()
    x, y = b.input("x", dtype, n), b.output("y", dtype, n)
    with b.loop(n) as i:
        value = b.load(x, i)
        for k in range(steps):
            value = b.op(names[k % len(names)], value) + b.const(dtype, 0.125)
        b.store(y, i, value)
    return b.function("f")


def functions(function):
    exprs = subexpressions([expr for stmt in statements(function.body) for expr in expressions(stmt)])
    return [function_of(expr) for expr in exprs if isinstance(expr, Op) and function_of(expr) is not None]


def run(function, x):
    final = optimize_loops(function)
    out = [np.empty_like(x)]
    assert compile_function(final, *plan_arena(final)[:1])([x], out) == 0
    return out[0]


def test_only_what_is_used_often_is_a_function():
    assert not functions(expand_math(chain(["tanh"], 10, 64)))
    many = functions(expand_math(chain(["tanh"], 40, 64)))
    assert len(many) == 40 and len(set(many)) == 1
    assert len(set(functions(expand_math(chain(["tanh", "sin"], 80, 64))))) == 2


@pytest.mark.parametrize("name", ["sin", "lgamma"])
def test_functions_of_many_ops_are_called_sooner(name):
    assert not functions(expand_math(chain([name], 3, 64)))
    assert len(functions(expand_math(chain([name], 4, 64)))) == 4
    assert not functions(expand_math(chain(["exp"], 10, 64)))  # of few


def test_straight_code_calls_functions_as_nests_do():
    """Scalar programs have no nest: at the top, among the steps of a loop, and in branches."""
    b = Builder()
    x, y = b.input("x", "f32", 3), b.output("y", "f32", 3)

    def steps(place, count):
        value = b.load(x, place)
        for _ in range(count):
            value = b.let(b.op("tanh", value))
        b.store(y, place, value)

    steps(0, 40)
    with b.loop(5, "sequential"):
        steps(1, 10)
        steps(1, 10)
    with b.loop(5, "sequential"):
        steps(2, 10)
    found = functions(expand_math(b.function("f")))
    assert len(found) == 60 and len(set(found)) == 1


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000])
def test_results_are_those_of_code_in_place(dtype, n, monkeypatch):
    np_dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[dtype]
    x = np.linspace(-3, 3, n).astype(np_dtype)
    x[0] = np.nan if n > 1 else 0.5
    f = chain(["tanh", "sin"], 36, n, dtype)
    called = run(f, x)
    monkeypatch.setattr(sys.modules["pullback.loops.passes.expand_math"], "OFTEN", 1000)
    assert np.array_equal(called, run(f, x), equal_nan=True)
    tolerance = {"f32": 2e-6, "f64": 1e-14, "f16": 4e-3}[dtype]
    np.testing.assert_allclose(called.astype("f8"), interpret(f, [x])[0].astype("f8"), rtol=tolerance, atol=tolerance)


def test_the_text_says_what_is_computed():
    text = to_text(expand_math(chain(["tanh"], 40, 64)))
    assert text.count("tanh(") == 40 and "Lambda" not in text


def test_long_programs_stay_small():
    def f(x):
        for _ in range(60):
            x = jnp.tanh(x) + 0.5
        return x

    x = jnp.linspace(-1, 1, 64)
    compiled = jax.jit(f).lower(x).compile()
    assert compiled.memory_analysis().generated_code_size_in_bytes < 12_000
    want = np.linspace(-1, 1, 64)
    for _ in range(60):
        want = np.tanh(want) + 0.5
    np.testing.assert_allclose(compiled(x), want, rtol=1e-5)


def test_expansions_of_ops_over_functions_keep_these():
    """A power of a complex number whose parts call functions is expanded twice; the calls are not."""
    b = Builder()
    n = 64
    x, y = b.input("x", "f32", n), b.output("y", "c64", n)
    with b.loop(n) as i:
        value = b.load(x, i)
        for _ in range(40):
            value = b.op("tanh", value) + b.const("f32", 0.125)
        b.store(y, i, b.op("integer_pow", b.complex(value, value), attrs=(("y", -2),)))
    function = b.function("f")
    assert len(functions(expand_math(function))) == 40
    data = np.linspace(-2, 2, n, dtype=np.float32)
    final = optimize_loops(function)
    out = np.empty(n, np.complex64)
    assert compile_function(final, *plan_arena(final)[:1])([data], [out]) == 0
    (want,) = interpret(function, [data])
    np.testing.assert_allclose(out, want, rtol=1e-5)


def test_functions_of_complex_numbers_are_called_sooner():
    assert not functions(expand_math(chain(["exp"], 4, 64, "c64")))
    assert len(functions(expand_math(chain(["exp"], 5, 64, "c64")))) == 5
    roots = functions(expand_math(chain(["sqrt", "exp"], 40, 64, "c64")))  # what real numbers have an instruction for
    assert len(roots) == 40 and len(set(roots)) == 2


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 70])
def test_complex_results_are_those_of_code_in_place(dtype, n, monkeypatch):
    """In lanes, in one element, with real results and operands that are the same in all lanes."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(dtype)
    x[0] = 0.5 - 0.25j if n == 1 else complex(np.inf, np.nan)
    b = Builder()
    name, part = ("c64", "f32") if dtype == np.complex64 else ("c128", "f64")
    inside, first, out = b.input("x", name, n), b.input("first", name, 1), b.output("y", name, n)
    with b.loop(n) as i:
        value = b.load(inside, i)
        for k in range(18):
            value = b.op(["exp", "sqrt"][k % 2], value) + b.complex(b.abs(value), b.const(part, -0.125))
            value = value + b.op("tanh", b.load(first, 0) * b.complex(b.const(part, k / 8), b.const(part, 0.0)))
        b.store(out, i, value)
    function = b.function("f")
    assert {each.name for each in functions(expand_math(function))} == {"exp", "tanh", "abs"}
    results = []
    for _ in range(2):
        final = optimize_loops(function)
        results.append(np.empty(n, dtype))
        assert compile_function(final, *plan_arena(final)[:1])([x, x[-1:]], [results[-1]]) == 0
        for most in ("OFTEN", "OFTEN_OF_COMPLEX"):
            monkeypatch.setattr(sys.modules["pullback.loops.passes.expand_math"], most, 1000)
    np.testing.assert_array_equal(*results)
    (want,) = interpret(function, [x, x[-1:]])
    tolerance = 2e-5 if name == "c64" else 1e-13
    np.testing.assert_allclose(results[0], want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exponents_that_a_loop_outside_gives_are_products(dtype):
    x = np.random.default_rng(0).standard_normal((37, 29)).astype(dtype)

    def features(x):
        return x[:, None, :] ** (1 + jnp.arange(4))[None, :, None]

    with jax.enable_x64(True):
        program = jax.jit(features)
        assert "floor" not in program.lower(x).as_text("nests")  # of the exponent, which any number might be
        want = np.stack([x, x**2, x**3, x**4], 1)
        np.testing.assert_allclose(program(x), want, rtol=1e-6 if dtype == "f4" else 1e-14)
