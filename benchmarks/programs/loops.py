"""Programs whose time is in loops: simulations, recurrent networks, filters, samplers, solvers; many small steps.

PyTorch has no compiled loop to compare with: its sides are Python loops over eager operations, given where the number
of steps is small enough for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..program import Program


def _f32(*arrays: np.ndarray) -> tuple:
    return tuple(np.asarray(a, np.float32) for a in arrays)


# ----------------------------------------------------------------------------------------------- differential equations


def _lorenz_step(jnp: Any, state: Any, dt: float = 0.01) -> Any:
    """One Runge-Kutta step of the Lorenz equations; `state` is f[3] or f[3, n]."""

    def field(s):
        return jnp.stack([10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8.0 / 3.0 * s[2]])

    k1 = field(state)
    k2 = field(state + 0.5 * dt * k1)
    k3 = field(state + 0.5 * dt * k2)
    k4 = field(state + dt * k3)
    return state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def _lorenz(steps: int):
    def make(jax: Any):
        def run(state):
            return jax.lax.scan(lambda s, _: (_lorenz_step(jax.numpy, s), None), state, None, length=steps)[0]

        return run

    return make


def _lorenz_gradient(steps: int):
    def make(jax: Any):
        run = _lorenz(steps)(jax)
        return jax.grad(lambda s: (run(s) ** 2).sum())

    return make


def _lorenz_path(steps: int):
    def make(jax: Any):
        def run(state):
            def step(s, _):
                s = _lorenz_step(jax.numpy, s)
                return s, s

            return jax.lax.scan(step, state, None, length=steps)[1]

        return run

    return make


def _lorenz_numpy(steps: int):
    def run(state):
        for _ in range(steps):
            state = _lorenz_step(np, state)
        return state

    return run


def _lorenz_torch(steps: int):
    def make(torch: Any):
        def run(state):
            for _ in range(steps):
                state = _lorenz_step(torch, state)
            return state

        return run

    return make


def _adaptive(jax: Any):
    """Van der Pol's oscillator to t = 10 by Heun-Euler pairs with step control: f[2] -> (f[2], steps)."""
    jnp, lax = jax.numpy, jax.lax

    def field(y):
        return jnp.stack([y[1], 5.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])

    def solve(y):
        def going(state):
            return state[0] < 10.0

        def step(state):
            t, dt, y, count = state
            k1 = field(y)
            k2 = field(y + dt * k1)
            new = y + 0.5 * dt * (k1 + k2)
            error = jnp.max(jnp.abs(0.5 * dt * (k2 - k1)) / (1e-4 + 1e-4 * jnp.abs(new)))
            accept = error < 1.0
            factor = jnp.clip(0.9 / jnp.sqrt(error), 0.2, 5.0)
            next_t = jnp.where(accept, t + dt, t)
            return next_t, jnp.minimum(dt * factor, 10.0 - next_t + 1e-6), jnp.where(accept, new, y), count + 1

        _, _, y, count = lax.while_loop(going, step, (jnp.float32(0), jnp.float32(0.01), y, 0))
        return y, count

    return solve


def _heat(steps: int):
    """Explicit heat equation on a square with fixed edges."""

    def make(jax: Any):
        def run(u):
            def step(_, u):
                inside = u[1:-1, 1:-1]
                around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
                return u.at[1:-1, 1:-1].set(inside + 0.2 * (around - 4.0 * inside))

            return jax.lax.fori_loop(0, steps, step, u)

        return run

    return make


def _heat_numpy(steps: int):
    def run(u):
        u = u.copy()
        for _ in range(steps):
            inside = u[1:-1, 1:-1]
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            u[1:-1, 1:-1] = inside + 0.2 * (around - 4.0 * inside)
        return u

    return run


def _n_body(steps: int):
    """Leapfrog steps of n bodies under softened gravity: positions and velocities f[n, 3]."""

    def make(jax: Any):
        jnp = jax.numpy

        def force(x):
            d = x[None, :, :] - x[:, None, :]
            return (d / ((d**2).sum(-1, keepdims=True) + 0.01) ** 1.5).sum(1) / x.shape[0]

        def run(x, v):
            def step(state, _):
                x, v, a = state
                v = v + 0.005 * a
                x = x + 0.01 * v
                a = force(x)
                return (x, v + 0.005 * a, a), jnp.sum(v**2)

            return jax.lax.scan(step, (x, v, force(x)), None, length=steps)

        return run

    return make


# -------------------------------------------------------------------------------------------------- recurrent networks


def _gru_weights(rng: Any, inputs: int, hidden: int) -> tuple:
    scale = 1.0 / np.sqrt(hidden)
    return _f32(
        rng.uniform(-scale, scale, (inputs, 3 * hidden)),
        rng.uniform(-scale, scale, (hidden, 3 * hidden)),
        rng.uniform(-scale, scale, 3 * hidden),
    )


def _gru_step(np_: Any, sigmoid: Any, w: tuple, h: Any, x: Any) -> Any:
    n = h.shape[-1]
    a, b = x @ w[0] + w[2], h @ w[1]
    update = sigmoid(a[..., :n] + b[..., :n])
    reset = sigmoid(a[..., n : 2 * n] + b[..., n : 2 * n])
    new = np_.tanh(a[..., 2 * n :] + reset * b[..., 2 * n :])
    return update * h + (1.0 - update) * new


def _gru(jax: Any):
    def run(w, h, xs):
        def step(h, x):
            h = _gru_step(jax.numpy, jax.nn.sigmoid, w, h, x)
            return h, h

        return jax.lax.scan(step, h, xs)[1]

    return run


def _gru_gradient(jax: Any):
    run = _gru(jax)
    return jax.value_and_grad(lambda w, h, xs: (run(w, h, xs) ** 2).mean())


def _gru_torch(torch: Any):
    def run(w, h, xs):
        hs = []
        for x in xs:
            h = _gru_step(torch, torch.sigmoid, w, h, x)
            hs.append(h)
        return torch.stack(hs)

    return run


def _gru_torch_gradient(torch: Any):
    run = _gru_torch(torch)

    def both(w, h, xs):
        w = tuple(v.detach().requires_grad_() for v in w)
        loss = (run(w, h, xs) ** 2).mean()
        return loss.detach(), torch.autograd.grad(loss, w)

    return both


def _sigmoid_numpy(x):
    return 1.0 / (1.0 + np.exp(-x))


def _gru_numpy(w, h, xs):
    hs = []
    for x in xs:
        h = _gru_step(np, _sigmoid_numpy, w, h, x)
        hs.append(h)
    return np.stack(hs)


def _gru_inputs(steps: int, batch: tuple[int, ...], inputs: int, hidden: int):
    def make(rng):
        return (
            _gru_weights(rng, inputs, hidden),
            *_f32(np.zeros((*batch, hidden)), rng.standard_normal((steps, *batch, inputs))),
        )

    return make


def _lstm_inputs(steps: int, batch: tuple[int, ...], inputs: int, hidden: int):
    def make(rng):
        scale = 1.0 / np.sqrt(hidden)
        weights = _f32(
            rng.uniform(-scale, scale, (inputs, 4 * hidden)),
            rng.uniform(-scale, scale, (hidden, 4 * hidden)),
            rng.uniform(-scale, scale, 4 * hidden),
        )
        zero = np.zeros((*batch, hidden), np.float32)
        return weights, (zero, zero), *_f32(rng.standard_normal((steps, *batch, inputs)))

    return make


def _lstm_step(np_: Any, sigmoid: Any, w: tuple, state: tuple, x: Any) -> tuple:
    h, c = state
    n = h.shape[-1]
    gates = x @ w[0] + h @ w[1] + w[2]
    i, f = sigmoid(gates[..., :n]), sigmoid(gates[..., n : 2 * n])
    g, o = np_.tanh(gates[..., 2 * n : 3 * n]), sigmoid(gates[..., 3 * n :])
    c = f * c + i * g
    return o * np_.tanh(c), c


def _lstm(jax: Any):
    def run(w, state, xs):
        def step(state, x):
            state = _lstm_step(jax.numpy, jax.nn.sigmoid, w, state, x)
            return state, state[0]

        return jax.lax.scan(step, state, xs)[1]

    return run


def _lstm_gradient(jax: Any):
    run = _lstm(jax)
    return jax.value_and_grad(lambda w, state, xs: (run(w, state, xs) ** 2).mean())


def _lstm_torch(torch: Any):
    def run(w, state, xs):
        hs = []
        for x in xs:
            state = _lstm_step(torch, torch.sigmoid, w, state, x)
            hs.append(state[0])
        return torch.stack(hs)

    return run


def _lstm_torch_gradient(torch: Any):
    run = _lstm_torch(torch)

    def both(w, state, xs):
        w = tuple(v.detach().requires_grad_() for v in w)
        loss = (run(w, state, xs) ** 2).mean()
        return loss.detach(), torch.autograd.grad(loss, w)

    return both


# ------------------------------------------------------------------------------------------------- filters and samplers


def _kalman(jax: Any):
    """Filtered means and the log-likelihood of a linear Gaussian model: state 4, observation 2."""
    jnp = jax.numpy

    def run(a, q, h, r, ys):
        def step(carry, y):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + q
            v, s = y - h @ m, h @ p @ h.T + r
            det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
            gain = p @ h.T @ inverse
            m, p = m + gain @ v, p - gain @ h @ p
            return (m, p), (m, -0.5 * (jnp.log(det) + v @ inverse @ v))

        _, (means, terms) = jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)
        return means, terms.sum()

    return run


def _kalman_gradient(jax: Any):
    run = _kalman(jax)
    return jax.grad(lambda q, a, h, r, ys: run(a, q, h, r, ys)[1])


def _kalman_solve(jax: Any):
    """The same with a solve by Cholesky factors, as most write it."""
    jnp = jax.numpy

    def run(a, q, h, r, ys):
        def step(carry, y):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + q
            v, s = y - h @ m, h @ p @ h.T + r
            gain = jnp.linalg.solve(s, h @ p).T
            m, p = m + gain @ v, p - gain @ h @ p
            return (m, p), m

        return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1]

    return run


def _kalman_numpy(a, q, h, r, ys):
    m, p = np.zeros(4, np.float32), np.eye(4, dtype=np.float32)
    means, total = [], np.float32(0)
    for y in ys:
        m, p = a @ m, a @ p @ a.T + q
        v, s = y - h @ m, h @ p @ h.T + r
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = np.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
        gain = p @ h.T @ inverse
        m, p = m + gain @ v, p - gain @ h @ p
        means.append(m)
        total += -0.5 * (np.log(det) + v @ inverse @ v)
    return np.stack(means), total


def _kalman_inputs(rng):
    a = np.eye(4) + 0.1 * np.eye(4, k=2)
    h = np.eye(2, 4)
    return _f32(a, 0.01 * np.eye(4), h, 0.1 * np.eye(2), rng.standard_normal((500, 2)))


def _hmm(jax: Any):
    """Log-likelihood of a hidden Markov chain of 16 states, by the forward recursion in logarithms."""
    jnp = jax.numpy

    def run(transitions, emissions, observed):
        def step(alpha, y):
            alpha = jax.nn.logsumexp(alpha[:, None] + transitions, axis=0) + emissions[:, y]
            return alpha, None

        start = jnp.full(16, -np.log(16.0), jnp.float32)
        return jax.nn.logsumexp(jax.lax.scan(step, start, observed)[0])

    return run


def _hmm_inputs(rng):
    log_softmax = lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))
    return (
        *_f32(log_softmax(rng.standard_normal((16, 16))), log_softmax(rng.standard_normal((16, 20)))),
        rng.integers(0, 20, 500).astype(np.int32),
    )


def _hmc(samples: int, n: int, d: int):
    """Hamiltonian Monte Carlo on logistic regression: 10 leapfrog steps a sample, noise given."""

    def make(jax: Any):
        jnp, lax = jax.numpy, jax.lax

        def run(x, y, start, momenta, uniforms):
            def energy(w):
                logits = x @ w
                return (jnp.logaddexp(0.0, logits) - y * logits).sum() + 0.5 * (w**2).sum()

            gradient = jax.grad(energy)

            def sample(w, noise):
                p0, u = noise

                def leap(_, state):
                    w, p = state
                    p = p - 0.01 * gradient(w)
                    w = w + 0.02 * p
                    return w, p - 0.01 * gradient(w)

                new, p = lax.fori_loop(0, 10, leap, (w, p0))
                change = energy(w) + 0.5 * (p0**2).sum() - energy(new) - 0.5 * (p**2).sum()
                w = jnp.where(jnp.log(u) < change, new, w)
                return w, w

            return lax.scan(sample, start, (momenta, uniforms))[1]

        return run

    def inputs(rng):
        x = rng.standard_normal((n, d))
        y = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-x @ rng.standard_normal(d)))
        return _f32(x, y, np.zeros(d), rng.standard_normal((samples, d)), rng.uniform(size=samples))

    return make, inputs


# ------------------------------------------------------------------------------------------------------ solvers


def _newton(jax: Any):
    """Cube roots by a while loop with its own stop for each element."""
    jnp, lax = jax.numpy, jax.lax

    def root(a):
        def going(state):
            x, last, k = state
            return (jnp.abs(x - last) > 1e-6 * jnp.abs(x)) & (k < 50)

        def step(state):
            x, _, k = state
            return x - (x**3 - a) / (3.0 * x**2), x, k + 1

        return lax.while_loop(going, step, (a, jnp.zeros_like(a), 0))[0]

    return jax.vmap(root)


def _newton_numpy(a):
    x, last, k = a.copy(), np.zeros_like(a), 0
    while True:
        going = np.abs(x - last) > 1e-6 * np.abs(x)
        if not going.any() or k >= 50:
            return x
        x, last, k = np.where(going, x - (x**3 - a) / (3.0 * x**2), x), np.where(going, x, last), k + 1


def _mandelbrot(jax: Any):
    jnp = jax.numpy

    def run(re, im):
        def step(_, state):
            x, y, count = state
            inside = x * x + y * y <= 4.0
            x, y = jnp.where(inside, x * x - y * y + re, x), jnp.where(inside, 2.0 * x * y + im, y)
            return x, y, count + inside

        start = (jnp.zeros_like(re), jnp.zeros_like(re), jnp.zeros(re.shape, jnp.int32))
        return jax.lax.fori_loop(0, 100, step, start)[2]

    return run


def _mandelbrot_numpy(re, im):
    x, y, count = np.zeros_like(re), np.zeros_like(re), np.zeros(re.shape, np.int32)
    for _ in range(100):
        inside = x * x + y * y <= 4.0
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2.0 * x * y + im, y)
        count += inside
    return count


def _conjugate_gradient(jax: Any):
    jnp = jax.numpy

    def run(a, b):
        def going(state):
            _, r, _, k = state
            return ((r @ r) > 1e-8) & (k < 100)

        def step(state):
            x, r, p, k = state
            ap = a @ p
            rr = r @ r
            alpha = rr / (p @ ap)
            new = r - alpha * ap
            return x + alpha * p, new, new + (new @ new) / rr * p, k + 1

        return jax.lax.while_loop(going, step, (jnp.zeros_like(b), b, b, 0))[0]

    return run


def _conjugate_gradient_numpy(a, b):
    x, r, p = np.zeros_like(b), b, b
    for _ in range(100):
        rr = r @ r
        if rr <= 1e-8:
            break
        ap = a @ p
        alpha = rr / (p @ ap)
        r = r - alpha * ap
        x, p = x + alpha * p, r + (r @ r) / rr * p
    return x


def _spd(n: int):
    def inputs(rng):
        x = rng.standard_normal((n, 2 * n))
        return _f32(x @ x.T / n + np.eye(n), rng.standard_normal(n))

    return inputs


def _power(jax: Any):
    def run(a, x):
        def step(_, x):
            x = a @ x
            return x / jax.numpy.sqrt((x**2).sum())

        return jax.lax.fori_loop(0, 200, step, x)

    return run


def _power_numpy(a, x):
    for _ in range(200):
        x = a @ x
        x = x / np.sqrt((x**2).sum())
    return x


def _sinkhorn(jax: Any):
    def run(costs):
        def step(_, state):
            f, g = state
            f = -jax.nn.logsumexp(g[None, :] - costs, axis=1)
            return f, -jax.nn.logsumexp(f[:, None] - costs, axis=0)

        zero = jax.numpy.zeros(costs.shape[0], costs.dtype)
        return jax.lax.fori_loop(0, 50, step, (zero, zero))

    return run


# ------------------------------------------------------------------------------------------- running sums, recurrences


def _running_sum(jax: Any):
    def run(xs):
        def step(total, x):
            total = total + x
            return total, total

        return jax.lax.scan(step, jax.numpy.zeros(xs.shape[1:], xs.dtype), xs)[1]

    return run


def _average(jax: Any):
    """Exponential moving average and variance of a long series."""

    def run(xs):
        def step(state, x):
            mean, variance = state
            d = x - mean
            mean = mean + 0.1 * d
            variance = 0.9 * (variance + 0.1 * d * d)
            return (mean, variance), (mean, variance)

        return jax.lax.scan(step, (xs[0], jax.numpy.zeros_like(xs[0])), xs)[1]

    return run


def _recurrence(jax: Any):
    """x[t] = a[t] x[t-1] + b[t] by an associative scan."""

    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    return lambda a, b: jax.lax.associative_scan(combine, (a, b))[1]


def _recurrence_numpy(a, b):
    out, x = np.empty_like(b), np.zeros_like(b[0])
    for t in range(len(b)):
        x = a[t] * x + b[t]
        out[t] = x
    return out


def _returns(jax: Any):
    """Discounted sums from the end (generalized advantages), reversed."""

    def run(rewards, values):
        def step(advantage, x):
            reward, value, following = x
            advantage = reward + 0.99 * following - value + 0.95 * advantage
            return advantage, advantage

        following = jax.numpy.concatenate([values[1:], jax.numpy.zeros_like(values[:1])])
        start = jax.numpy.zeros(rewards.shape[1:], rewards.dtype)
        return jax.lax.scan(step, start, (rewards, values, following), reverse=True)[1]

    return run


def _fill(jax: Any):
    """A table filled row by row."""

    def run(table, row):
        def step(i, state):
            table, row = state
            row = 0.5 * row + 0.1 * table[i]
            return jax.lax.dynamic_update_slice(table, row[None], (i, 0)), row

        return jax.lax.fori_loop(0, table.shape[0], step, (table, row))[0]

    return run


def _fill_gradient(jax: Any):
    run = _fill(jax)
    return jax.grad(lambda table, row: (run(table, row) ** 2).sum(), argnums=(0, 1))


def _fill_numpy(table, row):
    table = table.copy()
    for i in range(len(table)):
        row = 0.5 * row + 0.1 * table[i]
        table[i] = row
    return table


def _edit_distance(jax: Any):
    """Dynamic programming over two words, row by row, with a scan in a scan."""
    jnp, lax = jax.numpy, jax.lax

    def run(left, right):
        def row(previous, letter):
            def cell(before, k):
                best = jnp.minimum(before + 1, previous[k + 1] + 1)
                best = jnp.minimum(best, previous[k] + (right[k] != letter))
                return best, best

            first = previous[0] + 1
            _, rest = lax.scan(cell, first, jnp.arange(right.shape[0]))
            return jnp.concatenate([first[None], rest]), None

        start = jnp.arange(right.shape[0] + 1)
        return lax.scan(row, start, left)[0][-1]

    return run


def _sieve(jax: Any):
    jnp = jax.numpy

    def run(flags):
        index = jnp.arange(flags.shape[0])

        def step(i, flags):
            return jnp.where(flags[i] & (index > i) & (index % jnp.maximum(i, 1) == 0), False, flags)

        return jax.lax.fori_loop(2, 100, step, flags)

    return run


# --------------------------------------------------------------------------------------- complaints about the original


def _products_3x3(jax: Any):
    def run(state, rotation):
        return jax.lax.scan(lambda s, _: (s @ rotation, None), state, None, length=2000)[0]

    return run


def _products_3x3_numpy(state, rotation):
    for _ in range(2000):
        state = state @ rotation
    return state


def _normed_3x3(jax: Any):
    def run(state, rotation):
        def step(s, _):
            s = rotation @ s
            return s / jax.numpy.sqrt((s * s).sum()), None

        return jax.lax.scan(step, state, None, length=2000)[0]

    return run


def _normed_3x3_numpy(state, rotation):
    for _ in range(2000):
        state = rotation @ state
        state = state / np.sqrt((state * state).sum())
    return state


def _stacked(jax: Any):
    def run(x):
        def step(c, _):
            c = c * 0.999 + 1.0
            return c, c

        return jax.lax.scan(step, x, None, length=10_000_000)[1]

    return run


def _writes(n: int):
    def make(jax: Any):
        def run(x):
            def step(i, x):
                return x.at[i].set(jax.numpy.sin(x[i]) + x[i])

            return jax.lax.fori_loop(0, n, step, x)

        return run

    return make


def _writes_gradient(n: int):
    def make(jax: Any):
        run = _writes(n)(jax)
        return jax.grad(lambda x: (run(x) ** 2).sum())

    return make


def _row_writes(jax: Any):
    """Every row from the one before: the carry is the whole matrix."""

    def run(x):
        def step(i, x):
            return x.at[i + 1].set(jax.numpy.tanh(x[i]) + x[i + 1])

        return jax.lax.fori_loop(0, x.shape[0] - 1, step, x)

    return run


def _row_writes_gradient(jax: Any):
    run = _row_writes(jax)
    return jax.grad(lambda x: run(x).sum())


def _unrolled(steps: int):
    def make(jax: Any):
        if steps > 20 and jax.__name__ == "jax":
            raise NotImplementedError("takes minutes to compile from about 25 steps on")

        def loss(x):
            for _ in range(steps):
                x = jax.numpy.sin(x) * 1.01 + 0.1 * x[::-1]
            return x.sum()

        return jax.grad(loss)

    return make


def _normal(*shape: int):
    return lambda rng: _f32(rng.standard_normal(shape))


_HMC_SMALL, _HMC_SMALL_INPUTS = _hmc(50, 100, 5)
_HMC, _HMC_INPUTS = _hmc(50, 1000, 20)

PROGRAMS = [
    Program("Lorenz RK4, 1000 steps", _normal(3), _lorenz(1000)),
    Program("Lorenz RK4, 100 steps", _normal(3), _lorenz(100), _lorenz_numpy(100), _lorenz_torch(100)),
    Program("Lorenz RK4 gradient, 100 steps", _normal(3), _lorenz_gradient(100)),
    Program("Lorenz RK4 gradient, 500 steps", _normal(3), _lorenz_gradient(500), tolerance=None),
    Program("Lorenz RK4 of 256, 100 steps", _normal(3, 256), _lorenz(100), _lorenz_numpy(100), _lorenz_torch(100)),
    Program("Lorenz RK4 path, 2000 steps", _normal(3), _lorenz_path(2000), tolerance=None),
    Program("Van der Pol, adaptive steps", lambda rng: _f32(np.array([2.0, 0.0])), _adaptive),
    Program("heat equation 64 x 64, 100 steps", _normal(64, 64), _heat(100), _heat_numpy(100)),
    Program("heat equation 512 x 512, 20 steps", _normal(512, 512), _heat(20), _heat_numpy(20)),
    Program("32 bodies, 50 steps", lambda rng: _f32(rng.standard_normal((32, 3)), np.zeros((32, 3))), _n_body(50)),
    Program("GRU 8-32, 100 steps", _gru_inputs(100, (), 8, 32), _gru, _gru_numpy, _gru_torch),
    Program("GRU 8-32 gradient, 100 steps", _gru_inputs(100, (), 8, 32), _gru_gradient, torch=_gru_torch_gradient),
    Program("GRU 16-64 of 64, 50 steps", _gru_inputs(50, (64,), 16, 64), _gru, _gru_numpy, _gru_torch),
    Program(
        "GRU 16-64 of 64 gradient, 50 steps", _gru_inputs(50, (64,), 16, 64), _gru_gradient, torch=_gru_torch_gradient
    ),
    Program("GRU 4-8 of 8 gradient, 100 steps", _gru_inputs(100, (8,), 4, 8), _gru_gradient, torch=_gru_torch_gradient),
    Program("LSTM 8-32, 100 steps", _lstm_inputs(100, (), 8, 32), _lstm, torch=_lstm_torch),
    Program(
        "LSTM 16-64 of 32 gradient, 50 steps",
        _lstm_inputs(50, (32,), 16, 64),
        _lstm_gradient,
        torch=_lstm_torch_gradient,
    ),
    Program(
        "LSTM 64-128 of 64 gradient, 20 steps",
        _lstm_inputs(20, (64,), 64, 128),
        _lstm_gradient,
        torch=_lstm_torch_gradient,
    ),
    Program("Kalman filter, 500 steps", _kalman_inputs, _kalman, _kalman_numpy),
    Program(
        "Kalman filter gradient, 500 steps",
        lambda rng: (lambda a, q, h, r, ys: (q, a, h, r, ys))(*_kalman_inputs(rng)),
        _kalman_gradient,
    ),
    Program("Kalman filter with solve, 500 steps", _kalman_inputs, _kalman_solve),
    Program("hidden Markov chain, 500 steps", _hmm_inputs, _hmm),
    Program("hidden Markov chain gradient, 500 steps", _hmm_inputs, lambda jax: jax.grad(_hmm(jax))),
    Program("HMC, logistic regression 100 x 5", _HMC_SMALL_INPUTS, _HMC_SMALL),
    Program("HMC, logistic regression 1000 x 20", _HMC_INPUTS, _HMC),
    Program("Newton by vmapped while, 1000", lambda rng: _f32(rng.uniform(0.1, 100, 1000)), _newton, _newton_numpy),
    Program("Newton by vmapped while, 1e5", lambda rng: _f32(rng.uniform(0.1, 100, 100_000)), _newton, _newton_numpy),
    Program(
        "Mandelbrot 200 x 200",
        lambda rng: _f32(*np.meshgrid(np.linspace(-2, 0.5, 200), np.linspace(-1.2, 1.2, 200))),
        _mandelbrot,
        _mandelbrot_numpy,
    ),
    Program("conjugate gradients 32", _spd(32), _conjugate_gradient, _conjugate_gradient_numpy),
    Program("conjugate gradients 500", _spd(500), _conjugate_gradient, _conjugate_gradient_numpy),
    Program("power iteration 64", _spd(64), _power, _power_numpy),
    Program("Sinkhorn 100 x 100", _normal(100, 100), _sinkhorn),
    Program("running sum by scan, 1e5", _normal(100_000), _running_sum, lambda x: np.cumsum(x, dtype=np.float32)),
    Program("running sum by scan, 1000 x 256", _normal(1000, 256), _running_sum, lambda x: np.cumsum(x, 0)),
    Program("moving average by scan, 1e5", _normal(100_000), _average),
    Program(
        "linear recurrence by associative_scan, 1e5",
        lambda rng: _f32(rng.uniform(0, 1, 100_000), rng.standard_normal(100_000)),
        _recurrence,
    ),
    Program(
        "linear recurrence by associative_scan, 1000 x 64",
        lambda rng: _f32(rng.uniform(0, 1, (1000, 64)), rng.standard_normal((1000, 64))),
        _recurrence,
        _recurrence_numpy,
    ),
    Program("advantages, 1000 x 16", lambda rng: _f32(*rng.standard_normal((2, 1000, 16))), _returns),
    Program(
        "rows of 64 filled by update slices, 1000",
        lambda rng: _f32(rng.standard_normal((1000, 64)), rng.standard_normal(64)),
        _fill,
        _fill_numpy,
    ),
    Program(
        "rows of 64 filled by update slices, 1000, gradient",
        lambda rng: _f32(rng.standard_normal((1000, 64)), rng.standard_normal(64)),
        _fill_gradient,
    ),
    Program(
        "edit distance 200 x 200", lambda rng: tuple(rng.integers(0, 4, (2, 200)).astype(np.int32)), _edit_distance
    ),
    Program("sieve to 10,000", lambda rng: (np.ones(10_000, bool),), _sieve),
    Program(
        "scan of 2,000 products of 3 x 3",
        lambda rng: (np.eye(3), np.linalg.qr(rng.standard_normal((3, 3)))[0]),
        _products_3x3,
        _products_3x3_numpy,
        x64=True,
        thread=36799,
    ),
    Program(
        "scan of 2,000 normed products of 3 x 3",
        lambda rng: (np.eye(3), np.linalg.qr(rng.standard_normal((3, 3)))[0]),
        _normed_3x3,
        _normed_3x3_numpy,
        x64=True,
    ),
    Program("scan of 1e7 stacked steps", lambda rng: (np.float32(1.0),), _stacked, limit=0.1, bytes=4e7, thread=40101),
    Program("element writes into a carry, 10,000", _normal(10_000), _writes(10_000), thread=17640),
    Program("element writes into a carry, 10,000, gradient", _normal(10_000), _writes_gradient(10_000), thread=17640),
    Program("row writes into a carry, 500 x 100", _normal(500, 100), _row_writes, thread=17845),
    Program("row writes into a carry, 500 x 100, gradient", _normal(500, 100), _row_writes_gradient, thread=17845),
    Program("gradient of 20 unrolled steps with reversal", _normal(64), _unrolled(20), thread=2777),
    Program("gradient of 50 unrolled steps with reversal", _normal(64), _unrolled(50), limit=1e-4, thread=2777),
]
