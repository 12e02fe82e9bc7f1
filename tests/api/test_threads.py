"""The number of threads: set, restored, taken from the environment and from threadpoolctl, and kept to."""

import os
import subprocess
import sys

import numpy as np
import pytest
from patience import PATIENCE

import pullback as pb
import pullback.numpy as jnp


@pytest.fixture(autouse=True)
def restored():
    before = pb.get_num_threads()
    yield
    pb.set_num_threads(before)


def test_set_and_restore():
    pb.set_num_threads(3)
    assert pb.get_num_threads() == 3
    with pb.set_num_threads(2):
        assert pb.get_num_threads() == 2
        with pb.set_num_threads(1):
            assert pb.get_num_threads() == 1
        assert pb.get_num_threads() == 2
    assert pb.get_num_threads() == 3
    with pytest.raises(ZeroDivisionError), pb.set_num_threads(1):
        raise ZeroDivisionError
    assert pb.get_num_threads() == 3


@pytest.mark.parametrize(
    "bad, error", [(0, ValueError), (1025, ValueError), (2**40, ValueError), (1.5, TypeError), ("2", TypeError)]
)
def test_bad_numbers(bad, error):
    with pytest.raises(error, match="set_num_threads"):
        pb.set_num_threads(bad)


def run(code, **environment):
    outside = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    out = subprocess.run(
        [sys.executable, "-c", code], env=outside | environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert out.returncode == 0, out.stderr
    return out.stdout.strip()


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"OMP_NUM_THREADS": "3"}, "3"),
        ({"OMP_NUM_THREADS": "5,2"}, "5"),
        ({"OMP_NUM_THREADS": "3", "PULLBACK_NUM_THREADS": "2"}, "2"),
        ({"OMP_NUM_THREADS": "nonsense"}, str(len(os.sched_getaffinity(0)))),
    ],
)
def test_environment(environment, expected):
    assert run("import pullback; print(pullback.get_num_threads())", **environment) == expected


@pytest.mark.parametrize("order", ["import threadpoolctl, pullback", "import pullback, threadpoolctl"])
def test_threadpoolctl(order):
    pytest.importorskip("threadpoolctl", reason="threadpoolctl is not installed")
    code = (
        order + "\nbefore = pullback.get_num_threads()\n"
        "with threadpoolctl.threadpool_limits(1): print(pullback.get_num_threads())\n"
        "with threadpoolctl.threadpool_limits(2, user_api='pullback'): print(pullback.get_num_threads())\n"
        "print(pullback.get_num_threads() == before)"
    )
    assert run(code).split() == ["1", "2", "True"]


# Threads of all kinds come and go (BLAS has some, one writes the cache, and one that has been joined may still be
# listed), but those of the pool stay, and have a name.
POOL = """
import glob
def pool_threads():
    found = 0
    for name in glob.glob("/proc/self/task/*/comm"):
        try:
            found += open(name).read() == "pullback-pool\\n"
        except OSError:  # it has ended
            pass
    return found
"""

COUNT = """
import pullback as pb, pullback.numpy as jnp
pb.set_num_threads({limit})
f = pb.jit(lambda x: jnp.sin(x) * 2 + jnp.sum(x @ x))
x = jnp.ones(({n}, {n}))
for _ in range(5): f(x).block_until_ready()
print(pool_threads())
"""

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads by /proc")


@needs_proc
def test_small_work_stays_on_the_callers_thread_and_large_work_in_the_limit():
    assert run(POOL + COUNT.format(limit=4, n=4)) == "0"
    assert run(POOL + COUNT.format(limit=1, n=1500)) == "0"
    assert run(POOL + COUNT.format(limit=2, n=1500)) == "1"


def test_results_are_the_same_for_any_number_of_threads():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(700, 700)).astype(np.float32))
    f = pb.jit(lambda x: (jnp.sum(jnp.tanh(x)), x @ x, jnp.cumsum(x, axis=0)))
    with pb.set_num_threads(1):
        want = [np.asarray(r) for r in f(x)]
    for n in (2, 3):
        with pb.set_num_threads(n):
            for got, expected in zip(f(x), want):
                np.testing.assert_array_equal(got, expected)


SHARED = """
import threading, numpy as np, pullback as pb, pullback.numpy as jnp
pb.set_num_threads(2)
x = jnp.ones((600, 600))
f = pb.jit(lambda x: jnp.tanh(x @ x) + 1)
want, wrong = np.asarray(f(x)), []

def work():
    for _ in range(20):
        wrong.extend(np.flatnonzero(np.asarray(f(x)) != want))

threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(len(wrong), pool_threads())
"""


@needs_proc
def test_python_threads_share_one_pool():
    assert run(POOL + SHARED) == "0 1"
