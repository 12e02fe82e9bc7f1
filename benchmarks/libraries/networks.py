"""Networks: optax, equinox, flax, haiku, distrax and jraph. A call is one or several steps of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries.work import work


def _images(count: int = 32, size: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, size, size, 3)).astype("f"), rng.integers(0, 10, count).astype("i4")


@work("optax", "50 steps of AdamW with clipping and a schedule, an MLP 16-64-64-1, batch 128, in a scan")
def adamw() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import optax

    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(128, 16)).astype("f"))
    y = jnp.sin(x[:, :1]) + 0.5 * x[:, 1:2]
    sizes = [(16, 64), (64, 64), (64, 1)]
    params = [(jnp.asarray(rng.normal(size=s).astype("f") / np.sqrt(s[0]).astype("f")), jnp.zeros(s[1])) for s in sizes]
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 50)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))

    def loss(params: Any) -> Any:
        h = x
        for w, b in params[:-1]:
            h = jax.nn.gelu(h @ w + b)
        return jnp.mean((h @ params[-1][0] + params[-1][1] - y) ** 2)

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        value, slope = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(slope, state, params)
        return (optax.apply_updates(params, updates), state), value

    run = jax.jit(lambda p: jax.lax.scan(step, (p, optimizer.init(p)), None, length=50))
    return lambda: run(params)[1]


@work("optax", "L-BFGS with zoom line search on the Rosenbrock function of 5 numbers, 36 steps", 1e-2)
def lbfgs() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import optax

    def f(x: Any) -> Any:
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    solver = optax.lbfgs(memory_size=5)
    value_and_grad = optax.value_and_grad_from_state(f)

    def step(carry: Any, _: Any) -> Any:
        x, state = carry
        value, slope = value_and_grad(x, state=state)
        updates, state = solver.update(slope, state, x, value=value, grad=slope, value_fn=f)
        return (optax.apply_updates(x, updates), state), None

    # No more steps: from the minimum on the last bit decides whether each search tries one point or twenty.
    run = jax.jit(lambda x: jax.lax.scan(step, (x, solver.init(x)), None, length=36)[0][0])
    start = jnp.zeros(5)
    return lambda: run(start)


@work("equinox", "a step of Adam, a convolutional network on 32 images of 16 x 16")
def equinox_convolutions() -> Callable[[], Any]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    class Network(eqx.Module):
        layers: list

        def __init__(self, key: Any) -> None:
            k = jax.random.split(key, 4)
            self.layers = [
                eqx.nn.Conv2d(3, 16, 3, padding=1, key=k[0]), jax.nn.relu, eqx.nn.MaxPool2d(2, 2),
                eqx.nn.Conv2d(16, 32, 3, padding=1, key=k[1]), jax.nn.relu, eqx.nn.MaxPool2d(2, 2),
                jnp.ravel, eqx.nn.Linear(512, 64, key=k[2]), jax.nn.relu, eqx.nn.Linear(64, 10, key=k[3]),
            ]  # fmt: skip

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    model = Network(jax.random.key(0))
    images, labels = _images()
    x, y = jnp.asarray(images.transpose(0, 3, 1, 2)), jnp.asarray(labels)
    optimizer = optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()

        value, slope = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(slope, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    def call() -> Any:
        new, _, value = step(model, state, x, y)
        return value, new.layers[-1].bias

    return call


@work("flax.linen", "a step of Adam, a convolutional network with batch norm on 32 images of 16 x 16")
def linen_convolutions() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen as nn

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x: Any, train: bool) -> Any:
            for features in (16, 32):
                x = nn.Conv(features, (3, 3))(x)
                x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
                x = nn.avg_pool(x, (2, 2), strides=(2, 2))
            return nn.Dense(10)(nn.relu(nn.Dense(64)(x.reshape(x.shape[0], -1))))

    network = Network()
    images, labels = _images()
    x, y = jnp.asarray(images), jnp.asarray(labels)
    variables = jax.jit(lambda key: network.init(key, x, True))(jax.random.key(0))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(variables["params"])

    @jax.jit
    def step(variables: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            out, new = network.apply({**variables, "params": params}, x, True, mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), new

        (value, new), slope = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        updates, state = optimizer.update(slope, state)
        return {"params": optax.apply_updates(variables["params"], updates), **new}, state, value

    def call() -> Any:
        new, _, value = step(variables, state, x, y)
        return value, new["batch_stats"]

    return call


@work("flax.nnx", "a step of Adam, two blocks of a transformer, 8 sequences of 32 tokens of 64 numbers")
def nnx_transformer() -> Callable[[], Any]:
    import jax.numpy as jnp
    import optax
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, width: int, rngs: Any) -> None:
            self.first, self.second = nnx.LayerNorm(width, rngs=rngs), nnx.LayerNorm(width, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(4, width, decode=False, rngs=rngs)
            self.up, self.down = nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = x + self.attention(self.first(x))
            return x + self.down(nnx.gelu(self.up(self.second(x))))

    class Network(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.embed = nnx.Embed(100, 64, rngs=rngs)
            self.blocks = nnx.List([Block(64, rngs), Block(64, rngs)])
            self.out = nnx.Linear(64, 100, rngs=rngs)

        def __call__(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            return self.out(x)

    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-5), wrt=nnx.Param)
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 100, (8, 33)).astype("i4"))

    @nnx.jit
    def step(model: Any, optimizer: Any, tokens: Any) -> Any:
        def loss(model: Any) -> Any:
            out = model(tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(out, tokens[:, 1:]).mean()

        value, slope = nnx.value_and_grad(loss)(model)
        optimizer.update(model, slope)
        return value

    losses = []

    def call() -> Any:
        value = step(model, optimizer, tokens)
        losses[:] = [*losses[:1], value][:2]  # parameters change with each call: the first loss is compared
        return losses[0], jnp.isfinite(value)

    return call


@work("haiku", "a step of Adam, two blocks of a causal transformer, 8 sequences of 32 tokens of 64 numbers")
def haiku_transformer() -> Callable[[], Any]:
    import haiku as hk
    import jax
    import jax.numpy as jnp
    import optax

    def network(tokens: Any) -> Any:
        x = hk.Embed(100, 64)(tokens)
        mask = np.tril(np.ones((1, 1, tokens.shape[1], tokens.shape[1])))
        init = hk.initializers.VarianceScaling(0.5)
        for _ in range(2):
            norm = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.MultiHeadAttention(4, 16, w_init=init, model_size=64)(norm, norm, norm, mask=mask)
            norm = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.Linear(64)(jax.nn.gelu(hk.Linear(256)(norm)))
        return hk.Linear(100)(x)

    transformed = hk.without_apply_rng(hk.transform(network))
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 100, (8, 33)).astype("i4"))
    params = jax.jit(transformed.init)(jax.random.PRNGKey(0), tokens[:, :-1])
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def step(params: Any, state: Any, tokens: Any) -> Any:
        def loss(params: Any) -> Any:
            out = transformed.apply(params, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(out, tokens[:, 1:]).mean()

        value, slope = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(slope, state)
        return optax.apply_updates(params, updates), state, value, optax.global_norm(slope)

    return lambda: step(params, state, tokens)[2:]


@work("distrax", "a step of Adam, a flow of four coupling layers with splines, 256 points of the plane", 5e-3)
def flow() -> Callable[[], Any]:
    import distrax
    import haiku as hk
    import jax
    import jax.numpy as jnp
    import optax

    bins = 8

    def density(x: Any) -> Any:
        layers = []
        for k in range(4):
            mask = jnp.arange(2) % 2 == k % 2

            def conditioner(x: Any) -> Any:
                h = hk.nets.MLP([32, 32], activate_final=True)(x)
                return hk.Reshape((2, 3 * bins + 1))(
                    hk.Linear(2 * (3 * bins + 1), w_init=hk.initializers.Constant(0.0))(h)
                )

            layers.append(
                distrax.MaskedCoupling(
                    mask=mask, conditioner=conditioner,
                    bijector=lambda p: distrax.RationalQuadraticSpline(p, range_min=-4.0, range_max=4.0),
                )
            )  # fmt: skip
        base = distrax.Independent(distrax.Normal(jnp.zeros(2), jnp.ones(2)), 1)
        return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers))).log_prob(x)

    transformed = hk.without_apply_rng(hk.transform(density))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(256, 2)).astype("f"))
    params = jax.jit(transformed.init)(jax.random.PRNGKey(0), x)
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def step(params: Any, state: Any, x: Any) -> Any:
        value, slope = jax.value_and_grad(lambda p: -transformed.apply(p, x).mean())(params)
        updates, state = optimizer.update(slope, state)
        return optax.apply_updates(params, updates), state, value, optax.global_norm(slope)

    return lambda: step(params, state, x)[2:]


@work("jraph", "a step of Adam, a graph network of 3 rounds, 400 nodes, 2,000 edges")
def graphs() -> Callable[[], Any]:
    import haiku as hk
    import jax
    import jax.numpy as jnp
    import jraph
    import optax

    rng = np.random.default_rng(0)
    nodes, edges = 400, 2000
    graph = jraph.GraphsTuple(
        nodes=jnp.asarray(rng.normal(size=(nodes, 16)).astype("f")),
        edges=jnp.asarray(rng.normal(size=(edges, 8)).astype("f")),
        senders=jnp.asarray(rng.integers(0, nodes, edges).astype("i4")),
        receivers=jnp.asarray(rng.integers(0, nodes, edges).astype("i4")),
        n_node=jnp.array([nodes]), n_edge=jnp.array([edges]), globals=jnp.zeros((1, 8)),
    )  # fmt: skip

    def network(graph: Any) -> Any:
        for _ in range(3):
            update = lambda size: jraph.concatenated_args(hk.nets.MLP([32, size]))
            graph = jraph.GraphNetwork(update(16), update(16), update(8))(graph)
        return graph

    transformed = hk.without_apply_rng(hk.transform(network))
    params = jax.jit(transformed.init)(jax.random.PRNGKey(0), graph)
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def step(params: Any, state: Any, graph: Any) -> Any:
        value, slope = jax.value_and_grad(lambda p: jnp.mean(transformed.apply(p, graph).nodes ** 2))(params)
        updates, state = optimizer.update(slope, state)
        return optax.apply_updates(params, updates), state, value, optax.global_norm(slope)

    return lambda: step(params, state, graph)[2:]
