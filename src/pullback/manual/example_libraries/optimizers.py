"""Pages of optimizers: each is three functions of pytrees."""

STEP = "    step_size: positive number, or schedule: function from the number of a step to it."
NUMBERS = "TypeError from the schedule, for what are no numbers."
RULE = "    step_size, decay_steps, decay_rate: positive numbers."


def _optimizer(call: str, more: str = "") -> str:
    return f"""
Arguments:
{STEP}
{more}Returns:
    Optimizer: init_fn(params), update_fn(step, gradients, state) and params_fn(state).
Raises:
    TypeError from update_fn, for gradients whose structure is not that of the parameters.

>>> from pullback.example_libraries import optimizers
>>> init, update, params_of = optimizers.{call}
>>> state = init({{"w": jnp.array([1.0, -1.0])}})
>>> for step in range(100):
...     state = update(step, jax.grad(lambda p: (p["w"] ** 2).sum())(params_of(state)), state)
>>> jnp.abs(params_of(state)["w"]).max() < 0.5
Array(True, dtype=bool)
"""


def _schedule(
    arguments: str, call: str, step: int, value: str, raises: str = NUMBERS
) -> str:
    return f"""
Arguments:
{arguments}
Returns:
    Schedule: function from the number of a step to a step size.
Raises:
    {raises}

>>> from pullback.example_libraries import optimizers
>>> print(round(float(optimizers.{call}({step})), 4))
{value}
"""


MASS = "    mass: number from 0 to 1.\n"
MOMENTUM = "    momentum: number from 0 to 1.\n"
MEANS = "    b1, b2: numbers from 0 to 1: how slowly the means change.\n    eps: small positive number.\n"
GAMMA = "    gamma: number from 0 to 1: how slowly the mean changes.\n    eps: small positive number.\n"

PAGES = {
    "Optimizer": """
>>> from pullback.example_libraries import optimizers
>>> optimizer = optimizers.sgd(0.1)
>>> state = optimizer.update_fn(0, jnp.ones(2), optimizer.init_fn(jnp.zeros(2)))
>>> optimizer.params_fn(state)
Array([-0.1, -0.1], dtype=float32)
""",
    "OptimizerState": """
>>> from pullback.example_libraries import optimizers
>>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.ones(2)})
>>> type(state).__name__, len(jax.tree.leaves(state))
('OptimizerState', 2)
""",
    "optimizer": """
Arguments:
    opt_maker: function that gives (init, update, get_params) of single arrays.
Returns:
    Function like opt_maker, which gives an Optimizer of trees.
Raises:
    TypeError from update_fn, for gradients whose structure is not that of the parameters.

>>> from pullback.example_libraries import optimizers
>>> @optimizers.optimizer
... def sign_descent(size):
...     return (lambda x: x), (lambda step, g, x: x - size * jnp.sign(g)), (lambda x: x)
>>> init, update, params_of = sign_descent(0.5)
>>> params_of(update(0, [jnp.float32(7.0)], init([jnp.float32(1.0)])))
[Array(0.5, dtype=float32)]
""",
    "sgd": _optimizer("sgd(0.1)"),
    "momentum": _optimizer("momentum(0.1, 0.9)", MASS),
    "nesterov": _optimizer("nesterov(0.1, 0.9)", MASS),
    "adagrad": _optimizer("adagrad(0.1)", MOMENTUM),
    "rmsprop": _optimizer("rmsprop(0.05)", GAMMA),
    "rmsprop_momentum": _optimizer("rmsprop_momentum(0.01)", GAMMA + MOMENTUM),
    "adam": _optimizer("adam(0.05)", MEANS),
    "adamax": _optimizer("adamax(0.05)", MEANS),
    "sm3": _optimizer("sm3(0.1)", MOMENTUM),
    "constant": _schedule("    step_size: positive number.", "constant(0.1)", 7, "0.1"),
    "exponential_decay": _schedule(RULE, "exponential_decay(1.0, 10, 0.5)", 20, "0.25"),
    "inverse_time_decay": _schedule(
        RULE + "\n    staircase: whether step / decay_steps is rounded down.", "inverse_time_decay(1.0, 10, 1.0)", 10,
        "0.5",
    ),
    "polynomial_decay": _schedule(
        "    step_size, decay_steps, final_step_size: positive numbers.\n    power: positive number.",
        "polynomial_decay(1.0, 10, 0.0)", 5, "0.5",
    ),
    "piecewise_constant": _schedule(
        "    boundaries: increasing numbers of steps.\n    values: step sizes, one more.",
        "piecewise_constant([10], [1.0, 0.1])", 20, "0.1",
        "ValueError unless both are sequences of numbers, with one more step size.",
    ),
    "make_schedule": _schedule("    scalar_or_schedule: number or schedule.", "make_schedule(0.5)", 3, "0.5",
        "TypeError for what is neither."),
    "l2_norm": """
Arguments:
    tree: tree of arrays.
Returns:
    Scalar.

>>> from pullback.example_libraries import optimizers
>>> optimizers.l2_norm([jnp.float32(3.0), jnp.float32(4.0)])
Array(5., dtype=float32)
""",
    "clip_grads": """
Arguments:
    grad_tree: tree of arrays.
    max_norm: positive number.
Returns:
    Tree like grad_tree.

>>> from pullback.example_libraries import optimizers
>>> optimizers.clip_grads([jnp.float32(3.0), jnp.float32(4.0)], 1.0)
[Array(0.6, dtype=float32), Array(0.8, dtype=float32)]
""",
    "unpack_optimizer_state": """
Arguments:
    opt_state: OptimizerState.
Returns:
    Tree like the parameters, of JoinPoint.
Raises:
    AttributeError for what is no state.

>>> from pullback.example_libraries import optimizers
>>> state = optimizers.sgd(0.1)[0]([1.0])
>>> optimizers.unpack_optimizer_state(state)[0].subtree
1.0
""",
    "pack_optimizer_state": """
Arguments:
    marked_pytree: tree of JoinPoint.
Returns:
    OptimizerState.
Raises:
    TypeError for other leaves.

>>> from pullback.example_libraries import optimizers
>>> state = optimizers.sgd(0.1)[0]([1.0])
>>> optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)).packed_state
([1.0],)
""",
    "JoinPoint": """
Arguments:
    subtree: state of one array.

>>> from pullback.example_libraries import optimizers
>>> jax.tree.leaves([optimizers.JoinPoint(1.0)])[0].subtree
1.0
""",
}  # fmt: skip
