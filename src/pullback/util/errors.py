"""The exception classes of JAX users' programs, one per kind of mistake.

Each docstring says what the mistake is and how to mend it, with an example; the message of an instance names the value,
where it came from, and the line of the user's own code. A note below it says where that docstring is found: on the page
of errors of the site, and by `python -m pullback explain NAME`.
"""

from __future__ import annotations

REGISTER = (  # what to do with a value that is not an array
    "make it an array, or register its class as a pytree node (jax.tree_util.register_pytree_node_class, or "
    "register_dataclass)"
)


def class_shown(cls: type) -> str:
    """A class as messages have it: one of ours without the private module that it is made in."""
    is_private = cls.__module__.startswith(("pullback.", "jax.")) and "._" in cls.__module__
    return f"<class '{cls.__qualname__}'>" if is_private else repr(cls)


def _again(kind: type[BaseException], args: tuple, attributes: dict) -> BaseException:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class Explained(Exception):
    """An error that the page of errors explains: it has a note of one line, which tracebacks show below the message."""

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls, *args, **kwargs)
        # The public one of a family of names that are private.
        name = next(c.__name__ for c in cls.__mro__ if not c.__name__.startswith("_"))
        self.add_note(f"Explained: python -m pullback explain {name}, or errors.html#{name.lower()} of the site.")
        return self


class _Described(Explained):
    """An error that is made from a tracer, and pickled by its message."""

    def __reduce__(self):
        return _again, (type(self), self.args, self.__dict__)


class JAXTypeError(_Described, TypeError):
    """Base of the errors about traced values and types."""


class JAXIndexError(_Described, IndexError):
    """Base of the errors about indices that are traced."""


class JaxRuntimeError(Explained, RuntimeError):
    """A compiled program failed while it ran, or was asked for what is not possible, as unknown compiler options.

    The message says what failed. Where a Python function that the program calls (`jax.pure_callback`, `io_callback`)
    raised an error, that is the cause, with its own traceback.
    """


class OutOfMemoryError(JaxRuntimeError, MemoryError):
    """There is no memory for an array, or for what a compiled program computes on the way.

    The message says how many bytes were asked for. Often a shape has grown by broadcasting: `x[:, None] * y` has as
    many elements as both have, multiplied. Large arrays that only go into a sum need not be there at once: compute them
    inside of one jitted function, or part by part with `jax.lax.map(f, x, batch_size=...)`.
    """


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete one is needed.

    Inside of `jit`, `grad` and `vmap` arrays stand for values that are not known yet. What needs a value, as
    `float(x)`, `int(x)` or a shape does, cannot have one.

        @jax.jit
        def f(x, n):
            return x * float(n)  # wrong: n is traced

        @partial(jax.jit, static_argnames="n")
        def f(x, n):
            return x * float(n)  # right: one program for each n

    Mend it by marking the argument static (`static_argnums`, `static_argnames`), by functions of arrays (`x * n`), or
    by `lax.cond`, `lax.scan`, `jnp.where` in place of Python's control flow.
    """

    def __init__(self, tracer, context: str = ""):
        super().__init__(
            _describe("Abstract tracer value encountered, not a concrete value: traced array", tracer, context)
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used in `if`, `while`, `and`, `or`, `not` or `assert`; use `lax.cond` or `jnp.where`.

        @jax.jit
        def f(x):
            return x if x > 0 else -x  # wrong: which branch is not known yet

        @jax.jit
        def f(x):
            return jnp.where(x > 0, x, -x)  # right: both are computed, one is taken

    For branches that are dear use `lax.cond(x > 0, f, g, x)`, for loops `lax.while_loop`, for `a > 0 and b > 0`
    `(a > 0) & (b > 0)`. If the value is an option of the program, mark the argument static.
    """

    def __init__(self, tracer):
        JAXTypeError.__init__(
            self,
            _describe(
                "Attempted boolean conversion of traced array",
                tracer,
                "Python's if, while, and, or, not need a concrete value; use jnp.where, lax.cond or "
                "lax.while_loop instead, or, under jit, mark the argument static (static_argnums).",
            ),
        )


class TracerArrayConversionError(JAXTypeError):
    """A traced value was handed to NumPy; use the function of `pullback.numpy` with the same name.

        jax.jit(lambda x: np.sin(x))(1.0)   # wrong: NumPy needs the value
        jax.jit(lambda x: jnp.sin(x))(1.0)  # right

    What has no counterpart can be called from a compiled program by `jax.pure_callback`.
    """

    def __init__(self, tracer):
        super().__init__(
            _describe(
                "numpy.ndarray conversion, by __array__(), of the traced array",
                tracer,
                "NumPy functions need concrete values; use the pullback.numpy function of the same name, or mark "
                "the argument static.",
            )
        )


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python integer, such as an index into a list or a shape.

        jax.jit(lambda i: [1.0, 2.0][i])(0)             # wrong: a list needs an integer
        jax.jit(lambda i: jnp.array([1.0, 2.0])[i])(0)  # right: an array takes a traced index

    A shape must be known: mark the argument that it comes from static (`static_argnums`).
    """

    def __init__(self, tracer):
        super().__init__(
            _describe(
                "The __index__() method was called on traced array",
                tracer,
                "A traced value can't index a Python list, be a shape or end a range; make the sequence an array, use "
                "lax.fori_loop, or, under jit, mark the argument static (static_argnums).",
            )
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index; its result would have a shape that depends on values.

        jax.jit(lambda y: y[y > 0].sum())(y)                 # wrong: how many are taken is not known yet
        jax.jit(lambda y: jnp.where(y > 0, y, 0).sum())(y)   # right
        jax.jit(lambda y: y.at[y < 0].set(0))(y)             # right: as many elements as before
        jax.jit(lambda y: y[jnp.nonzero(y > 0, size=3)])(y)  # right: at most 3, and filled up to that

    A mask that is known, such as a NumPy array, may be an index.
    """

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
    """A traced value leaked from its trace: a function under transformation stored it in a global, list or attribute.

        seen = []

        @jax.jit
        def f(x):
            seen.append(x)  # wrong: after the call, x means nothing
            return x + 1

    Mend it by returning the value, or by `jax.debug.print` and `jax.debug.callback`, which get the value when the
    program runs. `jax.checking_leaks()` finds the line that lets it out.
    """

    def __init__(self, message):
        super().__init__(message)


class CustomVJPException(Explained):
    """A function with a vjp rule closes over a value that is differentiated, of which its rules say nothing.

        @jax.jit
        def f(scale, x):
            @jax.custom_vjp
            def g(x):
                return scale * x  # wrong if the derivative by scale is asked for
            g.defvjp(lambda x: (g(x), None), lambda _, g_bar: (g_bar,))
            return g(x)

    Make the value an argument of the function, so that bwd gives its cotangent; or, if it is to count as a constant,
    use `jax.lax.stop_gradient(scale)` in its place.
    """


class ArgumentError(Explained, TypeError, ValueError):
    """An argument is not of the kind that the function takes: text for an array, say, or a list for a number.

        jnp.sin([1.0, 2.0])             # wrong: a list; functions take arrays and numbers
        jnp.sin(jnp.array([1.0, 2.0]))  # right

    The message names the function, the argument, what came, and what is accepted. JAX raises a TypeError or a
    ValueError for it, by which of its own functions meets the argument first; this is both.
    """


class UnsupportedArgumentError(ArgumentError, NotImplementedError):
    """An argument that nothing else than its default is implemented for was given something of the wrong kind.

    Leave the argument out.
    """


class AbsentAttributeError(Explained, NotImplementedError, AttributeError):
    """An attribute of NumPy's arrays was asked for that arrays here do not have.

        for x in array.flat: ...       # wrong
        for x in array.flatten(): ...  # right

    `hasattr(array, "flat")` is False.
    """


class DimensionsError(ArgumentError, IndexError):
    """An array has fewer dimensions than the function needs.

        jnp.linalg.inv(jnp.ones(3))       # wrong: an inverse is of a matrix
        jnp.linalg.inv(jnp.ones((1, 1)))  # right

    Give it more, with `reshape` or `x[None]`.
    """


class EmptyAxisError(Explained, IndexError, TypeError):
    """Elements were asked for along an axis that has none.

        jnp.zeros((0, 3))[jnp.array([0])]             # wrong: there is no row
        jnp.zeros((0, 3))[jnp.array([], jnp.int32)]  # right

    JAX raises an IndexError where the place is a number and a TypeError where it is an array; this is both.
    """


class UnhashableArgumentError(ArgumentError):
    """A list, dict or array was given for a static argument; give a number, a name or a tuple.

    A program is compiled for each value of a static argument, and found again by its hash, which lists have none of.
    """


class TracedArgumentError(ConcretizationTypeError, TracerIntegerConversionError, ValueError):
    """A traced value was given for a static argument; mark the argument static (`static_argnums`) where it is traced.

    It is also the ValueError that functions raise for static arguments that cannot be hashed.
    """

    def __init__(self, tracer, context: str = ""):
        what = "Abstract tracer value encountered, not a concrete value: traced array"
        JAXTypeError.__init__(self, _describe(what, tracer, context))


class TracedFlagError(TracerBoolConversionError, ValueError):
    """A traced value was given for a flag; mark the argument static (`static_argnums`) where it is traced."""

    def __init__(self, tracer, context: str = ""):
        what = "Attempted boolean conversion of traced array"
        JAXTypeError.__init__(self, _describe(what, tracer, context))


class InconclusiveDimensionOperation(Explained):
    """A comparison of symbolic dimensions that has no answer, or the use of one where an integer is needed.

    It may be decided by `constraints=` of `jax.export.symbolic_shape`.
    """


class ShardingTypeError(Explained):
    """How a result is cut along explicit mesh axes is ambiguous, or its operands disagree.

    Say how it is to be cut: many functions take `out_sharding=`, and `jax.reshard(x, spec)` moves an operand.
    """


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice, so that numbers come again that are taken for independent.

        key = jax.random.key(0)
        a, b = jax.random.normal(key), jax.random.normal(key)  # wrong: a == b

        key1, key2 = jax.random.split(key)
        a, b = jax.random.normal(key1), jax.random.normal(key2)  # right

    It is raised under `jax.debug_key_reuse(True)`.
    """


def _describe(what: str, tracer, advice: str) -> str:
    text = f"{what} with shape {tracer.describe()}" if hasattr(tracer, "describe") else f"{what}: {tracer}"
    return f"{text}\n{advice}" if advice else text


for _error in [found for found in globals().values() if isinstance(found, type) and issubclass(found, Explained)]:
    _error.__module__ = "pullback.errors"  # which tracebacks show: where users find them

# What tracing a function raises that decides by values, warns, or is not made for tracers.
UNTRACEABLE = (TypeError, ValueError, IndexError, AttributeError, NotImplementedError, Warning)
