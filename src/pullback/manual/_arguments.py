"""What pages say of arguments and results that many functions have; a page says more where one of its own differs."""

# Operands of functions that work elementwise.
X_NUMBERS = "    x: array or scalar of numbers."
X_FLOATS = "    x: array or scalar of numbers; integers and booleans become the default float."
X_REAL = "    x: array or scalar of real numbers; integers and booleans become the default float."
X_ANY = "    x: array or scalar of any dtype."
X_BITS = "    x: array or scalar of integers or booleans."
PAIR_NUMBERS = "    x1, x2: arrays or scalars of numbers, which are promoted to one dtype and broadcast."
PAIR_REAL = "    x1, x2: arrays or scalars of real numbers, which are promoted to one dtype and broadcast."
PAIR_FLOATS = "    x1, x2: arrays or scalars of numbers, promoted to one float or complex dtype and broadcast."
PAIR_REAL_FLOATS = "    x1, x2: arrays or scalars of real numbers, promoted to one float dtype and broadcast."
PAIR_BITS = "    x1, x2: arrays or scalars of integers or booleans, which are promoted to one dtype and broadcast."
PAIR_ANY = "    x1, x2: arrays or scalars of any dtype, which are promoted to one dtype and broadcast."
ARGS_NUMBERS = "    args: the operands x1 and x2: arrays or scalars of numbers, promoted to one dtype, broadcast."
ARGS_FLOATS = "    args: the operands x1 and x2: arrays or scalars of numbers, promoted to one float dtype, broadcast."
ARGS_BITS = "    args: the operands x1 and x2: arrays or scalars of integers or booleans, promoted, broadcast."
ARGS_ANY = "    args: the operands x1 and x2: arrays or scalars of any dtype, which broadcast."

# Axes.
AXIS = "    axis: integer; a negative one counts from the last axis."
AXES = "    axis: integer, tuple of integers, or None for all axes. A negative one counts from the last."
AXIS_OR_FLAT = "    axis: integer; a negative one counts from the last axis. None takes all elements in C order."
KEEPDIMS = "    keepdims: whether the axes stay, with size 1."

# Results.
OUT = "    out: must be None."
UFUNC_OUT = "    out, where: must be None."
DTYPE = "    dtype: dtype of the result; None for that of the input."
DTYPE_DEFAULT_FLOAT = "    dtype: dtype of the result; None for the default float: float32, or with x64 float64."
DEVICE = "    device: device or sharding of the result; None for the default device."
OUT_SHARDING = "    out_sharding: sharding of the result over a mesh; None leaves it to the operands."
WHERE_TAKEN = "    where: mask that broadcasts with a: what is False is left out. None takes all."
INITIAL_LEAST = "    initial: number that counts as one more element; needed if there are none, and with `where`."
SIZE = "    size: static length to which the result is cut or filled up; needed under jit. None for no limit."
FILL_VALUE = "    fill_value: what fills the result up to `size`."
INPLACE = "    inplace: must be False, since arrays are immutable."

# Products.
PRECISION = "    precision: None, 'default', 'high', 'highest' or lax.Precision; the CPU always has the highest."
PREFERRED = "    preferred_element_type: dtype of the sums and the result; None for the promoted one."

# Results of elementwise functions.
ELEMENTWISE = "Array of the shape of x, and of its dtype if that is inexact."
BROADCAST = "Array of the broadcast shape, of the promoted dtype."
BOOLEANS = "Array of bool, of the shape of x."
BOOLEAN_PAIRS = "Array of bool, of the broadcast shape."
REDUCED = "Array of the shape of a without the axes."
