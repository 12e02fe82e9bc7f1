"""Programs whose time is in loops: simulations, recurrent networks, filters, samplers, solvers; many small steps.

PyTorch has no compiled loop to compare with: its sides are Python loops over eager operations, given where the number
of steps is small enough for that.
"""

from . import complaints, filters, recurrent, running, simulation, solvers

PROGRAMS = [
    *simulation.PROGRAMS,
    *recurrent.PROGRAMS,
    *filters.PROGRAMS,
    *solvers.PROGRAMS,
    *running.PROGRAMS,
    *complaints.PROGRAMS,
]
