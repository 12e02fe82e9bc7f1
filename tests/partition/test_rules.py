"""The rules of primitives: each has one, or a reason for none; their samples, cut at random, give what is whole."""

import logging
import sys

import numpy as np
import pytest

import pullback as jax
import pullback.lax.linalg
import pullback.random
import pullback.ref
import pullback.scipy.special  # primitives are made where they are imported
from pullback.core.primitive import Primitive, registry
from pullback.partition.rules import rule_of
from pullback.partition.rules.elementwise import elementwise
from pullback.sharding import AxisType, Mesh, NamedSharding
from pullback.sharding import PartitionSpec as P

# Primitives that are partitioned without a rule, and how.
WITHOUT = {
    "by the pass itself, with the programs inside": {"cond", "scan", "while"},
    "inlined before": {
        *("custom_jvp_call", "custom_linear_solve", "custom_vjp_call", "custom_vmap_call", "jit", "linear_call"),
        *("check", "remat2", "remembered", "tile"),
    },
    "what is wanted of it is computed on each device": {"dim_as_value", "empty", "iota"},
    "the host is given all of it": {
        "buffer_callback",
        "debug_callback",
        "debug_print",
        "ffi_call",
        "io_callback",
        "pure_callback",
    },
    "each device draws the same bits": {"rng_bit_generator", "rng_uniform"},
    "over manual axes, where nothing is partitioned": {"axis_index"},
    "not in programs that are compiled": {"custom_lin", "dce_sink"},
    "references, which are discharged before": {"addupdate", "freeze", "get", "new_ref", "swap"},
}
MESHES = [
    Mesh(np.array(jax.devices()[:n]), ("x",), axis_types=(AxisType.Auto,)) for n in (2, 3)
] + [Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)]  # fmt: skip


def _module_of(primitive):
    return getattr(primitive.abstract_eval, "__module__", "") or ""


def test_each_primitive_has_a_rule_or_a_reason():
    known = set().union(*WITHOUT.values())
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("pullback.")]
    made = {p for module in modules for p in vars(module).values() if isinstance(p, Primitive)}  # not by other tests
    ours = [p for p in made.intersection(registry.values()) if _module_of(p).startswith("pullback.")]
    lacking = {p.name for p in ours if rule_of(p) is None and p.collective_axes is None}
    assert len(ours) > 150 and lacking - known <= {"ragged_all_to_all"}  # which no CPU has


def _own_rule(name):
    p = registry[name]
    if name == "threefry_gamma":  # takes long to compile; test_programs.py draws from it
        return False
    return rule_of(p) not in (None, elementwise) and p.collective_axes is None and getattr(p.samples, "cases", None)


def _random_spec(rng, shape, mesh):
    """A spec that cuts some dimensions, and whether any."""
    free, parts = list(mesh.axis_names), []
    for n in shape:
        axes = tuple(free) if len(free) > 1 and rng.random() < 0.3 else tuple(free[:1])
        count = int(np.prod([mesh.shape[a] for a in axes]))
        if axes and n and n % count == 0 and rng.random() < 0.7:
            parts.append(axes)
            free = [a for a in free if a not in axes]
        else:
            parts.append(None)
    return P(*parts), len(free) < len(mesh.axis_names)


@pytest.mark.parametrize("name", sorted(filter(_own_rule, list(registry))))
def test_samples_in_parts(name, caplog):
    rng = np.random.default_rng(len(name))
    primitive = registry[name]
    tried = 0
    for case in primitive.samples.cases(rng)[:4]:
        if sum(np.size(x) for x in case.operands) > 10_000:
            continue

        def run(*xs, params=case.params):
            return primitive.bind(*xs, **params)

        whole = None
        for _ in range(6):
            mesh = MESHES[rng.integers(len(MESHES))]
            specs, cut = zip(*[_random_spec(rng, np.shape(x), mesh) for x in case.operands])
            if not any(cut):
                continue
            tried += 1
            whole = jax.jit(run)(*case.operands) if whole is None else whole
            placed = [jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(case.operands, specs)]
            with caplog.at_level(logging.WARNING):
                parts = jax.jit(run)(*placed)
            for y, want in zip(jax.tree.leaves(parts), jax.tree.leaves(whole), strict=True):
                assert y.aval == want.aval
                np.testing.assert_allclose(
                    np.asarray(y, np.complex128),
                    np.asarray(want, np.complex128),
                    rtol=2e-5,
                    atol=1e-5,
                    err_msg=str(specs),
                )
            break
        if tried == 2:
            break
    if primitive.name != "reshape":  # whose dimensions need not share factors
        assert "has no rule" not in caplog.text
