"""Layers of neural networks as pairs of functions.

A layer is (init_fun, apply_fun):

    init_fun(rng, input_shape) -> (output_shape, params)
    apply_fun(params, inputs, **kwargs) -> outputs           kwargs: `rng`, which Dropout needs

Layers with parameters are made by functions (`Dense(64)`), the others are there to be used (`Relu`); `serial` and
`parallel` make a layer of several. Sizes of input_shape that are not known yet, such as that of the batch, may be -1.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pullback.numpy as jnp
from pullback import lax, nn, random
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.example_libraries.stax import PAGES as _PAGES
from pullback.nn import (  # noqa: F401
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from pullback.nn import log_softmax as logsoftmax
from pullback.nn.initializers import glorot_normal, normal, ones, zeros
from pullback.nn.initializers import glorot_normal as glorot
from pullback.nn.initializers import normal as randn
from pullback.util.absent import listed as _listed

__all__ = [
    "glorot",
    "logsoftmax",
    "randn",
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "parallel",
    "serial",
    "shape_dependent",
]

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]


def _without_params(output_shape: Callable[[Any], Any], apply: Callable[[Any], Any]) -> Layer:
    """The layer of a function of the inputs."""

    def init_fun(_rng: Any, input_shape: Any) -> tuple[Any, tuple[()]]:
        return output_shape(input_shape), ()

    def apply_fun(_params: Any, inputs: Any, **_: Any) -> Any:
        return apply(inputs)

    return init_fun, apply_fun


def _same(value: Any) -> Any:
    return value


# ------------------------------------------------------------------------------------------------ layers with weights


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """x W + b with W: f[n, out_dim], b: f[out_dim] for inputs of shape [..., n].

    W_init is Glorot's normal initializer unless given, b_init normal with standard deviation .01.
    """
    weights, biases = W_init or glorot_normal(), b_init or normal()

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, tuple[Any, Any]]:
        for_weights, for_biases = random.split(rng)
        params = weights(for_weights, (input_shape[-1], out_dim)), biases(for_biases, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.dot(inputs, params[0]) + params[1]

    return init_fun, apply_fun


def _convolution(
    name: str, convolve: Callable[..., Any], shape_of: Callable[..., Any], doc: str
) -> Callable[..., Layer]:
    def layer(
        dimension_numbers: tuple[str, str, str],
        out_chan: int,
        filter_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        W_init: Any = None,
        b_init: Any = None,
    ) -> Layer:
        inputs_spec, filter_spec, outputs_spec = dimension_numbers
        if len(filter_shape) != len(inputs_spec) - 2:
            raise ValueError(
                f"{name}: filter_shape {tuple(filter_shape)} has {len(filter_shape)} sizes, but {inputs_spec!r} has "
                f"{len(inputs_spec) - 2} spatial dimensions"
            )
        steps = tuple(strides or (1,) * len(filter_shape))
        weights = W_init or glorot_normal(filter_spec.index("O"), filter_spec.index("I"))
        biases = b_init or normal(1e-6)

        def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, tuple[Any, Any]]:
            space = iter(filter_shape)
            channels = {"O": out_chan, "I": input_shape[inputs_spec.index("C")]}
            kernel_shape = tuple(channels[c] if c in channels else next(space) for c in filter_spec)
            bias_shape = tuple(out_chan if c == "C" else 1 for c in outputs_spec)
            for_weights, for_biases = random.split(rng)
            output_shape = shape_of(input_shape, kernel_shape, steps, padding, dimension_numbers)
            return tuple(map(int, output_shape)), (weights(for_weights, kernel_shape), biases(for_biases, bias_shape))

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            return convolve(inputs, params[0], steps, padding, dimension_numbers=dimension_numbers) + params[1]

        return init_fun, apply_fun

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"{doc} ValueError if filter_shape has not one size per spatial dimension."
    return layer


GeneralConv = _convolution(
    "GeneralConv",
    lax.conv_general_dilated,
    lax.conv_general_shape_tuple,
    "A convolution with a bias per channel; dimension_numbers are the layouts of inputs, weights and outputs.",
)
GeneralConvTranspose = _convolution(
    "GeneralConvTranspose",
    lax.conv_transpose,
    lax.conv_transpose_shape_tuple,
    "A transposed convolution with a bias per channel; dimension_numbers as for GeneralConv.",
)

_IMAGES = "NHWC", "HWIO", "NHWC"
Conv = functools.partial(GeneralConv, _IMAGES)
ConvTranspose = functools.partial(GeneralConvTranspose, _IMAGES)
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Inputs shifted and scaled to mean 0 and variance 1 over `axis`, then times gamma (if scale), plus beta (if
    center).

    The statistics are those of the batch at hand, in training and later.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, tuple[Any, Any]]:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        for_beta, for_gamma = random.split(rng)
        beta = beta_init(for_beta, shape) if center else ()
        gamma = gamma_init(for_gamma, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        kept = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(inputs)))
        outputs = nn.standardize(inputs, axes, epsilon=epsilon)
        if scale:
            outputs = outputs * gamma[kept]
        return outputs + beta[kept] if center else outputs

    return init_fun, apply_fun


# --------------------------------------------------------------------------------------------- layers without weights


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """The layer that applies fun(inputs, **fun_kwargs), which keeps the shape."""
    return _without_params(_same, lambda inputs: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity = elementwise(_same)

Flatten = _without_params(
    lambda shape: (shape[0], math.prod(shape[1:])), lambda inputs: jnp.reshape(inputs, (inputs.shape[0], -1))
)


def _pool(
    combine: Callable[..., Any],
    start: float,
    average: bool,
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    spec: str | None,
) -> Layer:
    def along(sizes: Sequence[int], ndim: int) -> Shape:
        layout = spec or "N" + "?" * (ndim - 2) + "C"
        each = iter(sizes)
        return tuple(1 if c in "NC" else next(each) for c in layout)

    def arguments(shape: Shape) -> tuple[Shape, Shape, Any]:
        window = along(window_shape, len(shape))
        return window, along(strides or (1,) * len(window_shape), len(shape)), padding

    def apply(inputs: Any) -> Any:
        out = lax.reduce_window(inputs, start, combine, *arguments(inputs.shape))
        if not average:
            return out
        space = tuple(1 if w == 1 else n for n, w in zip(inputs.shape, arguments(inputs.shape)[0], strict=True))
        return out / lax.reduce_window(jnp.ones(space, inputs.dtype), 0.0, lax.add, *arguments(space))

    def output_shape(shape: Shape) -> Shape:
        window, steps, pads = arguments(shape)
        if isinstance(pads, str):
            pads = lax.padtype_to_pads(shape, window, steps, pads)
        return tuple(int(n) for n in lax.reduce_window_shape_tuple(shape, window, steps, pads))

    return _without_params(output_shape, apply)


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Maxima over windows, which move by `strides` (1 unless given); `spec` is the layout, 'NHWC' unless given."""
    return _pool(lax.max, -jnp.inf, False, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Sums over windows; arguments as for MaxPool."""
    return _pool(lax.add, 0.0, False, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Means over windows, of what is not padding; arguments as for MaxPool."""
    return _pool(lax.add, 0.0, True, window_shape, strides, padding, spec)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each input with probability `rate`, divided by it, else gives 0; with mode 'test' the inputs as they are.

    apply_fun takes a key as `rng`; it raises ValueError without one.
    """

    def init_fun(_rng: Any, input_shape: Shape) -> tuple[Shape, tuple[()]]:
        return input_shape, ()

    def apply_fun(_params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout: apply_fun needs a key to draw from, apply_fun(params, inputs, rng=key); jax.random.key(seed) "
                "makes one"
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return init_fun, apply_fun


def FanOut(num: int) -> Layer:
    """`num` times the inputs, as a list: what `parallel` takes."""
    return _without_params(lambda shape: [shape] * num, lambda inputs: [inputs] * num)


FanInSum = _without_params(operator.itemgetter(0), lambda inputs: functools.reduce(operator.add, inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """A list of inputs put together along `axis`."""

    def shape(shapes: Sequence[Shape]) -> Shape:
        k = axis % len(shapes[0])
        return (*shapes[0][:k], sum(s[k] for s in shapes), *shapes[0][k + 1 :])

    return _without_params(shape, lambda inputs: jnp.concatenate(inputs, axis))


# -------------------------------------------------------------------------------------------------- layers of layers


def _keys(rng: Any, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """The layers one after the other; parameters are a list with one entry a layer."""

    def init_fun(rng: Any, input_shape: Any) -> tuple[Any, list[Any]]:
        params, shape = [], input_shape
        for init, _ in layers:
            rng, of_layer = random.split(rng)
            shape, param = init(of_layer, shape)
            params.append(param)
        return shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), param, key in zip(layers, params, keys, strict=True):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """The layers side by side, each on its own entry of a list of inputs; the parameters are a tuple, an entry a layer.

    The inputs come from FanOut, say, and the outputs go to FanInSum or FanInConcat.
    """

    def init_fun(rng: Any, input_shape: Any) -> tuple[Any, tuple[Any, ...]]:
        keys = random.split(rng, len(layers))
        made = [init(key, shape) for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> list[Any]:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [
            apply(param, x, rng=key, **kwargs)
            for (_, apply), param, x, key in zip(layers, params, inputs, keys, strict=True)
        ]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer make_layer(input_shape), which is made anew for each shape of inputs."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun


_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
