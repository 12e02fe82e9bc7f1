"""Gaussian kernel density estimates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import random
from pullback.core.explain import explain_methods
from pullback.core.kinds import ARRAY, FUNCTION, INTEGERS, NUMBER, TEXT, either, table
from pullback.nn import logsumexp
from pullback.numpy._arguments import check_arraylike
from pullback.scipy.linalg import cho_solve, solve_triangular
from pullback.scipy.special import ndtr
from pullback.tree_util import register_pytree_node_class
from pullback.util import dtypes
from pullback.util.promoting import methods_promoting_freely


@register_pytree_node_class
@methods_promoting_freely
class gaussian_kde:
    """A density estimated from points dataset[d, n] (or [n]), with weights[n]: a mean of Gaussians around them.

    bw_method: "scott", "silverman", a number or a function of the estimate, the factor of the points' own spread.
    Raises ValueError for shapes or methods that do not fit, or one point, NotImplementedError for complex points.
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        check_arraylike("gaussian_kde", dataset, *(() if weights is None else (weights,)))
        points = jnp.atleast_2d(jnp.asarray(dataset))
        if jnp.issubdtype(points.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde: argument 'dataset' is complex; expected real points")
        if not points.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        self.dataset = points.astype(jnp.promote_types(dtypes.to_inexact_dtype(points.dtype), np.float32))
        if weights is None:
            self.weights = jnp.full(self.n, 1 / self.n, self.dataset.dtype)
        else:
            given = jnp.atleast_1d(jnp.asarray(weights, self.dataset.dtype))
            if given.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if len(given) != self.n:
                raise ValueError(f"gaussian_kde: {len(given)} weights for {self.n} points; expected one for each")
            self.weights = given / given.sum()
        self.neff = 1 / (self.weights**2).sum()
        factor = self._factor("scott" if bw_method is None else bw_method)
        spread = jnp.atleast_2d(jnp.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights))
        self.covariance = spread * factor**2
        self.inv_cov = jnp.linalg.inv(spread) / factor**2

    def _factor(self, method: Any) -> Any:
        if method == "scott":
            return self.neff ** (-1 / (self.d + 4))
        if method == "silverman":
            return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        if isinstance(method, Callable):  # type: ignore[arg-type]
            return method(self)
        if isinstance(method, str) or jnp.ndim(method):
            raise ValueError(
                f"gaussian_kde: argument 'bw_method' is {method!r}; accepted are a number, a function of the estimate, "
                "'scott' and 'silverman'"
            )
        return method

    d = property(lambda self: self.dataset.shape[0], doc="The number of dimensions.")
    n = property(lambda self: self.dataset.shape[1], doc="The number of points.")

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """(neff, dataset, weights, covariance, inv_cov), and nothing else."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, _aux_data: None, children: Any) -> gaussian_kde:
        """The estimate from what tree_flatten gave."""
        new = object.__new__(cls)
        new.neff, new.dataset, new.weights, new.covariance, new.inv_cov = children
        return new

    # Density.

    def evaluate(self, points: Any) -> Any:
        """The density at points[d, m], or one point [d]: [m]. Raises ValueError for other shapes."""
        return jnp.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at x[d, m], or one point [d]: [m]. Raises ValueError for other shapes."""
        points = self._points(x)
        factor = jnp.linalg.cholesky(self.covariance)
        ours = solve_triangular(factor, self.dataset, lower=True)
        theirs = solve_triangular(factor, points, lower=True)
        distance = ((theirs[:, None, :] - ours[:, :, None]) ** 2).sum(axis=0)
        constant = self.d / 2 * math.log(2 * math.pi) + jnp.log(jnp.diagonal(factor)).sum()
        return logsumexp(-distance / 2, b=self.weights[:, None], axis=0) - constant

    def _points(self, x: Any) -> Any:
        check_arraylike("gaussian_kde", x)
        points = jnp.atleast_2d(jnp.asarray(x))
        if jnp.issubdtype(points.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde.evaluate: the points are complex; expected real ones")
        d, m = points.shape
        if d != self.d:
            if d != 1 or m != self.d:
                raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
            points = points.reshape(self.d, 1)
        return points.astype(jnp.promote_types(points.dtype, self.dataset.dtype))

    # Integrals.

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times that of N(mean[d], cov[d, d]). Raises ValueError for other shapes."""
        check_arraylike("integrate_gaussian", mean, cov)
        mean, cov = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean))), jnp.atleast_2d(jnp.asarray(cov))
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return self._overlap(mean[:, None] - self.dataset, self.covariance + cov, self.weights)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability of [low, high], for one dimension (ValueError for more)."""
        if self.d != 1:
            raise ValueError(f"gaussian_kde.integrate_box_1d: the points have {self.d} coordinates; expected one")
        if jnp.ndim(low) != 0 or jnp.ndim(high) != 0:
            raise ValueError(
                f"gaussian_kde.integrate_box_1d: 'low' has shape {jnp.shape(low)} and 'high' {jnp.shape(high)}; "
                "expected scalars"
            )
        sigma = jnp.sqrt(self.covariance[0, 0])
        ends = [ndtr((end - self.dataset[0]) / sigma) for end in (low, high)]
        return (self.weights * (ends[1] - ends[0])).sum()

    def integrate_kde(self, other: Any) -> Any:
        """The integral of the product with another estimate of as many dimensions (ValueError, TypeError)."""
        if not isinstance(other, gaussian_kde):
            raise TypeError(
                f"gaussian_kde.integrate_kde: argument 'other' is a {type(other).__name__}; expected a gaussian_kde"
            )
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        differences = self.dataset[:, :, None] - other.dataset[:, None, :]
        pairs = self.weights[:, None] * other.weights
        return self._overlap(differences.reshape(self.d, -1), self.covariance + other.covariance, pairs.reshape(-1))

    def _overlap(self, differences: Any, cov: Any, weights: Any) -> Any:
        factor = jnp.linalg.cholesky(cov)
        distance = (differences * cho_solve((factor, True), differences)).sum(axis=0)
        constant = self.d / 2 * math.log(2 * math.pi) + jnp.log(jnp.diagonal(factor)).sum()
        return jnp.exp(logsumexp(-distance / 2, b=weights) - constant)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Raises NotImplementedError, as in JAX."""
        raise NotImplementedError("gaussian_kde.integrate_box is not there; integrate_box_1d is, for one coordinate")

    # Draws.

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Points drawn from the density: [d, *shape]."""
        for_points, for_noise = random.split(key)
        chosen = random.choice(for_points, self.n, shape=shape, p=self.weights)
        zeros = jnp.zeros(self.d, self.dataset.dtype)
        noise = random.multivariate_normal(for_noise, zeros, self.covariance, shape=shape, dtype=self.dataset.dtype)
        return jnp.moveaxis(self.dataset.T[chosen] + noise, -1, 0)

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not there: estimates do not change."""
        raise NotImplementedError("gaussian_kde.set_bandwidth is not there; make another estimate with 'bw_method'")

    def marginal(self, dimensions: Any) -> Any:
        """Raises NotImplementedError, as in JAX."""
        raise NotImplementedError("marginal distributions are not implemented")


explain_methods(
    gaussian_kde,
    {
        "__init__": table(
            dataset__weights=ARRAY, bw_method=either("a number, a function or a rule's name", NUMBER, FUNCTION, TEXT)
        ),
        "evaluate": table(points=ARRAY),
        "integrate_gaussian": table(mean__cov=ARRAY),
        "integrate_box_1d": table(low__high=ARRAY),
        "resample": table(shape=INTEGERS),
    },
)
