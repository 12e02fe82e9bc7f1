"""The cheapest set of edges that separates two nodes of a graph, by the flow that fills them.

Dinic's method: flows along shortest paths, as many at once as there are, until no path is left (Dinitz, 1970).
"""

from __future__ import annotations

INFINITE = 1 << 62  # an edge that is never cut


class Graph:
    """Nodes are 0, 1, ... in the order in which they are made; 0 is the source, 1 the sink."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]  # of each node; an edge and the one back are 2 k and 2 k + 1
        self._to: list[int] = []
        self._left: list[int] = []  # what may still flow

    def node(self) -> int:
        """A new one."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, a: int, b: int, capacity: int) -> None:
        """From a to b."""
        for start, end, room in ((a, b, capacity), (b, a, 0)):
            self._edges[start].append(len(self._to))
            self._to.append(end)
            self._left.append(room)

    def reached(self) -> set[int]:
        """The fewest nodes on the side of the source of a cheapest cut.

        OverflowError if only an infinite edge separates source and sink."""
        while (levels := self._levels())[1] >= 0:
            following = [0] * len(levels)
            while flow := self._push(levels, following):
                if flow >= INFINITE:
                    raise OverflowError("no finite cut separates source and sink")
        return {node for node, level in enumerate(levels) if level >= 0}

    def _levels(self) -> list[int]:
        """How many edges with room each node is from the source; -1 where none lead to it."""
        found = [-1] * len(self._edges)
        found[0] = 0
        queue = [0]
        for node in queue:
            for edge in self._edges[node]:
                to = self._to[edge]
                if found[to] < 0 and self._left[edge] > 0:
                    found[to] = found[node] + 1
                    queue.append(to)
        return found

    def _push(self, levels: list[int], following: list[int]) -> int:
        """Send as much as fits along one shortest path; `following` has the edge that each node tries next."""
        path: list[int] = []
        node = 0
        while node != 1:
            edges = self._edges[node]
            while following[node] < len(edges):
                edge = edges[following[node]]
                to = self._to[edge]
                if self._left[edge] > 0 and levels[to] == levels[node] + 1:
                    path.append(edge)
                    node = to
                    break
                following[node] += 1
            else:
                if not path:
                    return 0
                node = self._to[path.pop() ^ 1]
                following[node] += 1
        flow = min(self._left[edge] for edge in path)
        for edge in path:
            self._left[edge] -= flow
            self._left[edge ^ 1] += flow
        return flow
