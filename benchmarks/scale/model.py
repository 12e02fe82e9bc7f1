"""What more hosts would buy: a model of the examples' time from what is measured here, checked on 1, 2 and 4 processes.

    time of p processes = what all do + what is shared out / p + its collective operations

The first two follow from two measured sizes of one process. An operation is messages, each of which costs a process
`post`, arrives `latency` later, and moves at `rate`; sums add up at `adding`. The algorithms are those of
ext/collectives: everybody sends to everybody, many processes in rounds; small operands whole, of larger ones a part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

WHOLE = 1 << 15  # bytes; of all that a process adds up, below which operands are sent whole (ext/collectives)
MANY, MEET = 16, 8  # processes, from which on they meet in rounds, and of how many at most
HOSTS = (2, 4, 16, 64, 256, 1024)


class Network(NamedTuple):
    """Seconds that a message is on its way, seconds to post one, bytes a second that each process sends and receives,
    and bytes of sums a second."""

    latency: float
    post: float
    rate: float
    adding: float


class Operation(NamedTuple):
    """A collective operation of a run: on bytes for each process, so many times."""

    kind: str  # "sum" or "permute"
    nbytes: float
    times: float


def rounds(p: int) -> tuple[list[int], int]:
    """How many processes meet in each round, and how many stand outside and leave their part to another."""
    if p < MANY:
        return [p], 0
    inner = p
    while True:
        rest, sizes = inner, []
        for size in range(MEET, 1, -1):
            while rest % size == 0:
                rest //= size
                sizes.append(size)
        if rest == 1:
            return sizes, p - inner
        inner -= 1


def seconds(operation: Operation, p: int, net: Network) -> float:
    """The time of an operation between p processes."""
    n = operation.nbytes
    if p == 1:
        return 0.0

    def sent(messages: int, nbytes: float) -> float:
        return net.latency + messages * (net.post + nbytes / net.rate)

    if operation.kind == "permute":
        return operation.times * sent(1, n)
    sizes, outside = rounds(p)
    one = 2 * sent(1, n) + n / net.adding if outside else 0.0
    whole = n * (1 + sum(size - 1 for size in sizes)) <= WHOLE
    for size in sizes:
        n = n if whole else n / size
        one += (1 if whole else 2) * sent(size - 1, n) + (size - 1) * n / net.adding
    return operation.times * one


def mlp(p: int, samples: float) -> list[Operation]:
    """Four steps of gradient descent, 512 hidden units of 8 inputs; grids as examples/distributed/mlp.py has them."""
    rows, columns = {1: (1, 1), 2: (1, 2), 4: (2, 2)}.get(p, (p, 1))
    found = [Operation("sum", samples / rows * 4, 4)] if columns > 1 else []
    hidden = 512 / columns
    return [*found, *([Operation("sum", hidden * 4 * n, 4) for n in (8, 1, 1)] if rows > 1 else [])]


def pln(p: int, repeat: float) -> list[Operation]:
    """Twenty iterations: the moment of 114 species, the slopes of 3 covariates, and the loss, in double precision."""
    return [Operation("sum", 8 * n, 20) for n in (114 * 114, 3 * 114, 1)]


def water(p: int, size: float) -> list[Operation]:
    """A hundred steps, two rows to neighbours in each, and the energy."""
    return [Operation("permute", 4 * size, 200), Operation("sum", 4, 1)]


def attention(p: int, length: float) -> list[Operation]:
    """Keys and values of four heads of 16 go around the ring."""
    return [Operation("permute", length / p * 4 * 16 * 4, 2 * (p - 1))]


# Name -> (its operations, the amount that has n times the work).
PROGRAMS: dict[str, tuple[Callable[[int, float], list[Operation]], Callable[[float, float], float]]] = {
    "pln": (pln, lambda amount, n: amount * n),
    "mlp": (mlp, lambda amount, n: amount * n),
    "water": (water, lambda amount, n: amount * n**0.5),
    "attention": (attention, lambda amount, n: amount * n**0.5),
}


class Program(NamedTuple):
    """An example: seconds that every process takes whatever the work is, those of one unit of work, and its amount."""

    name: str
    fixed: float
    shared: float
    amount: float

    def time(self, p: int, net: Network, work: float = 1.0, cores: int | None = None) -> float:
        """Seconds of p processes for so many units of work; on fewer cores than processes they take turns."""
        operations, amount = PROGRAMS[self.name]
        own = self.fixed + self.shared * work / p
        turns = 1.0 if cores is None else max(1.0, p / cores)
        return turns * (own + sum(seconds(o, p, net) for o in operations(p, amount(self.amount, work))))


def fitted(name: str, amount: float, once: float, twice: float) -> Program:
    """The example whose one process takes so long for one and for two units of work."""
    shared = min(once, twice - once)
    return Program(name, once - shared, shared, amount)


def measured(ours: dict[tuple[str, int], float]) -> Network:
    """This machine, from the times of collectives of 4 bytes and of 4 MB between two processes."""
    big = 1 << 22
    both = ours["permute", 4]
    rate = big / max(ours["permute", big] - both, 1e-9)
    adding = (big / 2) / max(ours["all_reduce", big] - 2 * both - big / rate, 1e-6)
    return Network(both / 2, both / 2, rate, adding)


def others(here: Network) -> dict[str, Network]:
    """Networks between hosts: latency and rate as their makers give them, what processors do as measured here."""
    return {
        "25 Gbit/s Ethernet": here._replace(latency=20e-6, rate=3.1e9),
        "200 Gbit/s InfiniBand": here._replace(latency=1.5e-6, rate=24e9),
    }


def check_rows(
    programs: list[Program], net: Network, seen: dict[tuple[str, int], float], cores: int
) -> list[list[str]]:
    """Predicted and measured time of each example on 1, 2 and 4 processes of this machine."""
    rows = []
    for program in programs:
        row = [program.name]
        for p in (1, 2, 4):
            said, found = program.time(p, net, cores=cores), seen[program.name, p]
            row.append(f"{said * 1e3:.1f} / {found * 1e3:.1f}")
        rows.append(row)
    return rows


def prediction_rows(programs: list[Program], here: Network) -> list[list[str]]:
    """Efficiency, weak / strong, on so many hosts with one process each."""
    rows = []
    for program in programs:
        for label, net in others(here).items():
            alone = program.time(1, net)
            cells = []
            for p in HOSTS:
                weak, strong = alone / program.time(p, net, work=p), alone / program.time(p, net) / p
                cells.append(f"{weak:.2f} / {strong:.2f}")
            rows.append([program.name, label, *cells])
    return rows


__all__ = ["HOSTS", "Network", "Operation", "Program", "check_rows", "fitted", "measured", "prediction_rows", "seconds"]
