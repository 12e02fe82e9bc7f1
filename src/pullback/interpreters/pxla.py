"""The mesh whose `with` statement we are in (drjax, eformer, praxis, tunix), and names that need what is not here."""

from pullback.sharding._current import thread_resources
from pullback.util.absent import absent_names

__all__ = ["thread_resources"]

__getattr__ = absent_names(__name__)
