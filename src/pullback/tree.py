"""The most used functions of `pullback.tree_util`, under short names."""

from pullback.manual import add_pages as _add_pages
from pullback.manual.tree import PAGES as _PAGES
from pullback.util import pytree as _pytree

static = _pytree.static
all = _pytree.tree_all
broadcast = _pytree.tree_broadcast
flatten = _pytree.tree_flatten
flatten_with_path = _pytree.tree_flatten_with_path
leaves = _pytree.tree_leaves
leaves_with_path = _pytree.tree_leaves_with_path
map = _pytree.tree_map
map_with_path = _pytree.tree_map_with_path
reduce = _pytree.tree_reduce
reduce_associative = _pytree.tree_reduce_associative
structure = _pytree.tree_structure
transpose = _pytree.tree_transpose
unflatten = _pytree.tree_unflatten

_add_pages(globals(), _PAGES)
