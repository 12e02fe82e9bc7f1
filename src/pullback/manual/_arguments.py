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

# Random numbers.
KEY = "    key: one random key, as of `key` or `split`. The same key gives the same numbers."
RANDOM_SHAPE = "    shape: tuple of static integers: shape of the result."
RANDOM_SHAPE_OR_BROADCAST = "    shape: tuple of static integers: shape of the result; None for that of the parameters."
RANDOM_DTYPE = "    dtype: float dtype of the result; None for the default float."
RANDOM_INT_DTYPE = "    dtype: integer dtype of the result; None for the default integer."
RANDOM_OUT_SHARDING = "    out_sharding: sharding of the result over a mesh; None leaves it open."
DRAWN = "Array of the shape and the dtype."

# Matrices and transforms.
MATRICES = "    a: array [..., n, n]; integers become the default float."
RECTANGLES = "    a: array [..., m, n]; integers become the default float."
SPECTRUM_LENGTH = "    n: static integer: length to which the axis is cut or filled up with zeros; None for that of a."
SPECTRUM_AXIS = "    axis: integer; a negative one counts from the last axis."
NORM = "    norm: None or 'backward' (the inverse is divided by n), 'ortho' (both by its root), or 'forward'."

# Initial values of weights.
INITIALIZER_DTYPE = "    dtype: dtype of the values unless it is called with another; None for the default float."
INITIALIZER_AXES = (
    "    in_axis, out_axis: integer or tuple of integers: axes of the inputs and of the outputs.\n"
    "    batch_axis: integer or tuple of integers: axes that count for neither."
)
INITIALIZER = "Function (key, shape, dtype=dtype, out_sharding=None) that gives an array."
SIGNAL = "    a: array of numbers of one or more axes."
REAL_SIGNAL = "    a: array of real numbers of one or more axes."
SPECTRUM_LENGTHS = (
    "    s: tuple of static integers: lengths to which axes are cut or filled with zeros; None for those of a."
)
SPECTRUM_AXES = "    axes: pair of integers."

# Primitives: they convert no dtypes, and broadcast scalars only.
LAX_PAIR = "    x, y: arrays of one shape and one dtype, or scalars."
LAX_FLOATS = "    x: array or scalar of floats or complex numbers."
LAX_REAL = "    x: array or scalar of floats."
LAX_BITS = "    x, y: arrays of one shape and one dtype, integers or booleans, or scalars."
ACCURACY = "    accuracy: None, lax.AccuracyMode or lax.Tolerance; the result is the most accurate one anyway."
SAME = "Array of the shape and dtype of x."
PAIR_SAME = "Array of their shape and dtype."
PAIR_BOOL = "Array of bool, of their shape."
NO_OTHERS = "TypeError for shapes or dtypes that differ, and for dtypes of another kind"
OPERAND = "    operand: array of any shape."
POSITIVE_AXIS = "    axis: integer, not negative."
REVERSE = "    reverse: whether to begin at the end."
REDUCED_AXES = "    axes: tuple of integers."
PYTREE = "    x: pytree of arrays."
AXIS_NAME = "    axis_name: name of a mapped axis, of vmap, pmap or shard_map, or tuple of several."
AXIS_GROUPS = "    axis_index_groups: list of lists of places: only these come together. None: all."
WINDOW_MODE = (
    "    mode: None, 'clip', 'fill' ('drop'), 'promise_in_bounds', lax.GatherScatterMode: what is done outside."
)
UNIQUE = "    unique_indices: promise that no place occurs twice."
SORTED = "    indices_are_sorted: promise that the places rise."
NEGATIVE = "    allow_negative_indices: whether negative indices count from the end; or one bool for each axis."
SCATTER_ARGUMENTS = (
    "    operand: array of any shape.\n"
    "    scatter_indices: array of integers [..., k].\n"
    "    updates: array of the dtype of operand.\n"
    "    dimension_numbers: lax.ScatterDimensionNumbers.\n"
    "    indices_are_sorted, unique_indices: promises that the places rise, and that none occurs twice.\n"
    "    mode: None, 'clip', 'fill' ('drop'), 'promise_in_bounds', lax.GatherScatterMode: what is done outside."
)

# Transformations.
DIFFERENTIATED = "    fun: function of arrays with a scalar result."
ARGNUMS = "    argnums: integer or tuple of integers: the arguments by which it is differentiated."
HAS_AUX = "    has_aux: whether fun gives a pair of its result and anything."
HOLOMORPHIC = "    holomorphic: promise that fun is holomorphic, for complex arguments and results."
ALLOW_INT = "    allow_int: whether integers may be differentiated by; their gradients are of dtype float0."
REDUCE_AXES = "    reduce_axes: must be ()."
BACKEND = "    backend: name of a platform; None for the default one."

# Trees.
TREE = "    tree: nested tuples, lists, dicts and other nodes; what is no node is a leaf."
IS_LEAF = "    is_leaf: function of a subtree that says whether it is taken as a leaf; None for leaves alone."
TAKES_PATH = "    is_leaf_takes_path: whether is_leaf is called with the key path, too."

# Segments.
SEGMENT_ARGUMENTS = (
    "    data: array [n, ...].\n"
    "    segment_ids: array of integers [n].\n"
    "    num_segments: static integer; None for the largest id and one more.\n"
    "    indices_are_sorted, unique_indices: promises that ids rise, and that none occurs twice.\n"
    "    bucket_size: static integer: how many elements are folded first; None for all.\n"
    "    mode: None, 'clip', 'fill' ('drop') or 'promise_in_bounds': what is done with ids out of range.\n"
    "    out_sharding: sharding of the result over a mesh; None leaves it open."
)

# Values that are printed.
PRINTED = (
    "    fmt: text as of str.format; None for a function that is called with it.\n"
    "    args: arrays for its places.\n"
    "    ordered: whether calls keep their order.\n"
    "    partitioned: whether it is called for each part of an array over a mesh.\n"
    "    skip_format_check: whether arguments that the text does not use are allowed.\n"
    "    kwargs: arrays for its names."
)

# What SciPy's functions have, and no array here needs.
OVERWRITE_A = "    overwrite_a, check_finite: have no effect."
SPECIAL_X = "    x: array or scalar of real numbers; integers become the default float."
SPECIAL_ANY = "    x: array or scalar of numbers; integers become the default float."
SPECIAL_AB = "    a, b: arrays or scalars of real numbers, promoted to one float dtype and broadcast."
SPECIAL_PQ = "    p, q: arrays or scalars of real numbers, promoted to one float dtype and broadcast."
FLOATS = "Array of floats of the shape of x."
SQUARE = "    a: array [..., n, n]; integers become the default float."
WELCH = (
    "    fs: number: samples in a unit of time.\n"
    "    window: name, pair of a name and its parameter, or vector of nperseg numbers.\n"
    "    nperseg: static integer: samples of a segment; None for 256, or all if there are fewer.\n"
    "    noverlap: static integer: samples that neighbours share; None for half.\n"
    "    nfft: static integer: length of the transforms, filled up with zeros; None for nperseg.\n"
    "    detrend: 'constant', 'linear', a function, or False: what is taken off each segment.\n"
    "    return_onesided: whether real signals give the frequencies alone that are not negative.\n"
    "    scaling: 'density' or 'spectrum'.\n"
    "    axis: integer: the axis of time.\n"
    "    average: 'mean' or 'median'."
)
SPARSE_SOLVER = (
    "    A: function of trees like b, or array [n, n].\n"
    "    b: pytree of arrays.\n"
    "    x0: pytree like b: where to begin; None for zeros.\n"
    "    tol, atol: numbers: it ends at a residual of max(tol |b|, atol)."
)
KERNEL_MODE = "    mode: 'full', 'same' or 'valid': how much of the result is given."
BCOO = "    mat: BCOO."
CSR_MATRIX = "    mat: CSR."
COO_MATRIX = "    mat: COO."
NSE = "    nse: static integer: room for that many entries; None for as many as there are."
INDEX_DTYPE = "    index_dtype: integer dtype of the indices."
