"""Element types: the public names of util/dtypes.py."""

from pullback.manual import add_pages as _add_pages
from pullback.manual.dtypes import PAGES as _PAGES
from pullback.util.dtypes import (
    TypePromotionError,
    bfloat16,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip

_add_pages(globals(), _PAGES)
