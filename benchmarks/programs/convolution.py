"""Convolutions and pooling: forward, gradients, a step of training of a small network."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.program import Program


def _normal(*shapes):
    return lambda rng: tuple(rng.standard_normal(shape).astype("f4") for shape in shapes)


def _sizes(x, w, stride, padding, dilation, batch_first):
    """Extents of the result."""
    space = []
    for n, k in zip(x, w):
        reach = (k - 1) * dilation + 1
        pad = 0 if padding == "VALID" else max((-(-n // stride) - 1) * stride + reach - n, 0)
        space.append((n + pad - reach) // stride + 1)
    return space


def _conv(name, x, w, *, stride=1, padding="SAME", dilation=1, layout="first", groups=1, gradient=False, **more):
    """x: (batch, features, space...), w: (out, in / groups, window...); `layout` last: NHWC, HWIO."""
    n = len(x) - 2
    letters = "DHW"[3 - n :]
    first = ("NC" + letters, "OI" + letters, "NC" + letters)
    last = ("N" + letters + "C", letters + "IO", "N" + letters + "C")
    xs = x if layout == "first" else (x[0], *x[2:], x[1])
    ws = w if layout == "first" else (*w[2:], w[1], w[0])

    def jax_side(jax):
        def conv(a, k):
            return jax.lax.conv_general_dilated(
                a,
                k,
                (stride,) * n,
                padding,
                rhs_dilation=(dilation,) * n,
                dimension_numbers=first if layout == "first" else last,
                feature_group_count=groups,
            )

        return jax.grad(lambda a, k: (conv(a, k) ** 2).sum(), (0, 1)) if gradient else conv

    def torch_side(torch):
        functional = torch.nn.functional
        convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[n - 1]
        pads = []
        for size, k in zip(x[2:], w[2:]):
            reach = (k - 1) * dilation + 1
            total = 0 if padding == "VALID" else max((-(-size // stride) - 1) * stride + reach - size, 0)
            pads.append((total // 2, total - total // 2))
        even = all(a == b for a, b in pads)

        def conv(a, k):
            if layout == "last":
                a, k = a.movedim(-1, 1), k.permute(n + 1, n, *range(n))
            if not even:
                a = functional.pad(a, [p for pair in reversed(pads) for p in pair])
            out = convolve(
                a, k, stride=stride, padding=[p[0] for p in pads] if even else 0, dilation=dilation, groups=groups
            )
            return out if layout == "first" else out.movedim(1, -1)

        def both(a, k):
            a, k = a.detach().requires_grad_(), k.detach().requires_grad_()
            return torch.autograd.grad((conv(a, k) ** 2).sum(), (a, k))

        return both if gradient else conv

    work = 2 * x[0] * w[0] * math.prod(w[1:]) * math.prod(_sizes(x[2:], w[2:], stride, padding, dilation, True))
    return Program(
        name, inputs=_normal(xs, ws), jax=jax_side, torch=torch_side, operations=work * (3 if gradient else 1), **more
    )


def _transposed(name, x, w, stride, gradient=False, **more):
    """conv_transpose as it doubles images: x (batch, in, h, w), w (in, out, k, k)."""

    def jax_side(jax):
        def conv(a, k):
            return jax.lax.conv_transpose(
                a, k, (stride, stride), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"), transpose_kernel=True
            )

        return jax.grad(lambda a, k: (conv(a, k) ** 2).sum(), (0, 1)) if gradient else conv

    def torch_side(torch):
        k = w[2]
        pad = (k - stride) // 2

        def conv(a, kernel):
            return torch.nn.functional.conv_transpose2d(a, kernel, stride=stride, padding=pad)

        def both(a, kernel):
            a, kernel = a.detach().requires_grad_(), kernel.detach().requires_grad_()
            return torch.autograd.grad((conv(a, kernel) ** 2).sum(), (a, kernel))

        return both if gradient else conv

    work = 2 * math.prod(x) * math.prod(w[1:])
    return Program(
        name, inputs=_normal(x, w), jax=jax_side, torch=torch_side, operations=work * (3 if gradient else 1), **more
    )


def _pool(kind, shape, window, stride, gradient=False):
    """Pooling over the last two dimensions."""

    def jax_side(jax):
        lax = jax.lax
        full, steps = (1, 1, window, window), (1, 1, stride, stride)

        def pool(x):
            if kind == "max":
                return lax.reduce_window(x, -np.inf, lax.max, full, steps, "VALID")
            return lax.reduce_window(x, 0.0, lax.add, full, steps, "VALID") / window**2

        return jax.grad(lambda x: (pool(x) ** 2).sum()) if gradient else pool

    def torch_side(torch):
        f = torch.nn.functional.max_pool2d if kind == "max" else torch.nn.functional.avg_pool2d

        def both(x):
            x = x.detach().requires_grad_()
            return torch.autograd.grad((f(x, window, stride) ** 2).sum(), x)[0]

        return both if gradient else lambda x: f(x, window, stride)

    text = "x".join(map(str, shape))
    return Program(
        f"{'gradient of ' if gradient else ''}{kind} pooling {window} by {stride}, {text}",
        inputs=_normal(shape),
        jax=jax_side,
        torch=torch_side,
        operations=math.prod(shape),
    )


def _cnn(batch, side, channels, classes=10):
    """A gradient step of conv-relu-pool twice, then a dense layer."""
    a, b = channels
    flat = (side // 4) ** 2 * b
    shapes = ((a, 1, 3, 3), (b, a, 3, 3), (flat, classes))

    def inputs(rng):
        weights = [
            (rng.standard_normal(s) / math.sqrt(math.prod(s[1:]) if len(s) > 2 else s[0])).astype("f4") for s in shapes
        ]
        return weights, rng.standard_normal((batch, 1, side, side)).astype("f4"), rng.integers(0, classes, batch)

    def jax_side(jax):
        jnp, lax = jax.numpy, jax.lax

        def loss(weights, x, y):
            for k in weights[:2]:
                x = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME"))
                x = lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
            logits = x.reshape(x.shape[0], -1) @ weights[2]
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

        def step(weights, x, y):
            return jax.tree_util.tree_map(lambda w, g: w - 0.01 * g, weights, jax.grad(loss)(weights, x, y))

        return step

    def torch_side(torch):
        functional = torch.nn.functional

        def step(weights, x, y):
            weights = [w.detach().requires_grad_() for w in weights]
            for k in weights[:2]:
                x = functional.max_pool2d(torch.relu(functional.conv2d(x, k, padding=1)), 2)
            loss = functional.cross_entropy(x.flatten(1) @ weights[2], y)
            with torch.no_grad():
                return [w - 0.01 * g for w, g in zip(weights, torch.autograd.grad(loss, weights))]

        return step

    work = 2 * batch * (side**2 * a * 9 * 2 + (side // 2) ** 2 * a * b * 9 * 3 + flat * classes * 3)
    return Program(
        f"CNN step, {batch}x{side}x{side}, {a} and {b} channels",
        inputs=inputs,
        jax=jax_side,
        torch=torch_side,
        operations=work,
    )


def _scipy_convolve(x, k):
    from scipy.signal import convolve

    return convolve(x, k, mode="same")


def _convolve(n, m):
    return Program(
        f"scipy.signal.convolve of {n}x{n} and {m}x{m}",
        inputs=_normal((n, n), (m, m)),
        jax=lambda jax: (
            lambda x, k: __import__(f"{jax.__name__}.scipy.signal", fromlist=["x"]).convolve(x, k, mode="same")
        ),
        numpy=_scipy_convolve,
        operations=2 * (n * m) ** 2 if m < 20 else 0,
        thread=5227,
    )


def _in_loop(steps):
    """The convolution of a carry, inside a loop and written out."""
    shape, window = (1, 32, 32, 32), (32, 32, 3, 3)

    def looped(jax):
        def run(x, w):
            body = lambda _, y: jax.lax.conv_general_dilated(y, w, (1, 1), "SAME") * 0.05
            return jax.lax.fori_loop(0, steps, body, x)

        return run

    def straight(jax):
        def run(x, w):
            for _ in range(steps):
                x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") * 0.05
            return x

        return run

    def torch_side(torch):
        def run(x, w):
            for _ in range(steps):
                x = torch.nn.functional.conv2d(x, w, padding=1) * 0.05
            return x

        return run

    work = 2 * steps * math.prod(shape) * math.prod(window[1:])
    for text, side in (("in a loop", looped), ("written out", straight)):
        yield Program(
            f"{steps} convolutions {text}",
            inputs=_normal(shape, window),
            jax=side,
            torch=torch_side,
            operations=work,
            thread=12868,
        )


PROGRAMS = [
    _conv("conv 3x3, 8x3x64x64 to 32", (8, 3, 64, 64), (32, 3, 3, 3)),
    _conv("conv 3x3, 8x64x32x32 to 64", (8, 64, 32, 32), (64, 64, 3, 3)),
    _conv("conv 3x3, 1x128x28x28 to 128", (1, 128, 28, 28), (128, 128, 3, 3)),
    _conv("conv 3x3, 32x16x14x14 to 32", (32, 16, 14, 14), (32, 16, 3, 3)),
    _conv("conv 3x3, 32x1x28x28 to 16", (32, 1, 28, 28), (16, 1, 3, 3)),
    _conv("conv 3x3 NHWC, 8x64x32x32 to 64", (8, 64, 32, 32), (64, 64, 3, 3), layout="last"),
    _conv("conv 3x3 NHWC, 32x1x28x28 to 16", (32, 1, 28, 28), (16, 1, 3, 3), layout="last"),
    _conv("conv 7x7 stride 2, 4x3x112x112 to 32", (4, 3, 112, 112), (32, 3, 7, 7), stride=2),
    _conv("conv 3x3 stride 2, 8x32x32x32 to 64", (8, 32, 32, 32), (64, 32, 3, 3), stride=2),
    _conv("conv 3x3 dilation 2, 8x32x32x32 to 32", (8, 32, 32, 32), (32, 32, 3, 3), dilation=2),
    _conv("conv 1x1, 8x128x28x28 to 128", (8, 128, 28, 28), (128, 128, 1, 1)),
    _conv("conv 1x1 NHWC, 8x128x28x28 to 128", (8, 128, 28, 28), (128, 128, 1, 1), layout="last"),
    _conv("conv 5, 16x32x1000 to 32", (16, 32, 1000), (32, 32, 5)),
    _conv("conv 9, 1x1x100000 to 1", (1, 1, 100_000), (1, 1, 9)),
    _conv("conv 3x3x3, 2x8x32x32x32 to 16", (2, 8, 32, 32, 32), (16, 8, 3, 3, 3)),
    _conv("depthwise 3x3, 8x64x56x56", (8, 64, 56, 56), (64, 1, 3, 3), groups=64, thread=23713),
    _conv("depthwise 3x3 NHWC, 8x64x56x56", (8, 64, 56, 56), (64, 1, 3, 3), groups=64, layout="last", thread=23713),
    _conv("grouped 3x3, 8x64x32x32 in 8", (8, 64, 32, 32), (64, 8, 3, 3), groups=8),
    _conv("gradient of conv 3x3, 8x32x32x32 to 32", (8, 32, 32, 32), (32, 32, 3, 3), gradient=True),
    _conv("gradient of conv 3x3, 32x1x28x28 to 16", (32, 1, 28, 28), (16, 1, 3, 3), gradient=True),
    _conv("gradient of conv 3x3 NHWC, 8x32x32x32", (8, 32, 32, 32), (32, 32, 3, 3), layout="last", gradient=True),
    _conv("gradient of conv 3x3 stride 2, 8x32x32x32", (8, 32, 32, 32), (32, 32, 3, 3), stride=2, gradient=True),
    _conv(
        "gradient of depthwise 3x3, 8x64x28x28", (8, 64, 28, 28), (64, 1, 3, 3), groups=64, gradient=True, thread=23713
    ),
    _transposed("transposed conv 4x4 stride 2, 8x64x16x16 to 32", (8, 64, 16, 16), (64, 32, 4, 4), 2, thread=23783),
    _transposed(
        "gradient of transposed conv, 8x32x16x16", (8, 32, 16, 16), (32, 16, 4, 4), 2, gradient=True, thread=23783
    ),
    _pool("max", (32, 16, 28, 28), 2, 2),
    _pool("max", (8, 64, 56, 56), 3, 2),
    _pool("average", (32, 16, 28, 28), 2, 2),
    _pool("average", (8, 64, 56, 56), 2, 2),
    _pool("max", (32, 16, 28, 28), 2, 2, gradient=True),
    _pool("average", (32, 16, 28, 28), 2, 2, gradient=True),
    _cnn(32, 28, (16, 32)),
    _cnn(128, 28, (8, 16)),
    _convolve(300, 300),
    _convolve(300, 9),
    *_in_loop(10),
]
