"""Pages of `pullback.scipy.cluster.vq`."""

from pullback.manual import by_name
from pullback.manual.scipy.cluster.vq import vq

PAGES = by_name(vq.PAGES)
