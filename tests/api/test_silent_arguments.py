"""Arguments that were once accepted in silence: honoured, or refused with JAX's error."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

X = jnp.arange(4.0)
IDS = jnp.zeros(4, int)
D = jax.devices()
TYPE = jax.ShapeDtypeStruct((4,), np.float32)


def inc(a):
    return a + 1


def gathered(to):
    return jax.vmap(lambda a: lax.all_gather(a, "i", to=to), axis_name="i")(X)


def offloading(saved, offloaded):
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=saved, names_which_can_be_offloaded=offloaded, offload_src="a", offload_dst="b"
    )


MISTAKES = [
    (lambda: jax.pmap(inc, backend="tpu")(X), RuntimeError, "'tpu'"),
    (lambda: jax.pmap(inc, devices=[]), ValueError, "must be non-empty"),
    (lambda: jax.pmap(inc, devices="x"), TypeError, "must be devices"),
    (lambda: jax.pmap(inc, devices=[D[0], D[0]]), ValueError, "comes twice"),
    (lambda: jax.pmap(inc, static_broadcasted_argnums=3)(X), ValueError, "1 positional argument"),
    (lambda: jax.pmap(inc, static_broadcasted_argnums="a"), TypeError, "must be an integer"),
    (lambda: jax.pmap(inc, donate_argnums=0, static_broadcasted_argnums=0), ValueError, "cannot intersect"),
    (lambda: jax.pmap(inc, global_arg_shapes=((2,),)), TypeError, "unexpected keyword"),
    (lambda: jax.jit(inc, abstracted_axes={0: "n"}), TypeError, "unexpected keyword"),
    (lambda: jax.make_jaxpr(inc, abstracted_axes=({0: "n"},)), TypeError, "unexpected keyword"),
    (lambda: jax.make_jaxpr(lambda a: lax.psum(a, "i"))(X), NameError, "i"),
    (lambda: jax.linear_transpose(inc, X, reduce_axes=("i",)), NotImplementedError, "reduce_axes"),
    (lambda: jax.process_count("nope"), RuntimeError, "nope"),
    (lambda: jax.process_index("tpu"), RuntimeError, "tpu"),
    (lambda: jax.process_indices("tpu"), RuntimeError, "tpu"),
    (lambda: lax.sin(1.0, accuracy="x"), NotImplementedError, "Accuracy x not supported"),
    (lambda: lax.exp(1.0, accuracy=3), NotImplementedError, "Accuracy 3 not supported"),
    (lambda: lax.cond(True, inc, inc, 1.0, linear=(False,)), TypeError, "unexpected keyword"),
    (lambda: gathered("zz"), ValueError, "all_gather: argument 'to' must be"),
    (lambda: lax.pcast(X, "zz", to="varying"), ValueError, "zz.*no axis is in force"),
    (lambda: jax.new_ref(X, memory_space="zz"), NotImplementedError, "one memory space"),
    (lambda: jax.new_ref(X, kind="zz"), NotImplementedError, "'kind' must be None"),
    (lambda: jax.pure_callback(np.sin, TYPE, X, sharding="zz"), NotImplementedError, "SingleDeviceSharding"),
    (lambda: lax.composite(inc, "my.n", version="a"), TypeError, "'version' must be an integer"),
    (lambda: jax.ops.segment_sum(X, IDS, 2, bucket_size="a"), TypeError, "integer"),
    (lambda: jax.ops.segment_max(X, IDS, 2, bucket_size=0), ValueError, "must be positive"),
    (lambda: jax.profiler.start_trace("x", profiler_options="y"), TypeError, "must be ProfileOptions"),
    (lambda: offloading(["a"], ["a"]), ValueError, "both saved and offloaded"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    call, error, text = MISTAKES[number]
    with pytest.raises(error, match=text):
        call()


def test_what_is_honoured():
    closed = jax.make_jaxpr(lambda a: lax.psum(a, "i") / lax.axis_size("i"), axis_env=[("i", 3)])(X)
    assert "psum" in str(closed)
    assert jax.process_count("cpu") == 1 and jax.process_index("cpu") == 0 and jax.process_indices("cpu") == [0]
    assert jax.pmap(inc, backend="cpu")(X).tolist() == [1, 2, 3, 4]
    assert list(jax.pmap(inc, devices=D[2:])(X[:2]).sharding.mesh.devices) == D[2:]
    assert lax.sin(X, accuracy=lax.AccuracyMode.HIGHEST).tolist() == lax.sin(X, accuracy=lax.Tolerance(ulps=1)).tolist()
    assert jnp.array(X, None, False) is X and jnp.array(X, None, True, "K", 2).shape == (1, 4)
    assert jax.ops.segment_sum(X, IDS, 2, bucket_size=3).tolist() == [6, 0]
