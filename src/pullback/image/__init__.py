"""Images of other sizes: resize, scale_and_translate."""

from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.core.kinds import ARRAY, SEQUENCE, TEXT, either, of_type, table
from pullback.core.parameters import COMMON
from pullback.image._scale import ResizeMethod, resize, scale_and_translate
from pullback.manual import add_pages as _add_pages
from pullback.manual.image import PAGES as _PAGES
from pullback.util.absent import listed as _listed

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

_KINDS = COMMON | table(
    spatial_dims=SEQUENCE,
    scale__translation=ARRAY,
    method=either("a string or a ResizeMethod", TEXT, of_type("", ResizeMethod)),
)
_remember_all(globals(), _KINDS)
_explain_all(globals(), _KINDS, {})

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
