"""Pages of the exchange of arrays with other libraries."""

PAGES = {
    "from_dlpack": """
Arguments:
    external_array: array of a library that exports DLPack.
    device: device of the result; None for that of the array.
    copy: True for memory of its own, False to refuse copies; None copies where it must.
Returns:
    Array of the same shape and dtype.
Raises:
    TypeError for what exports no DLPack; ValueError or BufferError for what cannot be shared.

>>> jax.dlpack.from_dlpack(np.arange(3.0, dtype=np.float32))
Array([0., 1., 2.], dtype=float32)
""",
    "is_supported_dtype": """
Arguments:
    dtype: dtype.
Returns:
    bool.

>>> jax.dlpack.is_supported_dtype(np.float32)
True
""",
}
