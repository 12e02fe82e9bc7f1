"""Operations and largest errors of the elementary and special functions: `cd tests; python -m loops.math.table`."""

import numpy as np
from loops.math import kit, test_elementary, test_special


def measured(name: str, dtype: str) -> tuple[int, float]:
    """(operations, largest error in ulp) of a function."""
    if name in test_special.SCIPY:
        args = (test_special.points(name, dtype, 20_000 if dtype == "f32" else 60),)
        with np.errstate(all="ignore"):
            of_f32 = dtype == "f32"  # SciPy's f64 is exact enough for it
            want = test_special.SCIPY[name](args[0].astype(np.float64)) if of_f32 else test_special.exact(name, *args)
    else:
        args = test_elementary.arguments(name, dtype, 10_000)
        want = test_elementary.reference(name, *args)
    error, _ = kit.worst(kit.compiled(name, *args), want, *args)
    root, _ = kit.expansion(name, (dtype,) * len(args))
    return kit.count_ops(root), error


if __name__ == "__main__":
    print("function     f32: ops  ulp     f64: ops  ulp")
    for name in [*test_elementary.UNARY, "pow", "atan2", *test_special.SCIPY]:
        found = [measured(name, dtype) for dtype in ("f32", "f64")]
        print(f"{name:12s}" + "".join([f"     {ops:4d} {error:5.2f}" for ops, error in found]))
