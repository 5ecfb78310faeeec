"""Where the states, arrows and labels of a drawn automaton go.

States stand in columns by their distance from the start, so that reading goes from left to right. Everything is
measured in units of the drawing, letters included, so a figure looks the same at any size. What goes where is chosen
greedily:

1. Columns: the largest distance from the start where there are no cycles, and the smallest one, breadth-first, within
   each strongly connected component. So an arrow leads to the left or stays in its column only if it is on a cycle.
   Within a column, states are ordered by the mean height of their neighbours on the left (the barycentre heuristic of
   K. Sugiyama, S. Tagawa and M. Toda, 1981). A gap between columns is as wide as the widest label that must fit in.
2. Each arrow is a cubic Bézier curve. Of several bends, from straight to far, it takes the cheapest: touching a state
   costs most, then crossing or lying on an arrow drawn before, then the bend itself. Arrows bend to their left, so
   those that lead back run below. Loops stand on top of their state.
3. Each label stands beside its arrow where it hides least: states and other labels first, then arrows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

Point = npt.NDArray[np.float64]

# Lengths in units of the drawing.
RADIUS, LETTERS = 0.30, 0.21
_GAP, _ROW = 0.85, 1.5
_LABEL_LINES, _LABEL_WIDTH = 4, 20  # characters

#: Where curves are looked at.
_SAMPLES = np.linspace(0, 1, 25)


@dataclass
class Arrow:
    """All edges from one state to another, drawn as one curve with one label of `lines`."""

    source: Any
    target: Any
    lines: list[str]
    size: tuple[float, float] = (0.0, 0.0)  # of the label
    curve: Point = field(default_factory=lambda: np.zeros((4, 2)))  # control points, from rim to rim
    label: Point = field(default_factory=lambda: np.zeros(2))  # centre of the label

    @property
    def points(self) -> Point:
        """Points along the curve: shape (25, 2)."""
        return _bezier(self.curve, _SAMPLES)


@dataclass(frozen=True)
class Layout:
    """A finished layout. `places`: the centre of each state; `entries`: the curves into starting states."""

    places: dict[Any, Point]
    arrows: list[Arrow]
    entries: list[Point]
    corners: tuple[Point, Point]  # lower left and upper right, margin included


def lay_out(graph: Any) -> Layout:
    """The layout of a graph made by `tokdfa.automata.graph`. About O(arrows squared)."""
    arrows = _arrows(graph)
    places = _place_states(graph, arrows)
    entries = [_entry(places[node]) for node, data in graph.nodes(data=True) if data["start"]]
    drawn = [_bezier(curve, _SAMPLES) for curve in entries]
    for arrow in sorted(arrows, key=lambda arrow: _urgency(arrow, places)):
        arrow.curve = _route(arrow, places, np.array(drawn).reshape(-1, len(_SAMPLES), 2))
        drawn.append(arrow.points)
    _place_labels(arrows, places, entries)
    return Layout(places, arrows, entries, _corners(places, arrows, entries))


def _arrows(graph: Any) -> list[Arrow]:
    """One arrow for each pair of neighbours, its labels joined and cut to a few short lines."""
    labels: dict[tuple[Any, Any], list[str]] = {}
    for source, target, data in graph.edges(data=True):
        labels.setdefault((source, target), []).append(_with_glyphs(data["label"]))
    arrows = []
    for (source, target), texts in labels.items():
        lines = [""]
        for index, text in enumerate(texts):
            joined = f"{lines[-1]}, {text}" if lines[-1] else text
            if len(joined) <= _LABEL_WIDTH or not lines[-1]:
                lines[-1] = joined
            elif len(lines) < _LABEL_LINES:
                lines[-1] += ","
                lines.append(text)
            else:
                lines.append(f"… {len(texts) - index} more")
                break
        lines = [line if len(line) <= 2 * _LABEL_WIDTH else line[: 2 * _LABEL_WIDTH - 1] + "…" for line in lines]
        arrows.append(Arrow(source, target, lines, _text_size(lines)))
    return arrows


# ------------------------------------------------------------------------------------------------------------- places


def _columns(graph: Any) -> list[list[Any]]:
    """The states by distance from the start, each column in barycentre order."""
    column_of = _column_numbers(graph)
    columns: list[list[Any]] = []
    heights: dict[Any, float] = {}
    for column in range(max(column_of.values(), default=-1) + 1):
        members = [node for node in graph if column_of[node] == column]
        means = {}
        for node in members:
            left = [heights[other] for other in graph.predecessors(node) if column_of[other] < column]
            means[node] = sum(left) / len(left) if left else 0.0
        members.sort(key=lambda node: -means[node])
        heights.update({node: (len(members) - 1) / 2 - row for row, node in enumerate(members)})
        columns.append(members)
    return columns


def _column_numbers(graph: Any) -> dict[Any, int]:
    """State -> column. The components are taken in topological order, so that what leads into one is placed already."""
    import networkx

    column_of: dict[Any, int] = {}
    condensed = networkx.condensation(graph)
    for component in networkx.lexicographical_topological_sort(condensed):
        members = condensed.nodes[component]["members"]
        before = {node: [other for other in graph.predecessors(node) if other not in members] for node in members}
        entries = [node for node in sorted(members) if before[node] or graph.nodes[node]["start"]]
        depth = dict.fromkeys(entries or sorted(members)[:1], 0)
        queue = deque(depth)
        while queue:
            node = queue.popleft()
            for target in graph.successors(node):
                if target in members and target not in depth:
                    depth[target] = depth[node] + 1
                    queue.append(target)
        base = max((column_of[other] + 1 for node in entries for other in before[node]), default=0)
        column_of.update({node: base + depth[node] for node in members})
    return column_of


def _place_states(graph: Any, arrows: list[Arrow]) -> dict[Any, Point]:
    """The centre of each state."""
    columns = _columns(graph)
    column_of = {node: index for index, members in enumerate(columns) for node in members}
    loops = {arrow.source: arrow.size for arrow in arrows if arrow.source == arrow.target}
    gaps = [_GAP] * len(columns)  # between the rims of a column and the next
    for arrow in arrows:
        left, right = sorted((column_of[arrow.source], column_of[arrow.target]))
        if right == left + 1:
            crowd = 0.3 if len(columns[left]) + len(columns[right]) > 2 else 0.0
            gaps[left] = max(gaps[left], arrow.size[0] + 0.4 + crowd)
        elif right == left and arrow.source != arrow.target:
            gaps[left] = max(gaps[left], arrow.size[0] + 0.7)
    widths = [max([loops[node][0] for node in members if node in loops], default=0.0) for members in columns]
    places: dict[Any, Point] = {}
    x = 0.0
    for index, members in enumerate(columns):
        heights = np.zeros(len(members))
        for position, node in enumerate(members[1:], start=1):
            above = loops[node][1] + 0.5 if node in loops else 0.0  # room for the loop of the lower one of two
            heights[position] = heights[position - 1] - _ROW - above
        heights -= (heights[0] + heights[-1]) / 2
        places.update({node: np.array([x, height]) for node, height in zip(members, heights, strict=True)})
        following = widths[index + 1] if index + 1 < len(columns) else 0.0
        x += max(2 * RADIUS + gaps[index], (widths[index] + following) / 2 + 0.2)
    return places


# ------------------------------------------------------------------------------------------------------------- arrows


def _urgency(arrow: Arrow, places: dict[Any, Point]) -> tuple[int, float]:
    """Short arrows to the right first, then loops, then long ones, those that lead back last."""
    across = float(places[arrow.target][0] - places[arrow.source][0])
    if arrow.source == arrow.target:
        return (1, 0.0)
    return (0, across) if across > 0 else (2, -across)


def _route(arrow: Arrow, places: dict[Any, Point], drawn: Point) -> Point:
    """The cheapest of a fan of curves: control points, shape (4, 2). `drawn`: the points of other curves (n, 25, 2)."""
    least_corner, greatest_corner = drawn.min(axis=1), drawn.max(axis=1)
    obstacles = [place for node, place in places.items() if node not in (arrow.source, arrow.target)]
    best, least = np.zeros((4, 2)), np.inf
    for cost, curve in _fan(places[arrow.source], places[arrow.target]):
        if cost >= least:
            break
        points = _bezier(curve, _SAMPLES)
        if obstacles:
            room = float(_distances(points, np.array(obstacles)).min())
            cost += 20.0 * max(0.0, 1.0 - room / (RADIUS + 0.16)) + 10.0 * (room < RADIUS + 0.05)
        low, high = points.min(axis=0) - 0.25, points.max(axis=0) + 0.25
        others = drawn[((greatest_corner > low) & (least_corner < high)).all(axis=1)]
        if len(others):
            near = _distances(points[3:-2], others.reshape(-1, 2)).min(axis=1) < 0.23
            cost += 0.25 * float(near.sum()) + 1.5 * _crossings(points[::2], others[:, ::2])
        if cost < least:
            best, least = curve, cost
    return best


def _fan(start: Point, end: Point) -> Iterator[tuple[float, Point]]:
    """Curves from one place to another with what their shape costs, cheapest first."""
    if start is end:
        yield 0.0, _loop(start, 1)
        yield 1.0, _loop(start, -1)
        return
    across = end - start
    normal = np.array([-across[1], across[0]]) / np.hypot(*across)  # to the left: upwards if the arrow goes right
    leads_back = across[0] < 0
    bends = [(0.5 if leads_back else 0.0, 0.0)]
    for step in range(1, 13):
        bends += [(0.2 * step, 0.35 * step), (0.2 * step + 0.7, -0.35 * step)]
    for cost, bend in sorted(bends):
        lift = bend * normal
        curve = np.array([start, start + 0.25 * across + lift, end - 0.25 * across + lift, end])
        yield cost, _from_rim_to_rim(curve)


def _distances(points: Point, others: Point) -> Point:
    """Between each point and each of the others: shape (len(points), len(others))."""
    return np.hypot(points[:, None, 0] - others[None, :, 0], points[:, None, 1] - others[None, :, 1])


def _crossings(line: Point, others: Point) -> int:
    """How many segments of other lines (n, points, 2) a line (points, 2) crosses."""
    start, step = line[:-1, None], np.diff(line, axis=0)[:, None]
    other_start, other_step = others[:, :-1].reshape(1, -1, 2), np.diff(others, axis=1).reshape(1, -1, 2)

    def cross(a: Point, b: Point) -> Point:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]

    between = other_start - start
    area = cross(step, other_step)
    area = np.where(area == 0, np.inf, area)  # parallel segments do not cross
    t, u = cross(between, other_step) / area, cross(between, step) / area
    return int(((t > 0) & (t < 1) & (u > 0) & (u < 1)).sum())


def _entry(centre: Point) -> Point:
    """The arrow that leads into a starting state from nowhere."""
    return np.linspace(centre - (RADIUS + 0.52, 0.0), centre - (RADIUS + 0.02, 0.0), 4)


def _loop(centre: Point, side: int) -> Point:
    """A loop on top of a state (side 1) or below it (-1)."""
    foot, top = np.array([0.15, 0.26]), np.array([0.42, 0.95])
    flip = np.array([1.0, side])
    left, right = np.array([-1.0, 1.0]), np.array([1.0, 1.0])
    return np.array(
        [centre + flip * side_ * part for side_, part in ((left, foot), (left, top), (right, top), (right, foot))]
    )


def _bezier(curve: Point, t: Point) -> Point:
    """Points of a cubic Bézier curve: shape (len(t), 2)."""
    s = 1 - t
    weights = np.stack([s**3, 3 * s**2 * t, 3 * s * t**2, t**3], axis=1)
    return weights @ curve


def _from_rim_to_rim(curve: Point) -> Point:
    """The part of a curve between two states' centres that lies outside their rims."""
    t = np.linspace(0, 1, 401)
    points = _bezier(curve, t)
    outside = (np.hypot(*(points - curve[0]).T) >= RADIUS) & (np.hypot(*(points - curve[3]).T) >= RADIUS + 0.02)
    inner = t[outside]
    return _part_of(curve, float(inner[0]), float(inner[-1]))


def _part_of(curve: Point, t0: float, t1: float) -> Point:
    """The control points of a curve between two of its parameters (its blossom at t0 and t1)."""

    def blossom(a: float, b: float, c: float) -> Point:
        points = curve
        for t in (a, b, c):
            points = (1 - t) * points[:-1] + t * points[1:]
        return points[0]

    return np.array([blossom(t0, t0, t0), blossom(t0, t0, t1), blossom(t0, t1, t1), blossom(t1, t1, t1)])


# ------------------------------------------------------------------------------------------------------------- labels


def _place_labels(arrows: list[Arrow], places: dict[Any, Point], entries: list[Point]) -> None:
    """Choose the centre of each arrow's label; large labels choose first."""
    states = np.array(list(places.values())).reshape(-1, 2)
    lines = np.array([arrow.points for arrow in arrows] + [_bezier(curve, _SAMPLES) for curve in entries])
    taken, taken_halves = np.zeros((len(arrows), 2)), np.zeros((len(arrows), 2))
    order = sorted(range(len(arrows)), key=lambda index: -arrows[index].size[0] * arrows[index].size[1])
    for count, index in enumerate(order):
        half, least = np.array(arrows[index].size) / 2, np.inf
        for cost, centre in _beside(arrows[index].curve, half):
            outside = np.maximum(np.abs(states - centre) - half, 0.0)
            cost += 30.0 * float((np.hypot(*outside.T) < RADIUS + 0.02).sum())
            apart = np.abs(taken[:count] - centre) - half - taken_halves[:count] - 0.08
            cost += 30.0 * float((apart < 0).all(axis=1).sum())
            from_lines = np.hypot(*np.maximum(np.abs(lines - centre) - half, 0.0).transpose(2, 0, 1))
            cost += 2.0 * float((from_lines < 0.03).sum())
            own = from_lines[index].min()
            from_lines[index] = np.inf
            cost += 3.0 * max(0.0, 1.0 - float(from_lines.min() - own) / 0.12)  # so that it is clear whose label it is
            if cost < least:
                arrows[index].label, least = centre, cost
        taken[count], taken_halves[count] = arrows[index].label, half


def _beside(curve: Point, half: Point) -> Iterator[tuple[float, Point]]:
    """Where the label of a curve may stand, with what it costs: near the middle, close, and above are best."""
    for away in (0.0, 0.3, 0.8):
        for t in (0.5, 0.42, 0.58, 0.33, 0.67, 0.22, 0.78):
            here, ahead = _bezier(curve, np.array([t - 0.01, t + 0.01]))
            along = (ahead - here) / max(float(np.hypot(*(ahead - here))), 1e-9)
            for side in (1.0, -1.0):
                normal = side * np.array([-along[1], along[0]])
                distance = float(np.abs(normal) @ half) + 0.07 + away
                cost = 7.0 * (t - 0.5) ** 2 + 6.0 * away + 0.2 * float(normal[1] < 0)
                yield cost, (here + ahead) / 2 + normal * distance


def _text_size(lines: list[str]) -> tuple[float, float]:
    """Width and height of a label."""
    from matplotlib.textpath import TextPath

    width = max(
        TextPath((0, 0), line.replace("$", r"\$"), size=LETTERS, prop=font()).get_extents().width for line in lines
    )
    return float(width) + 0.04, 1.2 * LETTERS * len(lines)


def font() -> Any:
    """The font of labels."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(family="DejaVu Sans Mono")


def _with_glyphs(text: str) -> str:
    """`text` with an escape for each character that the font cannot draw."""
    from matplotlib.font_manager import findfont, get_font

    glyphs = get_font(findfont(font()))
    return "".join(
        character if glyphs.get_char_index(ord(character)) else character.encode("unicode_escape").decode()
        for character in text
    )


def _corners(places: dict[Any, Point], arrows: list[Arrow], entries: list[Point]) -> tuple[Point, Point]:
    """The lower left and upper right corners of everything, with a margin."""
    points = [np.zeros((1, 2)), *entries]
    points += (place + side * RADIUS for place in places.values() for side in (-np.ones((1, 2)), np.ones((1, 2))))
    for arrow in arrows:
        half = np.array(arrow.size) / 2
        points += [arrow.points, arrow.label[None] - half, arrow.label[None] + half]
    everything = np.concatenate(points)
    return everything.min(axis=0) - 0.12, everything.max(axis=0) + 0.12
