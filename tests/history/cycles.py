"""What has to come before what, and the cycles in that."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from typing import NamedTuple

STARTS_MAX = 16
"""Nodes of a component from which the shortest cycle is looked for."""


class Edge(NamedTuple):
    """One node comes before another one.

    Attributes:
        target: that which comes later.
        kind: why.
        key: on which key; empty: on none.
    """

    target: int
    kind: str
    key: str = ""


Graph = list[list[Edge]]
"""For each node what comes later."""


def components(graph: Graph, nodes: Collection[int], kinds: Collection[str]) -> list[list[int]]:
    """Return the strongly connected components that have more than one node.

    Those of the graph that has some of the nodes, and some kinds of edges. This is the algorithm of
    Tarjan (1972) without recursion: linear in nodes and edges.
    """
    inside = set(nodes)
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    stacked: set[int] = set()
    found: list[list[int]] = []

    def enter(node: int) -> tuple[int, Iterator[Edge]]:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        stacked.add(node)
        return node, iter(graph[node])

    for root in nodes:
        if root in order:
            continue
        path = [enter(root)]
        while path:
            node, edges = path[-1]
            for target, kind, _ in edges:
                if kind not in kinds or target not in inside:
                    continue
                if target not in order:
                    path.append(enter(target))
                    break
                if target in stacked:
                    lowest[node] = min(lowest[node], order[target])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == order[node]:
                    members: list[int] = []
                    while not members or members[-1] != node:
                        members.append(stack.pop())
                    stacked.difference_update(members)
                    if len(members) > 1:
                        found.append(members)
    return found


def shortest_cycle(
    graph: Graph, component: Collection[int], kinds: Collection[str], costs: dict[str, int]
) -> list[tuple[int, Edge]]:
    """Return a cycle of a component: its nodes, each with the edge to the next one.

    It is the cheapest through any of the first nodes, by the costs of kinds of edges.
    """
    inside = set(component)
    starts = sorted(component)[:STARTS_MAX]
    return min(_cycle(graph, start, inside, kinds, costs) for start in starts)[1]


def _cycle(
    graph: Graph, start: int, inside: set[int], kinds: Collection[str], costs: dict[str, int]
) -> tuple[int, list[tuple[int, Edge]]]:
    """Return the cheapest cycle through a node, after its cost (Dijkstra)."""
    came: dict[int, tuple[int, Edge]] = {}
    queue: list[tuple[int, int, int, Edge | None]] = [(0, start, -1, None)]
    while True:
        cost, node, before, last = heapq.heappop(queue)
        if last is not None:
            if node in came:
                continue
            came[node] = before, last
            if node == start:
                break
        for edge in graph[node]:
            if edge.kind in kinds and edge.target in inside and edge.target not in came:
                heapq.heappush(queue, (cost + costs[edge.kind], edge.target, node, edge))
    cycle = []
    while True:
        node, edge = came[node]
        cycle.append((node, edge))
        if node == start:
            return cost, cycle[::-1]
