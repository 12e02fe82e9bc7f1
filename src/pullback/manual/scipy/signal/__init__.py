"""Pages of `pullback.scipy.signal`."""

from pullback.manual import by_name
from pullback.manual.scipy.signal import signal

PAGES = by_name(signal.PAGES)
