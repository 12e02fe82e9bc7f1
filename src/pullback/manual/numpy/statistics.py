"""Pages of quantiles, histograms, covariances and interpolation."""

from pullback.manual._arguments import AXES, KEEPDIMS, OUT, OUT_SHARDING, REDUCED

PAGES = {
    "median": f"""
Arguments:
    a: array of numbers.
{AXES}
{OUT}
    overwrite_input: must be False.
{KEEPDIMS}
Returns:
    {REDUCED} Its dtype is inexact.
Raises:
    TypeError for lists, and for axes without elements.

>>> jnp.median(jnp.array([[1, 2, 9], [3, 4, 5]]), axis=1)
Array([2., 4.], dtype=float32)
""",
    "nanmedian": f"""
Arguments:
    a: array of numbers.
{AXES}
{OUT}
    overwrite_input: must be False.
{KEEPDIMS}
Returns:
    {REDUCED} Its dtype is inexact.
Raises:
    TypeError for lists.

>>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 3.0]))
Array(2., dtype=float32)
""",
    "quantile": f"""
Arguments:
    a: array of real numbers.
    q: scalar or vector of numbers in [0, 1].
{AXES}
{OUT}
    overwrite_input: must be False.
    method: 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'.
{KEEPDIMS}
    weights: array of the shape of a or of the axis; only with 'inverted_cdf'. None for equal weights.
Returns:
    Array of the shape of q and of a without the axes; its dtype is inexact.
Raises:
    TypeError for lists; ValueError for other methods.
Unlike numpy.quantile:
    q out of range is cut to it instead of raising.

>>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), jnp.array([0.25, 0.5]))
Array([1.5, 2. ], dtype=float32)
""",
    "nanquantile": f"""
Arguments:
    a: array of real numbers.
    q: scalar or vector of numbers in [0, 1].
{AXES}
{OUT}
    overwrite_input: must be False.
    method: 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'.
{KEEPDIMS}
    weights: array of the shape of a or of the axis; only with 'inverted_cdf'. None for equal weights.
Returns:
    Array of the shape of q and of a without the axes; its dtype is inexact.
Raises:
    TypeError for lists.

>>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
Array(2., dtype=float32)
""",
    "percentile": f"""
Arguments:
    a: array of real numbers.
    q: scalar or vector of numbers in [0, 100].
{AXES}
{OUT}
    overwrite_input: must be False.
    method: 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'.
{KEEPDIMS}
    weights: array of the shape of a or of the axis; only with 'inverted_cdf'. None for equal weights.
{OUT_SHARDING}
Returns:
    Array of the shape of q and of a without the axes; its dtype is inexact.
Raises:
    TypeError for lists.
Unlike numpy.percentile:
    q out of range is cut to it instead of raising.

>>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 75)
Array(3., dtype=float32)
""",
    "nanpercentile": f"""
Arguments:
    a: array of real numbers.
    q: scalar or vector of numbers in [0, 100].
{AXES}
{OUT}
    overwrite_input: must be False.
    method: 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'.
{KEEPDIMS}
    weights: array of the shape of a or of the axis; only with 'inverted_cdf'. None for equal weights.
Returns:
    Array of the shape of q and of a without the axes; its dtype is inexact.
Raises:
    TypeError for lists.

>>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
Array(2., dtype=float32)
""",
    "cov": """
Arguments:
    m: vector of observations of one variable, or matrix [variables, observations].
    y: further variables in the same form; None for none.
    rowvar: whether rows are variables; else columns are.
    bias: whether to divide by the number of observations instead of one less.
    ddof: what is subtracted from the number of observations; None for what `bias` says.
    fweights: vector of integers: how often each observation counts; None for once.
    aweights: vector of weights of the observations; None for equal ones.
    dtype: dtype of the result; None for the promoted one, or the default float for integers.
Returns:
    Array [variables, variables], without axes for a single variable.
Raises:
    TypeError for lists.

>>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
Array([[1., 2.],
       [2., 4.]], dtype=float32)
""",
    "corrcoef": """
Arguments:
    x: vector of observations of one variable, or matrix [variables, observations].
    y: further variables in the same form; None for none.
    rowvar: whether rows are variables; else columns are.
    dtype: dtype of the result; None for the promoted one, or the default float for integers.
Returns:
    Array [variables, variables], without axes for a single variable.
Raises:
    TypeError for lists.

>>> jnp.corrcoef(jnp.array([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])).round(3)
Array([[ 1., -1.],
       [-1.,  1.]], dtype=float32)
""",
    "bincount": f"""
Arguments:
    x: vector of integers.
    weights: vector of as many numbers; None to count.
    minlength: static integer: least length of the result.
    length: static integer: length of the result; larger numbers are left out. Needed under jit.
{OUT_SHARDING}
Returns:
    Vector of integers, or of the dtype of the weights.
Raises:
    TypeError for lists and floats.
Unlike numpy.bincount:
    Negative numbers do not raise. `length` does not exist there.

>>> jnp.bincount(jnp.array([0, 2, 2, 3]))
Array([1, 0, 2, 1], dtype=int32)
>>> jnp.bincount(jnp.array([0, 2, 2, 3]), length=3)
Array([1, 0, 2], dtype=int32)
""",
    "digitize": """
Arguments:
    x: array of real numbers.
    bins: vector of edges that rise or fall.
    right: whether the right edge belongs to a bin instead of the left.
    method: how it is computed, as of `searchsorted`; None for its default.
Returns:
    Array of integers of the shape of x.
Raises:
    TypeError for lists.
Unlike numpy.digitize:
    Bins that neither rise nor fall do not raise.

>>> jnp.digitize(jnp.array([0.5, 1.0, 2.5]), jnp.array([1.0, 2.0]))
Array([0, 1, 2], dtype=int32)
""",
    "histogram": """
Arguments:
    a: array of real numbers.
    bins: static integer: number of bins, or vector of their edges.
    range: pair of numbers: the ends of the bins; None for the smallest and largest element.
    weights: array of the shape of a; None to count.
    density: whether to scale the result to an integral of 1.
Returns:
    Pair of vectors: n numbers and n + 1 edges, both of floats.
Raises:
    TypeError for lists; NotImplementedError for names of rules.
Unlike numpy.histogram:
    Counts are floats. Rules such as bins='auto' are not available.

>>> jnp.histogram(jnp.array([1, 2, 2, 4]), bins=2)
(Array([3., 1.], dtype=float32), Array([1. , 2.5, 4. ], dtype=float32))
""",
    "histogram_bin_edges": """
Arguments:
    a: array of real numbers.
    bins: static integer: number of bins, or vector of their edges.
    range: pair of numbers: the ends of the bins; None for the smallest and largest element.
    weights: has no effect, as no rule depends on them.
Returns:
    Vector of n + 1 floats.
Raises:
    TypeError for lists; NotImplementedError for names of rules.
Unlike numpy.histogram_bin_edges:
    Rules such as bins='auto' are not available.

>>> jnp.histogram_bin_edges(jnp.array([1, 5]), bins=4)
Array([1., 2., 3., 4., 5.], dtype=float32)
""",
    "histogram2d": """
Arguments:
    x, y: vectors of n real numbers: the coordinates of the points.
    bins: static integer, or vector of edges, for both; or a pair of them.
    range: pair of pairs of numbers; None for the smallest and largest of each.
    weights: vector of n numbers; None to count.
    density: whether to scale the result to an integral of 1.
Returns:
    Tuple of an array [nx, ny] and vectors of nx + 1 and ny + 1 edges.

>>> jnp.histogram2d(jnp.array([0.0, 1.0, 1.0]), jnp.array([0.0, 1.0, 1.0]), bins=2)[0]
Array([[1, 0],
       [0, 2]], dtype=int32)
""",
    "histogramdd": """
Arguments:
    sample: array [n, d] of points, or list of d vectors of n coordinates.
    bins: static integer, for all, or a list of one, or of a vector of edges, for each axis.
    range: list of d pairs of numbers; None for the smallest and largest of each.
    weights: vector of n numbers; None to count.
    density: whether to scale the result to an integral of 1.
Returns:
    Pair of an array of d axes, and a list of d vectors of edges.

>>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
Array([[1, 0],
       [0, 1]], dtype=int32)
""",
    "interp": """
Arguments:
    x: array of real numbers.
    xp: vector of the places, which must rise; this is not checked.
    fp: vector of the values there; they may be complex.
    left: value below xp[0]; None for fp[0].
    right: value above xp[-1]; None for fp[-1].
    period: length after which xp repeats; None for never.
Returns:
    Array of the shape of x.
Raises:
    TypeError for lists.
Unlike numpy.interp:
    left and right may be 'extrapolate'.

>>> jnp.interp(jnp.array([0.0, 1.5, 3.0]), jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0]))
Array([10., 15., 20.], dtype=float32)
""",
}
