"""What `compiler_options` may say: `autotune`, and options of XLA, which change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pullback.util.errors import JaxRuntimeError

CompilerOptions = dict[str, Any]


def check_options(options: CompilerOptions | None) -> None:
    """Options of XLA are ignored, as they ask for what XLA does; `autotune` is ours (TypeError if no bool); others
    are mistakes (JaxRuntimeError).
    """
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"compiler_options must be a dict from names to values, got {options!r}")
    for name in options or ():
        if name == "autotune":
            autotunes(options)
        elif not name.startswith("xla_"):
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: No such compile option: '{name}'; pullback has 'autotune' (True or False), and "
                "ignores those whose names begin with xla_"
            )


def autotunes(options: CompilerOptions | None) -> bool:
    """Whether compiler options ask for forms of nests that are measured; TypeError for what is no bool."""
    value = (options or {}).get("autotune", False)
    if not isinstance(value, bool):
        raise TypeError(f"compiler_options: autotune must be True or False, got {value!r}")
    return value
