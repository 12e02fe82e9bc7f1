"""The exception classes of JAX users' programs, one per kind of mistake.

Each docstring says what the mistake is and how to mend it; the message of an instance names the value, where it came
from, and the line of the user's own code.
"""

from __future__ import annotations

REGISTER = (  # what to do with a value that is not an array
    "make it an array, or register its class as a pytree node (jax.tree_util.register_pytree_node_class, or "
    "register_dataclass)"
)


def _again(kind: type[BaseException], args: tuple, attributes: dict) -> BaseException:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class _Described(Exception):
    """An error that is made from a tracer, and pickled by its message."""

    def __reduce__(self):
        return _again, (type(self), self.args, self.__dict__)


class JAXTypeError(_Described, TypeError):
    """Base of the type errors below."""


class JAXIndexError(_Described, IndexError):
    """Base of the index errors below."""


class JaxRuntimeError(RuntimeError):
    """A compiled program failed while it ran."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete one is needed.

    Mend it by marking the argument static (`static_argnums`), or by using `lax.cond`, `lax.scan`, `jnp.where` in
    place of Python control flow.
    """

    def __init__(self, tracer, context: str = ""):
        super().__init__(
            _describe(
                "Abstract tracer value encountered where concrete value is expected: traced array", tracer, context
            )
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used in `if`, `while`, `and`, `or`, `not` or `assert`; use `lax.cond` or `jnp.where`."""

    def __init__(self, tracer):
        JAXTypeError.__init__(
            self,
            _describe(
                "Attempted boolean conversion of traced array",
                tracer,
                "Python's if, while, and, or, not need a concrete value; use jnp.where, lax.cond or "
                "lax.while_loop instead, or mark the argument static (static_argnums).",
            ),
        )


class TracerArrayConversionError(JAXTypeError):
    """A traced value was handed to NumPy; use the function of `pullback.numpy` with the same name."""

    def __init__(self, tracer):
        super().__init__(
            _describe(
                "The numpy.ndarray conversion method __array__() was called on traced array",
                tracer,
                "NumPy functions need concrete values; use the pullback.numpy function of the same name, or mark "
                "the argument static.",
            )
        )


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python integer, such as an index into a list or a shape."""

    def __init__(self, tracer):
        super().__init__(
            _describe(
                "The __index__() method was called on traced array",
                tracer,
                "A traced value can't index a Python list or be a shape; make the sequence an array, or mark the "
                "argument static.",
            )
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index; its result would have a shape that depends on values."""

    def __init__(self, tracer):
        super().__init__(
            _describe(
                "Array boolean indices must be concrete; got a traced array",
                tracer,
                "The shape of x[mask] depends on the values of mask. Use jnp.where(mask, x, fill), "
                "x = x.at[mask].set(y) to change elements, or jnp.nonzero(mask, size=n).",
            )
        )


class UnexpectedTracerError(JAXTypeError):
    """A traced value outlived its trace: a function under transformation stored it in a global, list or attribute."""

    def __init__(self, message):
        super().__init__(message)


class ArgumentError(TypeError, ValueError):
    """An argument is not of the kind that the function takes: text for an array, say, or a list for a number.

    JAX raises a TypeError or a ValueError for it, by which of its own functions meets the argument first; this is both.
    """


class UnsupportedArgumentError(NotImplementedError, ArgumentError):
    """An argument that nothing else than its default is implemented for was given something of the wrong kind."""


class DimensionsError(ArgumentError, IndexError):
    """An array has fewer dimensions than the function needs; give it more, with `reshape` or `x[None]`."""


class UnhashableArgumentError(ArgumentError):
    """A list, dict or array was given for a static argument; give a number, a name or a tuple."""


class TracedArgumentError(ConcretizationTypeError, TracerIntegerConversionError, ValueError):
    """A traced value was given for a static argument; mark the argument static (`static_argnums`) where it is traced.

    It is also the ValueError that functions raise for static arguments that cannot be hashed.
    """

    def __init__(self, tracer, context: str = ""):
        what = "Abstract tracer value encountered where concrete value is expected: traced array"
        JAXTypeError.__init__(self, _describe(what, tracer, context))


class TracedFlagError(TracerBoolConversionError, ValueError):
    """A traced value was given for a flag; mark the argument static (`static_argnums`) where it is traced."""

    def __init__(self, tracer, context: str = ""):
        what = "Attempted boolean conversion of traced array"
        JAXTypeError.__init__(self, _describe(what, tracer, context))


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions that has no answer, or the use of one where an integer is needed.

    It may be decided by `constraints=` of `jax.export.symbolic_shape`.
    """


class ShardingTypeError(Exception):
    """How a result is cut along explicit mesh axes is ambiguous, or its operands disagree."""


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice."""


def _describe(what: str, tracer, advice: str) -> str:
    text = f"{what} with shape {tracer.describe()}" if hasattr(tracer, "describe") else f"{what}: {tracer}"
    return f"{text}\n{advice}" if advice else text


# What tracing a function raises that decides by values, warns, or is not made for tracers.
UNTRACEABLE = (TypeError, ValueError, IndexError, AttributeError, NotImplementedError, Warning)
