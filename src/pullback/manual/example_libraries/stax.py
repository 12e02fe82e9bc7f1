"""Pages of layers: each is a pair of functions."""

FITTING = "TypeError or ValueError from init_fun and apply_fun, for arguments and inputs that do not fit."


def _layer(arguments: str, call: str, shape: str, shown: str, raises: str = FITTING, key: str = "") -> str:
    arguments = f"Arguments:\n{arguments}\n" if arguments else ""
    return f"""
{arguments}Returns:
    (init_fun(key, input_shape), which gives (shape of the outputs, params); apply_fun(params, inputs, rng=key)).
Raises:
    {raises}

>>> from pullback.example_libraries import stax
>>> init, apply = stax.{call}
>>> out_shape, params = init(jax.random.key(0), {shape})
>>> apply(params, jnp.ones({shape}){key}).shape
{shown}
"""


WINDOWS = """    window_shape: integers, one for each axis of an image.
    strides: integers; None for 1 along each axis.
    padding: 'VALID' or 'SAME'.
    spec: layout of the inputs; None for 'NHWC'."""
CONV = """    dimension_numbers: layouts of inputs, weights and outputs, as ('NHWC', 'HWIO', 'NHWC').
    out_chan: integer.
    filter_shape: integers, one for each axis of an image.
    strides: integers; None for 1 along each axis.
    padding: 'VALID' or 'SAME'.
    W_init, b_init: initializers; None for Glorot's normal one, and a normal one of small numbers."""
KERNELS = 'dimension_numbers=("NHWC", "HWIO", "NHWC"), out_chan=4, filter_shape=(3, 3)'
SIZES = "ValueError if filter_shape has not one size for each axis of an image."
LAYERS = "    layers: pairs of functions, as functions of this module give them."

PAGES = {
    "Dense": _layer(
        "    out_dim: integer.\n    W_init, b_init: initializers; None for the usual ones.", "Dense(4)", "(2, 3)",
        "(2, 4)",
    ),
    "GeneralConv": _layer(CONV, f"GeneralConv({KERNELS})", "(1, 8, 8, 3)", "(1, 6, 6, 4)", SIZES),
    "GeneralConvTranspose": _layer(CONV, f"GeneralConvTranspose({KERNELS})", "(1, 8, 8, 3)", "(1, 10, 10, 4)", SIZES),
    "BatchNorm": _layer(
        "    axis: integer or integers: what the statistics are taken over.\n    epsilon: small positive number.\n"
        "    center, scale: whether there are shifts and factors.\n    beta_init, gamma_init: their initializers.",
        "BatchNorm()", "(2, 4, 4, 3)", "(2, 4, 4, 3)",
    ),
    "MaxPool": _layer(WINDOWS, "MaxPool((2, 2))", "(1, 4, 4, 3)", "(1, 3, 3, 3)"),
    "SumPool": _layer(WINDOWS, "SumPool((2, 2))", "(1, 4, 4, 3)", "(1, 3, 3, 3)"),
    "AvgPool": _layer(WINDOWS, "AvgPool((2, 2))", "(1, 4, 4, 3)", "(1, 3, 3, 3)"),
    "Dropout": _layer(
        "    rate: number from 0 to 1: how many inputs are kept.\n    mode: 'train' or 'test'.", "Dropout(0.5)",
        "(2, 3)", "(2, 3)", "ValueError from apply_fun, if it gets no key.", ", rng=jax.random.key(1)",
    ),
    "elementwise": _layer(
        "    fun: function of arrays that keeps their shape.\n    fun_kwargs: its arguments by name.",
        "elementwise(jnp.sin)", "(2, 3)", "(2, 3)",
    ),
    "FanOut": """
Arguments:
    num: integer.
Returns:
    Pair of functions (init_fun, apply_fun).
Raises:
    TypeError or ValueError from init_fun and apply_fun, for arguments and inputs that do not fit.

>>> from pullback.example_libraries import stax
>>> init, apply = stax.FanOut(2)
>>> apply((), 1.0)
[1.0, 1.0]
""",
    "FanInConcat": """
Arguments:
    axis: integer.
Returns:
    Pair of functions (init_fun, apply_fun).
Raises:
    TypeError or ValueError from init_fun and apply_fun, for arguments and inputs that do not fit.

>>> from pullback.example_libraries import stax
>>> init, apply = stax.FanInConcat()
>>> apply((), [jnp.zeros(2), jnp.ones(1)])
Array([0., 0., 1.], dtype=float32)
""",
    "serial": _layer(LAYERS, "serial(stax.Dense(5), stax.Relu, stax.Dense(1))", "(2, 3)", "(2, 1)"),
    "parallel": _layer(
        LAYERS, "serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Identity), stax.FanInConcat())", "(2, 3)",
        "(2, 7)",
    ),
    "shape_dependent": _layer(
        "    make_layer: function from the shape of inputs to a layer.",
        "shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))", "(2, 3)", "(2, 6)",
    ),
}  # fmt: skip
