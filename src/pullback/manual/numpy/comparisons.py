"""Pages of comparisons and of questions about values."""

from pullback.manual._arguments import BOOLEAN_PAIRS, BOOLEANS, OUT, PAIR_ANY, X_ANY

PAGES = {
    "equal": f"""
Arguments:
{PAIR_ANY}
Returns:
    {BOOLEAN_PAIRS} NaN equals nothing.
Raises:
    TypeError for lists.

>>> jnp.equal(jnp.array([1, 2, 3]), 2)
Array([False,  True, False], dtype=bool)
""",
    "not_equal": f"""
Arguments:
{PAIR_ANY}
Returns:
    {BOOLEAN_PAIRS} NaN differs from everything.
Raises:
    TypeError for lists.

>>> jnp.not_equal(jnp.array([1, 2, 3]), 2)
Array([ True, False,  True], dtype=bool)
""",
    "greater": f"""
Arguments:
{PAIR_ANY}
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.greater(jnp.array([1, 2, 3]), 2)
Array([False, False,  True], dtype=bool)
""",
    "greater_equal": f"""
Arguments:
{PAIR_ANY}
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
Array([False,  True,  True], dtype=bool)
""",
    "less": f"""
Arguments:
{PAIR_ANY}
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.less(jnp.array([1, 2, 3]), 2)
Array([ True, False, False], dtype=bool)
""",
    "less_equal": f"""
Arguments:
{PAIR_ANY}
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
Array([ True,  True, False], dtype=bool)
""",
    "isclose": f"""
Arguments:
    a, b: arrays or scalars of numbers, which broadcast.
    rtol: largest distance as a part of |b|.
    atol: largest distance that does not depend on b.
    equal_nan: whether NaN is close to NaN.
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.isclose(jnp.array([1.0, 1.1, jnp.nan]), jnp.array([1.0 + 1e-6, 1.0, jnp.nan]), equal_nan=True)
Array([ True, False,  True], dtype=bool)
""",
    "allclose": """
Arguments:
    a, b: arrays or scalars of numbers, which broadcast.
    rtol: largest distance as a part of |b|.
    atol: largest distance that does not depend on b.
    equal_nan: whether NaN is close to NaN.
Returns:
    Array of bool without axes.
Raises:
    TypeError for lists.
Unlike numpy.allclose:
    The result is an array, so that it can be traced.

>>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0 + 1e-6]))
Array(True, dtype=bool)
""",
    "array_equal": """
Arguments:
    a1, a2: arrays, or lists of numbers.
    equal_nan: whether NaN equals NaN.
Returns:
    Array of bool without axes.

>>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
Array(True, dtype=bool)
>>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2, 3]))
Array(False, dtype=bool)
""",
    "array_equiv": """
Arguments:
    a1, a2: arrays, or lists of numbers.
Returns:
    Array of bool without axes; False if the shapes do not broadcast.

>>> jnp.array_equiv(jnp.array([1, 1]), jnp.array([[1, 1], [1, 1]]))
Array(True, dtype=bool)
""",
    "isnan": f"""
Arguments:
{X_ANY}
Returns:
    {BOOLEANS}
Raises:
    TypeError for lists.

>>> jnp.isnan(jnp.array([1.0, jnp.nan, jnp.inf]))
Array([False,  True, False], dtype=bool)
""",
    "isinf": f"""
Arguments:
{X_ANY}
Returns:
    {BOOLEANS}
Raises:
    TypeError for lists.

>>> jnp.isinf(jnp.array([1.0, jnp.nan, -jnp.inf]))
Array([False, False,  True], dtype=bool)
""",
    "isfinite": f"""
Arguments:
{X_ANY}
Returns:
    {BOOLEANS}
Raises:
    TypeError for lists.

>>> jnp.isfinite(jnp.array([1.0, jnp.nan, jnp.inf]))
Array([ True, False, False], dtype=bool)
""",
    "isposinf": f"""
Arguments:
    x: array or scalar of real numbers.
{OUT}
Returns:
    {BOOLEANS}

>>> jnp.isposinf(jnp.array([1.0, -jnp.inf, jnp.inf]))
Array([False, False,  True], dtype=bool)
""",
    "isneginf": f"""
Arguments:
    x: array or scalar of real numbers.
{OUT}
Returns:
    {BOOLEANS}

>>> jnp.isneginf(jnp.array([1.0, -jnp.inf, jnp.inf]))
Array([False,  True, False], dtype=bool)
""",
    "iscomplex": f"""
Arguments:
{X_ANY}
Returns:
    {BOOLEANS}
Raises:
    TypeError for lists.

>>> jnp.iscomplex(jnp.array([1 + 1j, 2 + 0j]))
Array([ True, False], dtype=bool)
""",
    "isreal": f"""
Arguments:
{X_ANY}
Returns:
    {BOOLEANS}
Raises:
    TypeError for lists.

>>> jnp.isreal(jnp.array([1 + 1j, 2 + 0j]))
Array([False,  True], dtype=bool)
""",
    "signbit": f"""
Arguments:
    x: array or scalar of real numbers.
Returns:
    {BOOLEANS}
Raises:
    TypeError for lists.

>>> jnp.signbit(jnp.array([-1.0, -0.0, 0.0]))
Array([ True,  True, False], dtype=bool)
""",
    "isin": """
Arguments:
    element: array or list of any shape and dtype.
    test_elements: array or list; its shape does not matter.
    assume_unique: whether neither has an element twice; the result is the same.
    invert: whether to say which are not among the test elements.
    method: 'auto', 'compare_all', 'binary_search' or 'sort': how it is computed.
Returns:
    Array of bool, of the shape of element.
Raises:
    ValueError for another method.

>>> jnp.isin(jnp.array([[0, 1], [2, 3]]), jnp.array([1, 3, 5]))
Array([[False,  True],
       [False,  True]], dtype=bool)
""",
    "iscomplexobj": """
Arguments:
    x: array, scalar or list.
Returns:
    bool.

>>> jnp.iscomplexobj(jnp.array([1j])), jnp.iscomplexobj(1.0)
(True, False)
""",
    "isrealobj": """
Arguments:
    x: array, scalar or list.
Returns:
    bool.

>>> jnp.isrealobj(jnp.array([1j])), jnp.isrealobj(1.0)
(False, True)
""",
    "isscalar": """
Arguments:
    element: anything.
Returns:
    bool.
Unlike numpy.isscalar:
    Arrays without axes are scalars, too.
Raises:
    Nothing.

>>> jnp.isscalar(1.5), jnp.isscalar(jnp.array(1)), jnp.isscalar(jnp.array([1]))
(True, True, False)
""",
    "iterable": """
Arguments:
    y: anything.
Returns:
    bool.
Raises:
    Nothing.

>>> jnp.iterable(jnp.array([1])), jnp.iterable(3)
(True, False)
""",
}
