"""The real orbax-checkpoint: `save PATH` or `restore PATH`, on any number of processes."""

import sys

import pullback

pullback.install_as_jax()

import jax  # noqa: E402
import numpy as np  # noqa: E402
import orbax.checkpoint as ocp  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

jax.distributed.initialize()
mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(AxisType.Auto,))
rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
X, B = np.arange(64, dtype=np.float32).reshape(8, 8), np.arange(4, dtype=np.float32)
tree = {
    "w": jax.make_array_from_callback(X.shape, rows, lambda index: X[index]),
    "b": jax.device_put(B, whole),
    "step": 3,
}
with ocp.StandardCheckpointer() as checkpointer:
    if sys.argv[1] == "save":
        checkpointer.save(sys.argv[2], tree)
        checkpointer.wait_until_finished()
    else:
        found = checkpointer.restore(sys.argv[2], jax.tree.map(ocp.utils.to_shape_dtype_struct, tree))
        assert found["step"] == 3 and found["w"].sharding == rows and found["b"].sharding == whole
        for name, want in (("w", X), ("b", B)):
            for shard in found[name].addressable_shards:
                assert np.array_equal(shard.data, want[shard.index])
sys.stdout.write("done\n")
