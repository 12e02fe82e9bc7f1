"""Names that need what is not here; each says what that is."""

from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)
