"""Names that need what is not here; each says what that is."""

from pullback.core.explain import explain_all as _explain_all
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)

_explain_all(globals())
