"""Pages of what `jit` makes on the way to a program."""

PAGES = {
    "Wrapped": """
>>> f = jax.jit(jnp.sin)
>>> f.lower(1.0).compile()(1.0)
Array(0.84147096, dtype=float32, weak_type=True)
>>> f.eval_shape(jnp.ones(3))
ShapeDtypeStruct(shape=(3,), dtype=float32)
""",
    "Traced": """
>>> traced = jax.jit(jnp.sin).trace(1.0)
>>> traced.jaxpr
{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
>>> traced.lower().compile()(0.0)
Array(0., dtype=float32, weak_type=True)
""",
    "Lowered": """
>>> lowered = jax.jit(jnp.dot).lower(jnp.ones((2, 3)), jnp.ones(3))
>>> lowered.cost_analysis()["flops"]
12.0
>>> "func" in lowered.as_text()
True
""",
    "Compiled": """
>>> compiled = jax.jit(lambda x: x + 1).lower(jnp.ones(2)).compile()
>>> compiled(jnp.ones(2))
Array([2., 2.], dtype=float32)
>>> compiled.memory_analysis().output_size_in_bytes
8
""",
    "ArgInfo": """
>>> (info,), _ = jax.jit(jnp.sin, donate_argnums=0).lower(1.0).args_info
>>> info.shape, info.donated
((), True)
""",
}
