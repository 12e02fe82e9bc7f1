"""Pages of the functions of distributions, from a table: what their parameters are, and an example of each."""

from __future__ import annotations

_PARAMETERS = {
    "x": "array or scalar of real numbers.",
    "k": "array or scalar of whole numbers.",
    "q": "array or scalar of probabilities.",
    "loc": "number that the distribution is shifted by; broadcasts, as all arguments do.",
    "scale": "positive number that the distribution is stretched by.",
}
_QUANTILES = ("ppf", "isf")
_RESULTS = "Array of floats, of the shape that the arguments broadcast to"


def _pages(
    name: str, parameters: str, shapes: dict[str, str], example: str, values: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """The pages of a distribution: `values` has what functions give for the arguments `example`, rounded; a key is a
    function's name and, where they are not `parameters`, those of its own.
    """
    pages = {}
    for key, value in values.items():
        function, *own = key.split()
        is_quantile = function in _QUANTILES
        lines: list[str] = []
        for parameter in own or parameters.split():
            if parameter in shapes:
                said = shapes[parameter] + "."
            else:
                said = _PARAMETERS["q" if is_quantile and not lines else parameter]
            lines.append(f"    {parameter}: {said}")
        outside = "; nan for what is no probability" if is_quantile else ""
        first = "[0.25, 0.5]" if is_quantile else ""
        given = f"jnp.array({first})" + example[example.index(")") + 1 :] if is_quantile else example
        pages[function] = "\n".join(
            [
                "Arguments:",
                *lines,
                "Returns:",
                f"    {_RESULTS}{outside}.",
                "",
                f">>> jax.scipy.stats.{name}.{function}({given}).round(4)",
                f"Array([{value}], dtype=float32)",
            ]
        )
    return name, pages


# fmt: off
_UNIVARIATE = dict([
    _pages("bernoulli", "k p loc", {"p": "probability of 1"}, "jnp.array([0, 1]), 0.25", {
        "logpmf": "-0.2877, -1.3863", "pmf": "0.75, 0.25", "cdf k p": "0.75, 1.  ", "ppf q p": "0., 0.",
    }),
    _pages("beta", "x a b loc scale",
        {"a": "positive shape", "b": "positive shape"},
        "jnp.array([0.25, 0.5]), 2.0, 3.0", {
        "logpdf": "0.5232, 0.4055", "pdf": "1.6875, 1.5   ", "cdf": "0.2617, 0.6875", "logcdf": "-1.3405, -0.3747",
        "sf": "0.7383, 0.3125", "logsf": "-0.3034, -1.1632",
    }),
    _pages("betabinom", "k n a b loc",
        {"n": "number of trials", "a": "positive shape of the beta distribution", "b": "its other positive shape"},
        "jnp.array([1, 2]), 5, 2.0, 3.0", {
        "logpmf": "-1.4351, -1.4351", "pmf": "0.2381, 0.2381",
    }),
    _pages("binom", "k n p loc",
        {"n": "number of trials", "p": "probability of success"},
        "jnp.array([1, 2]), 5, 0.25", {
        "logpmf": "-0.9276, -1.333 ", "pmf": "0.3955, 0.2637",
    }),
    _pages("cauchy", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-1.2054, -1.3679", "pdf": "0.2996, 0.2546", "cdf": "0.578 , 0.6476", "logcdf": "-0.5482, -0.4345",
        "sf": "0.422 , 0.3524", "logsf": "-0.8627, -1.0429", "ppf q loc scale": "-1.,  0.",
        "isf q loc scale": "1., 0.",
    }),
    _pages("chi2", "x df loc scale", {"df": "degrees of freedom"}, "jnp.array([0.25, 0.5]), 3.0", {
        "logpdf": "-1.7371, -1.5155", "pdf": "0.176 , 0.2197", "cdf": "0.0309, 0.0811", "logcdf": "-3.4783, -2.512 ",
        "sf": "0.9691, 0.9189", "logsf": "-0.0313, -0.0846",
    }),
    _pages("expon", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-0.25, -0.5 ", "pdf": "0.7788, 0.6065", "cdf": "0.2212, 0.3935", "logcdf": "-1.5087, -0.9328",
        "sf": "0.7788, 0.6065", "logsf": "-0.25, -0.5 ", "ppf q loc scale": "0.2877, 0.6931",
    }),
    _pages("gamma", "x a loc scale", {"a": "positive shape"}, "jnp.array([0.25, 0.5]), 2.0", {
        "logpdf": "-1.6363, -1.1931", "pdf": "0.1947, 0.3033", "cdf": "0.0265, 0.0902", "logcdf": "-3.6306, -2.4057",
        "sf": "0.9735, 0.9098", "logsf": "-0.0269, -0.0945",
    }),
    _pages("gennorm", "x beta",
        {"beta": "positive shape: 1 for the Laplace distribution, 2 for a normal one"},
        "jnp.array([0.25, 0.5]), 1.5", {
        "logpdf": "-0.7158, -0.9444", "pdf": "0.4888, 0.3889", "cdf": "0.6318, 0.7417",
    }),
    _pages("geom", "k p loc", {"p": "probability of success"}, "jnp.array([1, 2]), 0.25", {
        "logpmf": "-1.3863, -1.674 ", "pmf": "0.25  , 0.1875",
    }),
    _pages("gumbel_l", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-1.034 , -1.1487", "pdf": "0.3556, 0.317 ", "cdf": "0.7231, 0.8077", "logcdf": "-0.3242, -0.2136",
        "sf": "0.2769, 0.1923", "logsf": "-1.284 , -1.6487", "ppf p loc scale": "-1.2459, -0.3665",
    }),
    _pages("gumbel_r", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-1.0288, -1.1065", "pdf": "0.3574, 0.3307", "cdf": "0.459 , 0.5452", "logcdf": "-0.7788, -0.6065",
        "sf": "0.541 , 0.4548", "logsf": "-0.6143, -0.788 ", "ppf p loc scale": "-0.3266,  0.3665",
    }),
    _pages("laplace", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-0.9431, -1.1931", "pdf": "0.3894, 0.3033", "cdf": "0.6106, 0.6967",
    }),
    _pages("logistic", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-1.4019, -1.4482", "pdf": "0.2461, 0.235 ", "cdf": "0.5622, 0.6225", "sf": "0.4378, 0.3775",
        "ppf": "-1.0986,  0.    ", "isf": "1.0986, 0.    ",
    }),
    _pages("nbinom", "k n p loc",
        {"n": "number of successes", "p": "probability of success"},
        "jnp.array([1, 2]), 2, 0.25", {
        "logpmf": "-2.3671, -2.2493", "pmf": "0.0938, 0.1055",
    }),
    _pages("norm", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-0.9502, -1.0439", "pdf": "0.3867, 0.3521", "cdf": "0.5987, 0.6915", "logcdf": "-0.513 , -0.3689",
        "sf": "0.4013, 0.3085", "logsf": "-0.9131, -1.1759", "ppf q loc scale": "-0.6745,  0.    ",
        "isf q loc scale": "0.6745, 0.    ",
    }),
    _pages("pareto", "x b loc scale", {"b": "positive shape"}, "jnp.array([1.5, 2.0]), 2.0", {
        "logpdf": "-0.5232, -1.3863", "pdf": "0.5926, 0.25  ", "cdf": "0.5556, 0.75  ", "logcdf": "-0.5878, -0.2877",
        "sf": "0.4444, 0.25  ", "logsf": "-0.8109, -1.3863", "ppf q b loc scale": "1.1547, 1.4142",
    }),
    _pages("poisson", "k mu loc", {"mu": "mean"}, "jnp.array([1, 2]), 2.0", {
        "logpmf": "-1.3069, -1.3069", "pmf": "0.2707, 0.2707", "cdf": "0.406 , 0.6767",
    }),
    _pages("t", "x df loc scale", {"df": "degrees of freedom"}, "jnp.array([0.25, 0.5]), 3.0", {
        "logpdf": "-1.0421, -1.161 ", "pdf": "0.3527, 0.3132",
    }),
    _pages("truncnorm", "x a b loc scale",
        {"a": "lower bound, as a multiple of scale from loc", "b": "upper bound, likewise"},
        "jnp.array([0.25, 0.5]), -1.0, 2.0", {
        "logpdf": "-0.75  , -0.8438", "pdf": "0.4724, 0.4301", "cdf": "0.5376, 0.6509", "logcdf": "-0.6207, -0.4294",
        "sf": "0.4624, 0.3491", "logsf": "-0.7713, -1.0523",
    }),
    _pages("uniform", "x loc scale", {}, "jnp.array([0.25, 0.5])", {
        "logpdf": "-0., -0.", "pdf": "1., 1.", "cdf": "0.25, 0.5 ", "ppf q loc scale": "0.25, 0.5 ",
    }),
    _pages("vonmises", "x kappa", {"kappa": "concentration"}, "jnp.array([0.25, 0.5]), 2.0", {
        "logpdf": "-0.724 , -0.9067", "pdf": "0.4848, 0.4039",
    }),
    _pages("wrapcauchy", "x c", {"c": "concentration, between 0 and 1"}, "jnp.array([0.25, 0.5]), 0.5", {
        "logpdf": "-0.8565, -1.1378", "pdf": "0.4247, 0.3205",
    }),
])
# fmt: on

_MULTIVARIATE = {
    "dirichlet": {
        "logpdf pdf": """
Arguments:
    x: array whose first axis has the k parts of each point, or k - 1 of them: the last is what is missing to 1.
    alpha: vector of k positive numbers.
Returns:
    Array of floats, without the first axis of x.
Raises:
    ValueError if the sizes do not fit.

>>> jax.scipy.stats.dirichlet.pdf(jnp.array([0.25, 0.75]), jnp.array([1.0, 2.0])).round(4)
Array(1.5, dtype=float32)
""",
    },
    "multinomial": {
        "logpmf pmf": """
Arguments:
    x: array whose last axis has the count of each outcome.
    n: number of trials.
    p: array of the probabilities of the outcomes, along its last axis.
Returns:
    Array of floats, without the last axis.
Raises:
    ValueError for shapes that do not broadcast.

>>> jax.scipy.stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.25, 0.75])).round(4)
Array(0.4219, dtype=float32)
""",
    },
    "multivariate_normal": {
        "logpdf": """
Arguments:
    x: array of points, along its last axis.
    mean: array of means, along its last axis.
    cov: array of covariances, along its last two axes; or a scalar, the variance.
    allow_singular: must be None.
Returns:
    Array of floats, without the last axis.
Raises:
    NotImplementedError for `allow_singular`; TypeError or ValueError for shapes that do not fit.

>>> jax.scipy.stats.multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
Array(-1.8379, dtype=float32)
""",
        "pdf": """
Arguments:
    x: array of points, along its last axis.
    mean: array of means, along its last axis.
    cov: array of covariances, along its last two axes; or a scalar, the variance.
Returns:
    Array of floats, without the last axis.
Raises:
    TypeError or ValueError for shapes that do not fit.

>>> jax.scipy.stats.multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
Array(0.1592, dtype=float32)
""",
    },
}

_ENTROPY = """
Arguments:
    mu: array or scalar of means; nan for negative ones.
    loc: number that the distribution is shifted by, which changes nothing.
Returns:
    Array of floats, of the shape of mu.

>>> jax.scipy.stats.poisson.entropy(jnp.array([1.0, 2.0])).round(4)
Array([1.3048, 1.7049], dtype=float32)
"""

# Pages by the name of the distribution.
DISTRIBUTIONS: dict[str, dict[str, str]] = {**_UNIVARIATE, **_MULTIVARIATE}
DISTRIBUTIONS["poisson"]["entropy"] = _ENTROPY
