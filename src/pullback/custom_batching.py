"""Functions with a batching rule of their own."""

from pullback.api.custom_vmap import custom_vmap, sequential_vmap
from pullback.manual import add_pages as _add_pages
from pullback.manual.custom_batching import PAGES as _PAGES

__all__ = ["custom_vmap", "sequential_vmap"]

_add_pages(globals(), _PAGES)
