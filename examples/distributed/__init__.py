"""Programs of several processes, on pullback or (`--backend jax`) on JAX: the same results for any number of them.

mpiexec -n 4 python -m examples.distributed.pln
python -m pullback launch -n 4 -m examples.distributed.heat --picture heat.png
"""
