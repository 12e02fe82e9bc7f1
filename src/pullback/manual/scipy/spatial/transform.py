"""Pages of rotations."""

PAGES = {
    "Rotation": """
Made by from_quat, from_rotvec, from_mrp, from_matrix, from_euler, identity, random and concatenate. The product of two
is the second rotation, then the first.

>>> turn = jax.scipy.spatial.transform.Rotation.from_euler("z", 90, degrees=True)
>>> jnp.round(turn.apply(jnp.array([1.0, 0.0, 0.0])), 4)
Array([0., 1., 0.], dtype=float32)
""",
    "Slerp": """
>>> from pullback.scipy.spatial.transform import Rotation, Slerp
>>> turns = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
>>> Slerp.init(jnp.array([0.0, 1.0]), turns)(0.5).as_rotvec(degrees=True)
Array([ 0.,  0., 45.], dtype=float32)
""",
}
