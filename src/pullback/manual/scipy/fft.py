"""Pages of cosine transforms."""

from pullback.manual._arguments import AXIS

PAGES = {
    "dct": f"""
Arguments:
    x: array of numbers.
    type: must be 2.
    n: static integer: length to which the axis is cut or filled up; None for that of x.
{AXIS}
    norm: None or 'ortho'.
Returns:
    Array.
Raises:
    NotImplementedError for other types.

>>> jnp.abs(jax.scipy.fft.dct(jnp.array([1.0, 1.0]))).round(3)
Array([4., 0.], dtype=float32)
""",
    "idct": f"""
Arguments:
    x: array of numbers.
    type: must be 2.
    n: static integer: length to which the axis is cut or filled up; None for that of x.
{AXIS}
    norm: None or 'ortho'.
Returns:
    Array.
Raises:
    NotImplementedError for other types.

>>> jax.scipy.fft.idct(jnp.array([4.0, 0.0])).round(3)
Array([1., 1.], dtype=float32)
""",
    "dctn": """
Arguments:
    x: array of numbers.
    type: must be 2.
    s: tuple of static integers: lengths to which axes are cut or filled up; None for those of x.
    axes: tuple of integers; None for all.
    norm: None or 'ortho'.
Returns:
    Array.
Raises:
    NotImplementedError for other types.

>>> jnp.abs(jax.scipy.fft.dctn(jnp.ones((1, 2)))).round(3)
Array([[8., 0.]], dtype=float32)
""",
    "idctn": """
Arguments:
    x: array of numbers.
    type: must be 2.
    s: tuple of static integers: lengths to which axes are cut or filled up; None for those of x.
    axes: tuple of integers; None for all.
    norm: None or 'ortho'.
Returns:
    Array.
Raises:
    NotImplementedError for other types.

>>> jax.scipy.fft.idctn(jnp.array([[8.0, 0.0]])).round(3)
Array([[1., 1.]], dtype=float32)
""",
}
