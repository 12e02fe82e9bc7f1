"""Pages of Fourier transforms."""

from pullback.manual._arguments import (
    DEVICE,
    NORM,
    REAL_SIGNAL,
    SIGNAL,
    SPECTRUM_AXES,
    SPECTRUM_AXIS,
    SPECTRUM_LENGTH,
    SPECTRUM_LENGTHS,
)

PAGES = {
    "fft": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTH}
{SPECTRUM_AXIS}
{NORM}
Returns:
    Complex array of the shape of a, with n terms along the axis.
Raises:
    ValueError if n is not positive, and for another norm.
Unlike numpy.fft.fft:
    The result is complex64 unless `jax_enable_x64` is set.

>>> jnp.fft.fft(jnp.array([1.0, 2.0, 4.0, 8.0]))
Array([15.+0.j, -3.+6.j, -5.+0.j, -3.-6.j], dtype=complex64)
""",
    "ifft": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTH}
{SPECTRUM_AXIS}
{NORM}
Returns:
    Complex array of the shape of a, with n elements along the axis.
Raises:
    ValueError if n is not positive, and for another norm.
Unlike numpy.fft.ifft:
    The result is complex64 unless `jax_enable_x64` is set.

>>> jnp.fft.ifft(jnp.array([4.0, 1.0, 0.0, 3.0]))
Array([2.+0.j , 1.-0.5j, 0.+0.j , 1.+0.5j], dtype=complex64)
""",
    "rfft": f"""
Arguments:
{REAL_SIGNAL}
{SPECTRUM_LENGTH}
{SPECTRUM_AXIS}
{NORM}
Returns:
    Complex array of the shape of a, with n // 2 + 1 terms along the axis.
Raises:
    ValueError if n is not positive, and for complex numbers.
Unlike numpy.fft.rfft:
    The result is complex64 unless `jax_enable_x64` is set.

>>> jnp.fft.rfft(jnp.array([1.0, 2.0, 4.0, 8.0]))
Array([15.+0.j, -3.+6.j, -5.+0.j], dtype=complex64)
""",
    "irfft": f"""
Arguments:
{SIGNAL}
    n: static integer: the number of elements of the result; None for 2 (m - 1), m the length of the axis.
{SPECTRUM_AXIS}
{NORM}
Returns:
    Array of floats of the shape of a, with n elements along the axis.
Raises:
    ValueError if n is not positive.

>>> jnp.fft.irfft(jnp.array([4.0, 0.0, 0.0]))
Array([1., 1., 1., 1.], dtype=float32)
""",
    "hfft": f"""
Arguments:
{SIGNAL}
    n: static integer: the number of elements of the result; None for 2 (m - 1), m the length of the axis.
{SPECTRUM_AXIS}
{NORM}
Returns:
    Array of floats of the shape of a, with n elements along the axis.
Raises:
    ValueError if n is not positive.

>>> jnp.fft.hfft(jnp.array([1.0, 0.0, 0.0]))
Array([1., 1., 1., 1.], dtype=float32)
""",
    "ihfft": f"""
Arguments:
{REAL_SIGNAL}
{SPECTRUM_LENGTH}
{SPECTRUM_AXIS}
{NORM}
Returns:
    Complex array of the shape of a, with n // 2 + 1 terms along the axis.
Raises:
    ValueError if n is not positive.

>>> jnp.abs(jnp.fft.ihfft(jnp.array([4.0, 0.0, 0.0, 0.0])))
Array([1., 1., 1.], dtype=float32)
""",
    "fft2": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTHS}
{SPECTRUM_AXES}
{NORM}
Returns:
    Complex array of the shape of a, with the lengths s along the axes.
Raises:
    ValueError unless there are two axes.

>>> jnp.fft.fft2(jnp.array([[1.0, 0.0], [0.0, 0.0]]))
Array([[1.+0.j, 1.+0.j],
       [1.+0.j, 1.+0.j]], dtype=complex64)
""",
    "ifft2": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTHS}
{SPECTRUM_AXES}
{NORM}
Returns:
    Complex array of the shape of a, with the lengths s along the axes.
Raises:
    ValueError unless there are two axes.

>>> jnp.fft.ifft2(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
Array([[1.+0.j, 1.+0.j],
       [1.+0.j, 1.+0.j]], dtype=complex64)
""",
    "rfft2": f"""
Arguments:
{REAL_SIGNAL}
{SPECTRUM_LENGTHS}
{SPECTRUM_AXES}
{NORM}
Returns:
    Complex array, with half of the length and one more along the last of the axes.
Raises:
    ValueError unless there are two axes.

>>> jnp.fft.rfft2(jnp.ones((2, 4))).shape
(2, 3)
""",
    "irfft2": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTHS}
{SPECTRUM_AXES}
{NORM}
Returns:
    Array of floats, with 2 (m - 1) elements along the last of the axes unless s says otherwise.
Raises:
    ValueError unless there are two axes.

>>> jnp.fft.irfft2(jnp.ones((2, 3))).shape
(2, 4)
""",
    "fftn": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTHS}
    axes: tuple of integers; None for all, or as many of the last as there are lengths.
{NORM}
Returns:
    Complex array of the shape of a, with the lengths s along the axes.
Raises:
    ValueError if lengths and axes differ in number.

>>> jnp.fft.fftn(jnp.ones((2, 2))).real
Array([[4., 0.],
       [0., 0.]], dtype=float32)
""",
    "ifftn": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTHS}
    axes: tuple of integers; None for all, or as many of the last as there are lengths.
{NORM}
Returns:
    Complex array of the shape of a, with the lengths s along the axes.
Raises:
    ValueError if lengths and axes differ in number.

>>> jnp.fft.ifftn(jnp.ones((2, 2))).real
Array([[1., 0.],
       [0., 0.]], dtype=float32)
""",
    "rfftn": f"""
Arguments:
{REAL_SIGNAL}
{SPECTRUM_LENGTHS}
    axes: tuple of integers; None for all, or as many of the last as there are lengths.
{NORM}
Returns:
    Complex array, with half of the length and one more along the last of the axes.
Raises:
    ValueError if lengths and axes differ in number.

>>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
(2, 3)
""",
    "irfftn": f"""
Arguments:
{SIGNAL}
{SPECTRUM_LENGTHS}
    axes: tuple of integers; None for all, or as many of the last as there are lengths.
{NORM}
Returns:
    Array of floats, with 2 (m - 1) elements along the last of the axes unless s says otherwise.
Raises:
    ValueError if lengths and axes differ in number.

>>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
(2, 4)
""",
    "fftfreq": f"""
Arguments:
    n: static integer: the number of samples.
    d: number: their distance.
    dtype: dtype of the result; None for the default float.
{DEVICE}
Returns:
    Vector of n floats.

>>> jnp.fft.fftfreq(4, d=0.5)
Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
""",
    "rfftfreq": f"""
Arguments:
    n: static integer: the number of samples.
    d: number: their distance.
    dtype: dtype of the result; None for the default float.
{DEVICE}
Returns:
    Vector of n // 2 + 1 floats.
Unlike numpy.fft.rfftfreq:
    The dtype is float32 by default.

>>> jnp.fft.rfftfreq(4, d=0.5)
Array([0. , 0.5, 1. ], dtype=float32)
""",
    "fftshift": """
Arguments:
    x: array of one or more axes.
    axes: integer or tuple of integers; None for all axes.
Returns:
    Array of the shape and dtype of x.

>>> jnp.fft.fftshift(jnp.array([0, 1, -2, -1]))
Array([-2, -1,  0,  1], dtype=int32)
""",
    "ifftshift": """
Arguments:
    x: array of one or more axes.
    axes: integer or tuple of integers; None for all axes.
Returns:
    Array of the shape and dtype of x.

>>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1]))
Array([ 0,  1, -2, -1], dtype=int32)
""",
}
