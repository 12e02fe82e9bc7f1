"""Pages of what derivatives keep."""

KEPT = """    f: function of trees of arrays.
    args, kwargs: its arguments."""

PAGES = {
    "checkpoint_name": """
Arguments:
    x: tree of arrays.
    name: text.
Returns:
    Tree like x.

>>> from pullback.ad_checkpoint import checkpoint_name
>>> policy = jax.checkpoint_policies.save_only_these_names("sin")
>>> jax.grad(jax.checkpoint(lambda x: checkpoint_name(jnp.sin(x), "sin") ** 2, policy=policy))(0.0)
Array(0., dtype=float32, weak_type=True)
""",
    "saved_residuals": f"""
Arguments:
{KEPT}
Returns:
    List of (type, text that says where it comes from).

>>> jax.ad_checkpoint.saved_residuals(lambda x: x * x, 2.0)
[(ShapedArray(float32[], weak_type=True), 'from the argument x')]
""",
    "print_saved_residuals": f"""
Arguments:
{KEPT}
Returns:
    None.

>>> jax.ad_checkpoint.print_saved_residuals(lambda x: x * x, 2.0)
f32[] from the argument x
""",
}
