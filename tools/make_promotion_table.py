"""Writes tests/util/data/promotion.json; run under real JAX 0.10.2:  python tools/make_promotion_table.py > FILE."""

import json
import warnings

import jax
import jax.numpy as jnp

warnings.simplefilter("ignore")
names = [
    "bool",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e8m0fnu",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
nodes = names + ["int*", "float*", "complex*"]
val = {"int*": 1, "float*": 1.0, "complex*": 1j}
out = {}
for x64 in (0, 1):
    jax.config.update("jax_enable_x64", bool(x64))
    for mode in ("standard", "strict"):
        jax.config.update("jax_numpy_dtype_promotion", mode)
        rows = []
        for a in nodes:
            row = []
            for b in nodes:
                va = val[a] if a in val else jnp.dtype(a)
                vb = val[b] if b in val else jnp.dtype(b)
                try:
                    d, w = jax.dtypes.result_type(va, vb, return_weak_type_flag=True)
                    row.append(d.name + ("*" if w else ""))
                except jax.dtypes.TypePromotionError:
                    row.append("-")
            rows.append(" ".join(row))
        out[f"x64={x64} {mode}"] = rows
NOTE = (
    "result_type(row, column) of JAX 0.10.2; a trailing * marks a weak type, - a TypePromotionError; int*, float*, "
    "complex* are Python scalars. Made by tools/make_promotion_table.py under real JAX."
)
print(json.dumps({"note": NOTE, "nodes": nodes, "tables": out}, indent=0))
