"""From a program and how its arguments are cut to a program for each device, with collectives where parts meet."""

from pullback.partition.factors import Cut
from pullback.partition.write import Partitioned, partition, result_cuts

__all__ = ["Cut", "Partitioned", "partition", "result_cuts"]
