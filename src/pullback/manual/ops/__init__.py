"""Pages of `pullback.ops`."""

from pullback.manual import by_name
from pullback.manual.ops import segments

PAGES = by_name(segments.PAGES)
