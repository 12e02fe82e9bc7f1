"""Pages of distributions of random numbers."""

from pullback.manual._arguments import (
    DRAWN,
    KEY,
    RANDOM_DTYPE,
    RANDOM_INT_DTYPE,
    RANDOM_OUT_SHARDING,
    RANDOM_SHAPE,
    RANDOM_SHAPE_OR_BROADCAST,
)

PAGES = {
    "bits": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
    dtype: uint8, uint16, uint32 or uint64; None for the default unsigned integer.
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> jax.random.bits(jax.random.key(0), (2,), jnp.uint8).dtype
dtype('uint8')
""",
    "uniform": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
{RANDOM_DTYPE}
    minval: number or array: the lower limit, which may occur.
    maxval: number or array: the upper limit, which does not occur.
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}
Raises:
    ValueError if the dtype is no float.

>>> x = jax.random.uniform(jax.random.key(0), (1000,), minval=-1.0)
>>> bool(x.min() >= -1), bool(x.max() < 1), bool(abs(x.mean()) < 0.1)
(True, True, True)
""",
    "normal": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
    dtype: float or complex dtype of the result; None for the default float.
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}
Raises:
    ValueError if the dtype is neither.

>>> x = jax.random.normal(jax.random.key(0), (1000,))
>>> bool(abs(x.mean()) < 0.1), bool(abs(x.std() - 1) < 0.1)
(True, True)
""",
    "truncated_normal": f"""
Arguments:
{KEY}
    lower, upper: numbers or arrays: the limits.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> x = jax.random.truncated_normal(jax.random.key(0), -1.0, 2.0, (1000,))
>>> bool(x.min() > -1), bool(x.max() < 2)
(True, True)
""",
    "randint": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
    minval: integer or array of integers: the lower limit, which may occur.
    maxval: integer or array of integers: the upper limit, which does not occur.
{RANDOM_INT_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}
Raises:
    TypeError if the dtype is no integer.

>>> jax.random.randint(jax.random.key(0), (5,), 0, 10)
Array([9, 0, 2, 3, 1], dtype=int32)
""",
    "bernoulli": f"""
Arguments:
{KEY}
    p: number or array of floats: the probability of True.
{RANDOM_SHAPE_OR_BROADCAST}
    mode: 'low', or 'high' for probabilities that are exact below 1e-7.
{RANDOM_OUT_SHARDING}
Returns:
    Array of bool, of the shape.
Raises:
    TypeError if p is no float.

>>> jax.random.bernoulli(jax.random.key(0), jnp.array([0.0, 1.0]))
Array([False,  True], dtype=bool)
""",
    "rademacher": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
    dtype: integer or float dtype of the result; None for the default integer.
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> x = jax.random.rademacher(jax.random.key(0), (100,))
>>> jnp.unique(x)
Array([-1,  1], dtype=int32)
""",
    "permutation": f"""
Arguments:
{KEY}
    x: integer, or array.
    axis: integer: the axis that is permuted.
    independent: whether each vector along the axis has its own order.
{RANDOM_OUT_SHARDING}
Returns:
    Array of the shape and dtype of x, or a vector of x integers.
Raises:
    TypeError if x is neither.

>>> jnp.sort(jax.random.permutation(jax.random.key(0), 5))
Array([0, 1, 2, 3, 4], dtype=int32)
""",
    "choice": f"""
Arguments:
{KEY}
    a: integer, or array.
{RANDOM_SHAPE}
    replace: whether an element may be drawn twice.
    p: vector of the probabilities; None for equal ones.
    axis: integer: the axis of a from which slices are drawn.
    mode: as of `gumbel`, for draws with p and without replacement.
Returns:
    Array of a's dtype: a's shape with the shape in place of the axis.
Raises:
    ValueError for more draws than elements without replacement.

>>> jnp.sort(jax.random.choice(jax.random.key(0), 4, (4,), replace=False))
Array([0, 1, 2, 3], dtype=int32)
>>> jax.random.choice(jax.random.key(0), jnp.array([5, 7]), (3,), p=jnp.array([0.0, 1.0]))
Array([7, 7, 7], dtype=int32)
""",
    "categorical": f"""
Arguments:
{KEY}
    logits: array of floats: logarithms of probabilities, up to a constant.
    axis: integer: the axis of the categories.
    shape: tuple of static integers that ends with the shape of logits without the axis, its default.
    replace: whether draws of one distribution may be equal.
    mode: as of `gumbel`.
{RANDOM_OUT_SHARDING}
Returns:
    Array of int32, of the shape.

>>> jax.random.categorical(jax.random.key(0), jnp.array([-jnp.inf, 0.0]), shape=(3,))
Array([1, 1, 1], dtype=int32)
""",
    "exponential": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> x = jax.random.exponential(jax.random.key(0), (1000,))
>>> bool(x.min() > 0), bool(abs(x.mean() - 1) < 0.1)
(True, True)
""",
    "gumbel": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
{RANDOM_DTYPE}
    mode: None or 'low', or 'high' for a finer upper tail.
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool(abs(jax.random.gumbel(jax.random.key(0), (1000,)).mean() - jnp.euler_gamma) < 0.1)
True
""",
    "laplace": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool(abs(jnp.median(jax.random.laplace(jax.random.key(0), (1000,)))) < 0.2)
True
""",
    "logistic": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool(abs(jnp.median(jax.random.logistic(jax.random.key(0), (1000,)))) < 0.2)
True
""",
    "cauchy": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool(abs(jnp.median(jax.random.cauchy(jax.random.key(0), (1000,)))) < 0.2)
True
""",
    "maxwell": f"""
Arguments:
{KEY}
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool((jax.random.maxwell(jax.random.key(0), (1000,)) > 0).all())
True
""",
    "double_sided_maxwell": f"""
Arguments:
{KEY}
    loc: number or array: the centre.
    scale: number or array: the width.
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> jax.random.double_sided_maxwell(jax.random.key(0), 0.0, 1.0, (3,)).shape
(3,)
""",
    "lognormal": f"""
Arguments:
{KEY}
    sigma: number or array: the standard deviation of the logarithm.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool((jax.random.lognormal(jax.random.key(0), 2.0, (1000,)) > 0).all())
True
""",
    "gamma": f"""
Arguments:
{KEY}
    a: number or array: the shape parameter, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> x = jax.random.gamma(jax.random.key(0), 3.0, (1000,))
>>> bool(x.min() > 0), bool(abs(x.mean() - 3) < 0.3)
(True, True)
""",
    "loggamma": f"""
Arguments:
{KEY}
    a: number or array: the shape parameter, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool(jnp.isfinite(jax.random.loggamma(jax.random.key(0), 1e-4, (1000,))).all())
True
""",
    "beta": f"""
Arguments:
{KEY}
    a, b: numbers or arrays: the parameters, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> x = jax.random.beta(jax.random.key(0), 2.0, 2.0, (1000,))
>>> bool(abs(x.mean() - 0.5) < 0.1)
True
""",
    "dirichlet": f"""
Arguments:
{KEY}
    alpha: array [..., k]: the concentrations, positive.
    shape: tuple of static integers: shape of the result without its last axis; None for alpha.shape[:-1].
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    Array [*shape, k].
Raises:
    ValueError if alpha has no axis.

>>> jax.random.dirichlet(jax.random.key(0), jnp.ones(3), (5,)).sum(axis=1).round(3)
Array([1., 1., 1., 1., 1.], dtype=float32)
""",
    "chisquare": f"""
Arguments:
{KEY}
    df: number or array: the degrees of freedom, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool(abs(jax.random.chisquare(jax.random.key(0), 4.0, (1000,)).mean() - 4) < 0.4)
True
""",
    "f": f"""
Arguments:
{KEY}
    dfnum: number or array: degrees of freedom of the numerator.
    dfden: number or array: degrees of freedom of the denominator.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool((jax.random.f(jax.random.key(0), 3.0, 5.0, (1000,)) > 0).all())
True
""",
    "t": f"""
Arguments:
{KEY}
    df: number or array: the degrees of freedom, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool(abs(jnp.median(jax.random.t(jax.random.key(0), 3.0, (1000,)))) < 0.2)
True
""",
    "generalized_normal": f"""
Arguments:
{KEY}
    p: number: the power of |x|.
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> jax.random.generalized_normal(jax.random.key(0), 4.0, (3,)).shape
(3,)
""",
    "ball": f"""
Arguments:
{KEY}
    d: static integer: the number of dimensions.
    p: number: the norm.
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    Array [*shape, d].

>>> x = jax.random.ball(jax.random.key(0), 3, shape=(100,))
>>> bool((jnp.linalg.norm(x, axis=1) <= 1).all())
True
""",
    "pareto": f"""
Arguments:
{KEY}
    b: number or array: the exponent, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool((jax.random.pareto(jax.random.key(0), 2.0, (1000,)) >= 1).all())
True
""",
    "rayleigh": f"""
Arguments:
{KEY}
    scale: number or array: the scale, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool((jax.random.rayleigh(jax.random.key(0), 2.0, (1000,)) > 0).all())
True
""",
    "triangular": f"""
Arguments:
{KEY}
    left, mode, right: numbers or arrays: the ends and the peak.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> x = jax.random.triangular(jax.random.key(0), 0.0, 1.0, 3.0, (1000,))
>>> bool(x.min() >= 0), bool(x.max() <= 3)
(True, True)
""",
    "wald": f"""
Arguments:
{KEY}
    mean: number or array: the mean, positive.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool((jax.random.wald(jax.random.key(0), 2.0, (1000,)) > 0).all())
True
""",
    "weibull_min": f"""
Arguments:
{KEY}
    scale: number or array: the scale, positive.
    concentration: number or array: the exponent, positive.
{RANDOM_SHAPE}
{RANDOM_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}

>>> bool((jax.random.weibull_min(jax.random.key(0), 2.0, 3.0, (1000,)) > 0).all())
True
""",
    "binomial": f"""
Arguments:
{KEY}
    n: number or array: the trials.
    p: number or array: the probability of a success.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_DTYPE}
Returns:
    {DRAWN}

>>> jax.random.binomial(jax.random.key(0), 5, jnp.array([0.0, 1.0]))
Array([0., 5.], dtype=float32)
""",
    "geometric": f"""
Arguments:
{KEY}
    p: number or array: the probability of a success.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_INT_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}
Raises:
    ValueError if the dtype is no integer.

>>> jax.random.geometric(jax.random.key(0), 1.0, (3,))
Array([1, 1, 1], dtype=int32)
""",
    "poisson": f"""
Arguments:
{KEY}
    lam: number or array: the mean.
{RANDOM_SHAPE_OR_BROADCAST}
{RANDOM_INT_DTYPE}
{RANDOM_OUT_SHARDING}
Returns:
    {DRAWN}
Raises:
    ValueError if the dtype is no integer.

>>> x = jax.random.poisson(jax.random.key(0), 4.0, (1000,))
>>> bool(abs(x.mean() - 4) < 0.4)
True
""",
    "multinomial": f"""
Arguments:
{KEY}
    n: number or array: the trials.
    p: array [..., k]: the probabilities of the categories.
    shape: tuple of static integers: shape of the result; None for that to which n and p broadcast.
{RANDOM_DTYPE}
    unroll: static integer: how many steps of the loop over categories are laid out one after the other.
Returns:
    Array [..., k].

>>> jax.random.multinomial(jax.random.key(0), 10, jnp.array([0.5, 0.5])).sum()
Array(10., dtype=float32)
""",
    "multivariate_normal": f"""
Arguments:
{KEY}
    mean: array [..., n].
    cov: array [..., n, n], positive semidefinite.
    shape: tuple of static integers: shape of the result without its last axis; None for what the parameters broadcast
        to.
{RANDOM_DTYPE}
    method: 'cholesky', 'eigh' or 'svd': how cov is factorized. The first needs a definite one.
{RANDOM_OUT_SHARDING}
Returns:
    Array [*shape, n].
Raises:
    ValueError for another method.

>>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), (5,)).shape
(5, 2)
""",
    "orthogonal": f"""
Arguments:
{KEY}
    n: static integer: the number of rows.
    shape: tuple of static integers: how many matrices.
    dtype: float or complex dtype of the result; None for the default float.
    m: static integer: the number of columns; None for n.
{RANDOM_OUT_SHARDING}
Returns:
    Array [*shape, n, m].

>>> q = jax.random.orthogonal(jax.random.key(0), 3)
>>> jnp.abs(q @ q.T).round(3)
Array([[1., 0., 0.],
       [0., 1., 0.],
       [0., 0., 1.]], dtype=float32)
""",
}
