"""What goes wrong on one process: the first argument says what. Every process prints the error that it meets.

The second, where there is one, is a file that the first process makes, and for which the last one waits.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

import pullback as jax
from pullback import lax
from pullback.jax_names.src.distributed import global_state
from pullback.sharding import PartitionSpec as P

what = sys.argv[1]
if what == "absent":
    jax.distributed.initialize(initialization_timeout=2) if os.environ["PMI_RANK"] == "0" else time.sleep(900)
jax.distributed.initialize()
rank, count = jax.process_index(), jax.process_count()


def meet(name):
    global_state.client.wait_at_barrier(name, 900_000)


mesh = jax.make_mesh((count,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))


def summed(n=3, scale=1.0):
    f = jax.jit(jax.shard_map(lambda x: lax.psum(x * scale, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
    return lambda: np.asarray(f(np.ones((count, n), np.float32)))


step = summed()
meet("together")  # the first steps of all are to be at one time, where no process waits for long for another
assert np.array_equal(step(), np.full((1, 3), count))
last = rank == count - 1
sign = Path(*sys.argv[2:3])


class NoText(Exception):
    def __str__(self):
        raise KeyError("text")


def wait_for(file):
    while not file.exists():
        time.sleep(0.01)


started = time.perf_counter()
try:
    if what == "forks":  # on all: children that end in every way, and such as ask for what only their parents may
        for way in ("exits", "sums", "asks", "ends"):
            if (child := os.fork()) == 0:
                if way == "exits":
                    sys.exit(0)
                if way == "ends":
                    os._exit(0)
                try:
                    step() if way == "sums" else global_state.client.key_value_set("a", "b")
                except RuntimeError as error:
                    sys.stdout.write(f"forked: {error}\n")  # in one piece: the others write, too
                    sys.stdout.flush()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    if what == "starts another" and last:  # which has the variables of its launcher
        another = "import pullback as jax; jax.distributed.initialize()"
        done = subprocess.run([sys.executable, "-c", another], capture_output=True, text=True)
        sys.stdout.write(f"another: {done.stderr.splitlines()[-1]}\n")
    if what == "exception" and last:
        raise ArithmeticError("the loss is nan")
    if what == "exception after another hook" and last:
        sys.excepthook = lambda kind, *_: print(kind.__name__, file=sys.stderr)
        raise ArithmeticError("the loss is nan")
    if what == "exception whose text raises" and last:
        raise NoText
    if what == "exception whose text no file takes" and last:
        raise ArithmeticError("\ud800 \0")
    if what == "killed" and last:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "gone" and last:
        os._exit(0)
    if what == "hangs" and last:
        time.sleep(1000)
    if what == "killed, others at a barrier":
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        meet("never")
    if what == "leaves, others at a barrier":
        if last:
            sys.exit(3)
        meet("never")
    if what == "trees":
        from pullback.experimental.multihost_utils import broadcast_one_to_all

        broadcast_one_to_all({"a": 1.0} if last else {"a": 1.0, "b": 2.0})
    if what == "gathered trees":
        from pullback.experimental.multihost_utils import process_allgather

        process_allgather({"a": 1.0} if last else {"b": 1.0})
    if what == "nan":
        jax.config.update("jax_debug_nans", True)
        own = np.full(2, -1.0 if last else 1.0, np.float32)
        cut = jax.sharding.NamedSharding(mesh, P("i"))
        jax.jit(jax.numpy.log)(jax.make_array_from_process_local_data(cut, own))
    if what == "program":
        other = summed(scale=2.0) if last else summed(scale=3.0)
        other()
    if what == "shape":
        other = summed(n=5) if last else summed(n=4)
        other()
    if what == "mesh":  # the same devices in another order, so that both would be the first
        own = jax.sharding.Mesh(mesh.devices[::-1] if last else mesh.devices, ("i",))
        cut = jax.sharding.NamedSharding(own, P("i"))
        x = jax.make_array_from_callback((count,), cut, lambda index: np.ones(count, np.float32)[index])
        jax.jit(jax.shard_map(lambda x: x * lax.axis_index("i"), mesh=own, in_specs=P("i"), out_specs=P("i")))(x)
    if what == "old program":  # both have run, so that nothing is compared any more
        others = summed(n=5), summed(n=4)
        for other in others:
            other()
        others[last]()
    if what == "order":
        others = summed(n=5, scale=2.0), summed(n=5)
        for other in others:
            other()
        others[last]()
    if what == "calls":  # of a program that only sends on one process, and only receives on the other
        moved = lambda x: lax.ppermute(x, "i", [(0, 1)])
        move = jax.jit(jax.shard_map(moved, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
        for k in range(3 - last):
            move(np.full((count, 3), k, np.float32))
        step()
        print("taken for another call's:", np.asarray(move(np.full((count, 3), 9, np.float32)).addressable_data(0)))
    if what == "threads":
        found = []
        long = summed(n=300_000)
        long()

        def work():
            try:
                for _ in range(200):
                    long()
            except RuntimeError as error:
                found.append(error)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        raise found[0]
    if what == "values":
        own = np.full(3, rank, np.float32)
        cut = jax.device_put(np.ones((count, 3), np.float32), jax.sharding.NamedSharding(mesh, P("i")))
        jax.jit(lambda x, y: x * y + own)(cut, np.full(3, rank, np.float32))
        jax.jit(lambda x, y: x * y + np.arange(3))(cut, np.ones(3, np.float32))
    if what == "late" and last:
        wait_for(sign)  # the other has given up
    if what == "slow":  # once the other is about to wait; several times, as that may be kept from running meanwhile
        for k in range(5):
            meet(f"round {k}")
            time.sleep(0.5 * last)
            step()
    if what == "leaves" and last:
        sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    if what == "after shutdown":
        jax.distributed.shutdown()
        try:
            jax.distributed.initialize()
        except RuntimeError as error:
            print(f"again: {error}", flush=True)
    if what == "interrupt":
        if rank == 0:
            print("ready", flush=True)
        time.sleep(0.5 if not last else 900)
    for _ in range(3):
        step()
except BaseException as error:
    if "text" not in what or not last:  # which cannot be written
        text = f"process {rank} after {time.perf_counter() - started:.1f} s: {type(error).__name__}: {error}\n"
        sys.stdout.write(text)  # in one piece: the others write, too
        sys.stdout.flush()
    if what == "late":
        sign.touch()
    raise
print(f"process {rank} is well", flush=True)
