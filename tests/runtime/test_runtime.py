"""Programs, eager evaluation, devices."""

import numpy as np
import pytest

import pullback
import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.core import trace, typeof
from pullback.runtime import asarray, compile_jaxpr
from pullback.runtime.programs.canonical import jaxpr_key

X = np.random.default_rng(0).normal(size=(30, 20)).astype(np.float32)


def closed(fun, *args):
    return trace(lambda *xs: list(fun(*xs)), [typeof(a) for a in args])


def test_program_and_its_stages():
    program = compile_jaxpr(closed(lambda x: [lax.add(lax.sin(x), np.float32(1))], X))
    np.testing.assert_allclose(program.call([asarray(X)])[0], np.sin(X) + 1, rtol=1e-6, atol=1e-6)
    assert "sin" in program.as_text("jaxpr") and "sin" in program.as_text("loops")
    assert "define" in program.as_text("llvm") and program.as_text("asm")
    assert program.cost_analysis()["bytes accessed"] == 2 * X.nbytes
    assert program.memory_analysis().argument_size_in_bytes == X.nbytes
    with pytest.raises(ValueError, match="as_text: unknown stage 'hlo'"):
        program.as_text("hlo")


@pytest.mark.parametrize("n", [4, 8, 16, 64])
def test_a_product_counts_multiplications_and_additions(n):
    x = np.ones((n, n), np.float32)
    assert pullback.jit(lambda a, b: a @ b).lower(x, x).compile().cost_analysis()["flops"] == 2 * n**3


def test_equal_programs_share_code():
    first, second = (closed(lambda x: [lax.exp(lax.sin(x))], X) for _ in range(2))
    assert jaxpr_key(first) == jaxpr_key(second)
    assert compile_jaxpr(first).native is compile_jaxpr(second).native


def test_unused_and_forwarded_arguments():
    f = pullback.jit(lambda x, y, z: (lax.exp(y), z))
    a, b = f(asarray(X), asarray(X), asarray(X + 1))
    np.testing.assert_allclose(a, np.exp(X), rtol=1e-6)
    np.testing.assert_array_equal(b, X + 1)


def test_host_calls():
    x = (X[:20] + 1j).astype(np.complex64)
    program = compile_jaxpr(closed(lambda x: [lax.sort(x, dimension=0)], X[:, 0]))
    np.testing.assert_array_equal(program.call([asarray(X[:, 0])])[0], np.sort(X[:, 0]))
    assert x.shape == (20, 20)


def test_errors_of_host_calls_arrive():
    from pullback.core import Primitive
    from pullback.core.lowering import HostCall

    def fails(x):
        raise ValueError("from inside")

    p = Primitive("fails", abstract_eval=lambda aval: aval, reference=fails, lower=HostCall(), register=False)
    program = compile_jaxpr(closed(lambda x: [p.bind(x)], X))
    with pytest.raises(ValueError, match="from inside"):
        program.call([asarray(X)])


def test_eager_results_are_arrays_of_their_own():
    x = asarray(X)
    y = lax.transpose(x, (1, 0))
    np.testing.assert_array_equal(y, X.T)
    assert isinstance(y, pullback.Array) and y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert lax.add(x, np.float32(1)).weak_type is False


def test_eager_work_that_repeats_is_compiled():
    x = asarray(np.ones((300, 300), np.float32))
    for _ in range(60):
        y = lax.sin(x)
    np.testing.assert_allclose(y, np.sin(np.ones((300, 300), np.float32)), rtol=1e-6)


def test_arrays_are_copies_of_numpy_data():
    data = np.zeros(100, np.float32)
    x = asarray(data)
    data[0] = 1
    assert float(np.asarray(x)[0]) == 0


def test_devices():
    (device, *_) = pullback.devices()
    assert device.platform == "cpu" and device in pullback.local_devices()
    assert repr(device) == "CpuDevice(id=0)"
    with pytest.raises(RuntimeError, match="Unknown backend: 'gpu'"):
        pullback.devices("gpu")


def test_debug_nans_names_the_operation():
    with pullback.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in log"):
            lax.log(np.float32(-1))
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in log"):
            pullback.jit(lambda x: lax.add(lax.log(x), np.float32(1)))(np.float32(-1))
    assert np.isnan(np.asarray(lax.log(np.float32(-1))))


def test_results_do_not_share_memory_with_numpy_operands():
    x = np.ones(3, np.float32)
    y = lax.stop_gradient(x) if hasattr(lax, "stop_gradient") else x
    z = lax.reshape(x, (3, 1))
    x[0] = 5
    assert float(np.asarray(z)[0, 0]) == 1
    assert y is x or float(np.asarray(y)[0]) == 1


def test_bad_values_of_loops_and_branches_are_found():
    with jax.debug_nans(True):
        for f, x in [
            (lambda x: lax.scan(lambda c, _: (jnp.log(c), None), x, None, length=3)[0], 1.0),
            (lambda x: lax.while_loop(lambda c: c < 3, lambda c: jnp.log(-c), x), 1.0),
            (lambda x: lax.cond(x < 0, jnp.log, jnp.sin, x), -1.0),
            (lambda x: lax.map(jnp.log, x), -jnp.ones(2)),
        ]:
            for run in (f, jax.jit(f)):
                with pytest.raises(FloatingPointError, match="nan"):
                    run(x)
