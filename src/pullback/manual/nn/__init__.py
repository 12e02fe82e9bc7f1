"""Pages of activations, softmax, one-hot vectors and attention."""

from pullback.manual._arguments import AXES, AXIS, ELEMENTWISE, KEEPDIMS, X_ANY, X_FLOATS, X_NUMBERS

PAGES = {
    "relu": f"""
Arguments:
{X_NUMBERS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.relu(jnp.array([-1.0, 0.0, 2.0]))
Array([0., 0., 2.], dtype=float32)
""",
    "relu6": f"""
Arguments:
{X_NUMBERS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.relu6(jnp.array([-1.0, 3.0, 8.0]))
Array([0., 3., 6.], dtype=float32)
""",
    "leaky_relu": f"""
Arguments:
{X_FLOATS}
    negative_slope: number or array: the slope below 0.
Returns:
    {ELEMENTWISE}

>>> jax.nn.leaky_relu(jnp.array([-4.0, 2.0]), 0.25)
Array([-1.,  2.], dtype=float32)
""",
    "elu": f"""
Arguments:
{X_FLOATS}
    alpha: number or array: the limit below 0 is -alpha.
Returns:
    {ELEMENTWISE}

>>> jax.nn.elu(jnp.array([-1.0, 2.0])).round(3)
Array([-0.632,  2.   ], dtype=float32)
""",
    "celu": f"""
Arguments:
{X_FLOATS}
    alpha: number or array: the limit below 0 is -alpha.
Returns:
    {ELEMENTWISE}

>>> jax.nn.celu(jnp.array([-1.0, 2.0])).round(3)
Array([-0.632,  2.   ], dtype=float32)
""",
    "selu": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.selu(jnp.array([-1.0, 1.0])).round(3)
Array([-1.111,  1.051], dtype=float32)
""",
    "gelu": f"""
Arguments:
{X_FLOATS}
    approximate: whether to compute it by tanh instead of the normal distribution function.
Returns:
    {ELEMENTWISE}

>>> jax.nn.gelu(jnp.array([-1.0, 0.0, 1.0]), approximate=False).round(3)
Array([-0.159,  0.   ,  0.841], dtype=float32)
""",
    "glu": f"""
Arguments:
    x: array of floats of an even length along the axis.
{AXIS}
Returns:
    Array of half that length along the axis.
Raises:
    ValueError if the length is odd.

>>> jax.nn.glu(jnp.array([2.0, 4.0, 0.0, 0.0]))
Array([1., 2.], dtype=float32)
""",
    "sigmoid": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.sigmoid(jnp.array([-100.0, 0.0, 100.0])).round(3)
Array([0. , 0.5, 1. ], dtype=float32)
""",
    "log_sigmoid": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.log_sigmoid(jnp.array([-100.0, 0.0])).round(3)
Array([-100.   ,   -0.693], dtype=float32)
""",
    "hard_sigmoid": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0]))
Array([0. , 0.5, 1. ], dtype=float32)
""",
    "silu swish": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.silu(jnp.array([0.0, 1.0])).round(3)
Array([0.   , 0.731], dtype=float32)
""",
    "hard_silu hard_swish": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.hard_silu(jnp.array([-4.0, 0.0, 4.0]))
Array([-0.,  0.,  4.], dtype=float32)
""",
    "hard_tanh": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.hard_tanh(jnp.array([-2.0, 0.5, 2.0]))
Array([-1. ,  0.5,  1. ], dtype=float32)
""",
    "soft_sign": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
Array([-0.5 ,  0.  ,  0.75], dtype=float32)
""",
    "softplus": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.softplus(jnp.array([-100.0, 0.0, 100.0])).round(3)
Array([  0.   ,   0.693, 100.   ], dtype=float32)
""",
    "mish": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.mish(jnp.array([0.0, 1.0])).round(3)
Array([0.   , 0.865], dtype=float32)
""",
    "squareplus": f"""
Arguments:
{X_FLOATS}
    b: number or array: how smooth it is; 0 gives relu.
Returns:
    {ELEMENTWISE}

>>> jax.nn.squareplus(jnp.array([-1.5, 0.0, 1.5]))
Array([0.5, 1. , 2. ], dtype=float32)
""",
    "sparse_plus": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
Array([0.  , 0.25, 2.  ], dtype=float32)
""",
    "sparse_sigmoid": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}

>>> jax.nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
Array([0. , 0.5, 1. ], dtype=float32)
""",
    "identity": f"""
Arguments:
{X_ANY}
Returns:
    x.

>>> jax.nn.identity(jnp.array([1, 2]))
Array([1, 2], dtype=int32)
""",
    "log1mexp": f"""
Arguments:
    x: array or scalar of positive floats.
Returns:
    {ELEMENTWISE}

>>> jax.nn.log1mexp(jnp.array([0.1, 1.0])).round(3)
Array([-2.352, -0.459], dtype=float32)
""",
    "softmax": """
Arguments:
    x: array of floats.
    axis: integer, tuple of integers, or None for all axes: what sums to 1.
    where: mask that broadcasts with x: what is False counts as -inf. None takes all.
Returns:
    Array of the shape and dtype of x.
Raises:
    ValueError if an axis is out of range.

>>> jax.nn.softmax(jnp.array([1.0, 1.0, 5.0]), where=jnp.array([True, True, False]))
Array([0.5, 0.5, 0. ], dtype=float32)
""",
    "log_softmax": """
Arguments:
    x: array of floats.
    axis: integer, tuple of integers, or None for all axes: what sums to 1.
    where: mask that broadcasts with x: what is False counts as -inf. None takes all.
Returns:
    Array of the shape and dtype of x.
Raises:
    ValueError if an axis is out of range.

>>> jax.nn.log_softmax(jnp.array([0.0, 0.0])).round(3)
Array([-0.693, -0.693], dtype=float32)
""",
    "logsumexp": f"""
Arguments:
    a: array of numbers; integers become the default float.
{AXES}
    b: array of factors that broadcasts with a; None for 1.
{KEEPDIMS}
    return_sign: whether to give the sign, too.
    where: mask that broadcasts with a: what is False is left out. None takes all.
Returns:
    Array of the shape of a without the axes; with `return_sign` a pair of arrays.

>>> jax.nn.logsumexp(jnp.array([1000.0, 1000.0])).round(3)
Array(1000.693, dtype=float32)
""",
    "logmeanexp": f"""
Arguments:
    x: array of numbers; integers become the default float.
{AXES}
    where: mask that broadcasts with x: what is False is left out. None takes all.
{KEEPDIMS}
Returns:
    Array of the shape of x without the axes.

>>> jax.nn.logmeanexp(jnp.array([1000.0, 1000.0]))
Array(1000., dtype=float32)
""",
    "standardize": """
Arguments:
    x: array of floats.
    axis: integer, tuple of integers, or None for all axes.
    mean: array that broadcasts with x; None to compute it.
    variance: array that broadcasts with x; None to compute it.
    epsilon: number added to the variance.
    where: mask that broadcasts with x: what is False is left out of mean and variance. None takes all.
    algorithm: 'fast' or 'stable': how the variance is computed.
Returns:
    Array of the shape of x.
Raises:
    ValueError for another algorithm.

>>> jax.nn.standardize(jnp.array([1.0, 3.0])).round(3)
Array([-1.,  1.], dtype=float32)
""",
    "one_hot": """
Arguments:
    x: array of integers, or of floats that are integers.
    num_classes: static integer: length of the new axis.
    dtype: dtype of the result; None for the default float.
    axis: integer, or name of a mapped axis over which the classes are spread.
Returns:
    Array of the shape of x and the new axis.

>>> jax.nn.one_hot(jnp.array([1, 0, 5]), 3)
Array([[0., 1., 0.],
       [1., 0., 0.],
       [0., 0., 0.]], dtype=float32)
""",
    "dot_product_attention": """
Arguments:
    query: array [b, t, n, h], or without b.
    key: array [b, s, k, h], or without b; k divides n.
    value: array of the shape of key.
    bias: array that broadcasts to [b, n, t, s], added to the logits; None for none.
    mask: array of bool that broadcasts to [b, n, t, s]: what is False is not attended to. None for all.
    scale: number by which logits are multiplied; None for 1 / sqrt(h).
    is_causal: whether positions see none that come later.
    query_seq_lengths, key_value_seq_lengths: arrays of integers [b]: what is beyond is cut off. None for all.
    local_window_size: integer or pair of integers: how far positions see to the left and right. None for all.
    implementation: None or 'xla'; 'cudnn' raises.
    return_residual: whether to give the logarithms of the sums of exponentials, too.
Returns:
    Array [b, t, n, h]; with `return_residual` a pair of it and an array [b, t, n].

>>> q = k = jnp.zeros((2, 1, 1))
>>> v = jnp.array([1.0, 3.0]).reshape(2, 1, 1)
>>> jax.nn.dot_product_attention(q, k, v, is_causal=True).ravel()
Array([1., 2.], dtype=float32)
""",
    "scaled_matmul": """
Arguments:
    lhs: array [b, m, k].
    rhs: array [b, n, k].
    lhs_scales: array [b, m, k / block].
    rhs_scales: array [b, n, k / block].
    preferred_element_type: dtype of the result.
Returns:
    Array [b, m, n].
Raises:
    ValueError for shapes that do not fit.

>>> x, scales = jnp.ones((1, 1, 4)), jnp.array([[[1.0, 2.0]]])
>>> jax.nn.scaled_matmul(x, x, scales, jnp.ones((1, 1, 2)))
Array([[[6.]]], dtype=float32)
""",
    "scaled_dot_general": """
Arguments:
    lhs, rhs: arrays.
    dimension_numbers: as of `lax.dot_general`.
    preferred_element_type: dtype of the result.
    configs: block formats of lhs, rhs and gradients, or None; they need a GPU.
    implementation: ignored.
Returns:
    Array: the batch axes, then those of lhs, then those of rhs.

>>> jax.nn.scaled_dot_general(jnp.ones((2, 3), jnp.bfloat16), jnp.ones((3, 1), jnp.bfloat16), (((1,), (0,)), ((), ())))
Array([[3.],
       [3.]], dtype=float32)
""",
    "get_scaled_dot_general_config": """
Arguments:
    mode: "mxfp8" or "nvfp4".
    global_scale: of "nvfp4", an array; ones if None.
Returns:
    What `configs` of `scaled_dot_general` are.
Raises:
    ValueError for another mode.

>>> jax.nn.get_scaled_dot_general_config("mxfp8").block_size
32
""",
}
