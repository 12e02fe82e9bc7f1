"""Pages of Taylor series."""

SERIES = """    fun: function of trees of arrays.
    primals: sequence of the arguments.
    series: for each argument the list of its derivatives.
    factorial_scaled: whether terms are derivatives, and not coefficients: derivatives over factorials.
    _: other arguments have no effect."""

PAGES = {
    "jet jet2": f"""
Arguments:
{SERIES}
Returns:
    (result, tree like it of lists of as many derivatives).
Raises:
    ValueError for lists of different lengths; TypeError for what is no array.

>>> value, terms = jax.experimental.jet.jet(lambda x: x**2, (3.0,), ([1.0, 0.0],))
>>> float(value), [float(t) for t in terms]
(9.0, [6.0, 2.0])
""",
    "fact": """
Arguments:
    n: integer.
Returns:
    int.
Raises:
    ValueError for a negative number.

>>> jax.experimental.jet.fact(4)
24
""",
    "ZeroSeries": """
>>> isinstance(jax.experimental.jet.zero_series, jax.experimental.jet.ZeroSeries)
True
""",
    "ZeroTerm": """
>>> isinstance(jax.experimental.jet.zero_term, jax.experimental.jet.ZeroTerm)
True
""",
}
