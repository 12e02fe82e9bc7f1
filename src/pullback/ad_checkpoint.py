"""What of a function is kept for its derivative, by name."""

from pullback.api.checkpoint import checkpoint, checkpoint_name, checkpoint_policies, remat
from pullback.api.residuals import print_saved_residuals, saved_residuals
from pullback.manual import add_pages as _add_pages
from pullback.manual.ad_checkpoint import PAGES as _PAGES
from pullback.util.absent import absent_names, listed

__getattr__ = absent_names(__name__)

__all__ = [
    "checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat", "saved_residuals",
]  # fmt: skip

_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
