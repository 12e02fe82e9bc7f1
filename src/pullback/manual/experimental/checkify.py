"""Pages of checks that are values."""

CHECK = """    pred: bool scalar.
    msg: text; fields in braces are filled with the arguments.
    fmt_args, fmt_kwargs: trees of arrays, by position and by name."""
CHECKED = """>>> from pullback.experimental import checkify
>>> def root(x):
...     checkify.check(x >= 0, "negative: {x}", x=x)
...     return jnp.sqrt(x)"""

PAGES = {
    "check": f"""
Arguments:
{CHECK}
    debug: whether it is a `debug_check`.
Returns:
    None.
Raises:
    JaxRuntimeError for a known pred that is False; TypeError for what is no bool scalar, and arguments that are no
    arrays; ValueError in a traced function without `checkify` around it.

{CHECKED}
>>> error, y = checkify.checkify(jax.jit(root))(-1.0)
>>> error.get()
'negative: -1.0 ...'
""",
    "debug_check": f"""
Arguments:
{CHECK}
Returns:
    None.
Raises:
    TypeError for what is no bool scalar, and arguments that are no arrays.

>>> from pullback.experimental import checkify
>>> def root(x):
...     checkify.debug_check(x >= 0, "negative: {{x}}", x=x)
...     return jnp.sqrt(x)
>>> jax.jit(root)(-1.0)  # no checkify around it
Array(nan, dtype=float32, weak_type=True)
""",
    "checkify": f"""
Arguments:
    f: function of trees of arrays.
    errors: set of the checks that are made: user_checks, nan_checks, div_checks, index_checks, float_checks (of NaN and
        division), automatic_checks, all_checks.
Returns:
    Function of the arguments of f, which gives (Error, result).
Raises:
    NotImplementedError for checks in functions of solvers.

{CHECKED}
>>> error, y = checkify.checkify(root)(4.0)
>>> error.get(), y
(None, Array(2., dtype=float32, weak_type=True))
>>> error, y = checkify.checkify(jnp.log, errors=checkify.nan_checks)(-1.0)
>>> "nan" in error.get()
True
""",
    "check_error": f"""
Arguments:
    error: Error, as `checkify` gives it.
Returns:
    None.
Raises:
    JaxRuntimeError if a check failed; TypeError for what is no Error.

{CHECKED}
>>> error, y = checkify.checkify(root)(-1.0)
>>> try:
...     checkify.check_error(error)
... except checkify.JaxRuntimeError as caught:
...     print(str(caught)[:14])
negative: -1.0
""",
    "Error": f"""
Its methods are `get`, which gives the message or None, and `throw`, which raises JaxRuntimeError with it.

{CHECKED}
>>> checkify.checkify(root)(4.0)[0]
Error(None)
""",
}
