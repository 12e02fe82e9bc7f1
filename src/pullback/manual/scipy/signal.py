"""Pages of convolutions and spectra."""

from pullback.manual._arguments import AXIS, KERNEL_MODE, PRECISION, WELCH

PAGES = {
    "convolve": f"""
Arguments:
    in1, in2: arrays of one rank.
{KERNEL_MODE}
    method: 'auto', 'direct' or 'fft'.
{PRECISION}
Returns:
    Array.
Raises:
    ValueError for another mode.

>>> jax.scipy.signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]))
Array([ 1., 12., 23., 30.], dtype=float32)
""",
    "correlate": f"""
Arguments:
    in1, in2: arrays of one rank.
{KERNEL_MODE}
    method: 'auto', 'direct' or 'fft'.
{PRECISION}
Returns:
    Array.
Raises:
    ValueError for another mode.

>>> jax.scipy.signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]), mode="valid")
Array([21., 32.], dtype=float32)
""",
    "convolve2d": f"""
Arguments:
    in1, in2: matrices.
{KERNEL_MODE}
    boundary: 'fill', 'wrap' or 'symm'.
    fillvalue: number.
{PRECISION}
Returns:
    Matrix.
Raises:
    ValueError for another mode.

>>> jax.scipy.signal.convolve2d(jnp.array([[1.0, 2.0]]), jnp.array([[1.0, 10.0]]))
Array([[ 1., 12., 20.]], dtype=float32)
""",
    "correlate2d": f"""
Arguments:
    in1, in2: matrices.
{KERNEL_MODE}
    boundary: 'fill', 'wrap' or 'symm'.
    fillvalue: number.
{PRECISION}
Returns:
    Matrix.
Raises:
    ValueError for another mode.

>>> jax.scipy.signal.correlate2d(jnp.array([[1.0, 2.0]]), jnp.array([[1.0, 10.0]]))
Array([[10., 21.,  2.]], dtype=float32)
""",
    "fftconvolve": f"""
Arguments:
    in1, in2: arrays of one rank.
{KERNEL_MODE}
    axes: integer or tuple of integers; None for all.
Returns:
    Array.
Raises:
    ValueError for another mode.

>>> jax.scipy.signal.fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])).round(2)
Array([ 1., 12., 23., 30.], dtype=float32)
""",
    "detrend": f"""
Arguments:
    data: array of numbers.
{AXIS}
    type: 'linear' or 'constant'.
    bp: integer or list of integers: places where a new line begins.
    overwrite_data: must be None.
Returns:
    Array of the shape of data.
Raises:
    ValueError for another type.

>>> jax.scipy.signal.detrend(jnp.array([1.0, 2.0, 6.0]), type="constant").round(3)
Array([-2., -1.,  3.], dtype=float32)
""",
    "welch": f"""
Arguments:
    x: array [..., n].
{WELCH}
Returns:
    Pair of arrays [k] and [..., k].
Raises:
    ValueError for another scaling.

>>> f, p = jax.scipy.signal.welch(jnp.array([1.0, -1.0] * 4), nperseg=4)
>>> f, p.shape
(Array([0.  , 0.25, 0.5 ], dtype=float32), (3,))
""",
    "csd": f"""
Arguments:
    x, y: arrays [..., n].
{WELCH}
Returns:
    Pair of arrays [k] and [..., k].
Raises:
    ValueError for another scaling.

>>> f, p = jax.scipy.signal.csd(jnp.array([1.0, -1.0] * 4), jnp.ones(8), nperseg=4)
>>> f, p.shape
(Array([0.  , 0.25, 0.5 ], dtype=float32), (3,))
""",
    "stft": """
Arguments:
    x: array [..., n].
    fs: number: samples in a unit of time.
    window: name, pair of a name and its parameter, or vector of nperseg numbers.
    nperseg: static integer: samples of a segment.
    noverlap: static integer: samples that neighbours share; None for half.
    nfft: static integer: length of the transforms, filled up with zeros; None for nperseg.
    detrend: 'constant', 'linear', a function, or False: what is taken off each segment.
    return_onesided: whether real signals give the frequencies alone that are not negative.
    boundary: 'zeros', 'even', 'odd', 'constant' or None.
    padded: whether zeros make up a last segment.
    axis: integer: the axis of time.
Returns:
    Triple of arrays [k], [t] and [..., k, t].

>>> f, t, z = jax.scipy.signal.stft(jnp.ones(8), nperseg=4)
>>> z.shape
(3, 5)
""",
    "istft": """
Arguments:
    Zxx: complex array [..., k, t].
    fs: number: samples in a unit of time.
    window: as of the `stft`.
    nperseg: static integer: samples of a segment; None for what fits.
    noverlap: static integer: samples that neighbours share; None for half.
    nfft: static integer: length of the transforms; None for what fits.
    input_onesided: whether the frequencies are those alone that are not negative.
    boundary: whether the signal was extended at its ends.
    time_axis, freq_axis: integers: axes of Zxx.
Returns:
    Pair of arrays [n] and [..., n].

>>> f, t, z = jax.scipy.signal.stft(jnp.arange(8.0), nperseg=4)
>>> jnp.abs(jax.scipy.signal.istft(z, nperseg=4)[1]).round(3)
Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
""",
}
