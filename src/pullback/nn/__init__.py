"""Activations, softmax and its kin, attention, and initial values of weights (`initializers`)."""

from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.nn import PAGES as _PAGES
from pullback.nn import _parameters
from pullback.nn._activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
)
from pullback.nn._attention import (
    dot_product_attention,
    get_scaled_dot_general_config,
    scaled_dot_general,
    scaled_matmul,
)
from pullback.nn._normalizing import log_softmax, logmeanexp, logsumexp, softmax, standardize
from pullback.numpy import tanh
from pullback.util.absent import late_modules as _late_modules

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax",
    "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu",
    "sigmoid",
    "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish",
    "tanh",
]  # fmt: skip

_remember_all(globals(), _parameters.NN, _parameters.NN_OWN, skip=("get_scaled_dot_general_config", "one_hot"))
_explain_all(globals(), _parameters.NN, _parameters.NN_OWN)
_add_pages(globals(), _PAGES)

# With pullback.random, which costs as much to import as all that is here.
__getattr__ = _late_modules(__name__, ["initializers"])


def __dir__():
    return sorted({*globals(), "initializers"})
