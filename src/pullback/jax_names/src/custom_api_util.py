"""Stands for jax._src.custom_api_util: jaxdecomp says that a class of its own is a decorator with rules."""


def register_custom_decorator_type(cls: type) -> type:
    """The class: functions with rules of any class are taken as what they are here."""
    return cls


__all__ = ["register_custom_decorator_type"]
