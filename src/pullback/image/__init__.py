"""Images of other sizes: resize, scale_and_translate."""

from pullback.image._scale import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
