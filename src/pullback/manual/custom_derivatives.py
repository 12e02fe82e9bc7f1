"""Pages of functions with derivatives of their own."""

PAGES = {
    "custom_vjp_primal_tree_values": """
Arguments:
    tree: tree of CustomVJPPrimal, as a fwd rule defined with symbolic_zeros=True gets it.
Returns:
    Tree of their values.
Raises:
    TypeError for other leaves.

>>> from pullback.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
>>> custom_vjp_primal_tree_values([CustomVJPPrimal(2.0, perturbed=True)])
[2.0]
""",
    "zero_from_primal": """
Arguments:
    val: tree of arrays and numbers.
    symbolic_zeros: whether leaves are SymbolicZero, which need no memory.
Returns:
    Tree of arrays of zeros; those of integers have dtype float0.

>>> jax.custom_derivatives.zero_from_primal(jnp.ones(2))
Array([0., 0.], dtype=float32)
""",
    "SymbolicZero": """
Arguments:
    aval: type of the tangent, as of `jax.typeof`.

>>> jax.custom_derivatives.SymbolicZero(jax.typeof(jnp.ones(2)))
SymbolicZero(f32[2])
""",
    "CustomVJPPrimal": """
Arguments:
    value: array or number.
    perturbed: whether derivatives with respect to it are wanted.

>>> from pullback.custom_derivatives import CustomVJPPrimal
>>> CustomVJPPrimal(2.0, perturbed=False).perturbed
False
""",
    "linear_call": """
Arguments:
    fun: function of (residual_args, linear_args), linear in the second.
    fun_transpose: function of (residual_args, cotangents of the result) that gives those of linear_args.
    residual_args, linear_args: trees of arrays.
Returns:
    What fun gives.
Raises:
    TypeError if what fun_transpose gives is not like linear_args. Whether it is the transpose is not checked.

>>> from pullback.custom_derivatives import linear_call
>>> linear_call(lambda d, x: x / d, lambda d, t: t / d, 4.0, 3.0)
Array(0.75, dtype=float32, weak_type=True)
""",
}
