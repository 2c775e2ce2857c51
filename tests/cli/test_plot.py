"""--plot: pictures show what `zlog info` and `zlog bench` found, and files that they can be."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import matplotlib.image
import pytest

import zlog
from zlog.cli.look import DARK, LIGHT
from zlog.cli.plot import width_of

from ..client.planted import remove
from ..support.logs import leave_hole
from .conftest import Cli, Inside

SVG = "{http://www.w3.org/2000/svg}"
COUNTS = ("written", "filled", "trimmed", "unwritten", "lost", "unreadable", "unknown")


class Word(NamedTuple):
    """A text of a picture, and where it begins, in points."""

    text: str
    x: float
    y: float
    size: float


class Picture:
    """An SVG, read."""

    def __init__(self, path: Path) -> None:
        self.root = ElementTree.parse(path).getroot()
        self.width, self.height = map(float, self.root.get("viewBox", "").split()[2:])
        self.words = [
            Word(
                "".join(each.itertext()),
                float(each.get("x", 0)),
                float(each.get("y", 0)),
                float(re.findall(r"font-size: ([\d.]+)px", each.get("style", ""))[0]),
            )
            for each in self.root.iter(f"{SVG}text")
        ]
        self.texts = [word.text for word in self.words]

    def part(self, name: str) -> tuple[str, list[list[tuple[float, float]]]]:
        """Return the colour of a part, and the corners of its areas."""
        (group,) = (each for each in self.root.iter(f"{SVG}g") if each.get("id") == name)
        (path,) = group.iter(f"{SVG}path")
        areas = (re.findall(r"([\d.]+) ([\d.]+)", each) for each in path.get("d", "").split("M"))
        (colour,) = re.findall(r"fill: (#\w+)", path.get("style", ""))
        return colour, [[(float(x), float(y)) for x, y in corners] for corners in areas if corners]

    def box(self, name: str) -> tuple[float, float, float, float]:
        """Return where a part begins and ends: left, right, top, bottom."""
        xs, ys = zip(*(corner for corners in self.part(name)[1] for corner in corners), strict=True)
        return min(xs), max(xs), min(ys), max(ys)

    def area(self, name: str) -> float:
        return sum(
            abs(sum(x * v - u * y for (x, y), (u, v) in pairwise([*corners, corners[0]]))) / 2
            for corners in self.part(name)[1]
        )

    def parts(self) -> set[str]:
        return {each.get("id") or "" for each in self.root.iter(f"{SVG}g")} & {*COUNTS}


def draw(command: Inside, folder: Path, log: str, *words: str) -> Picture:
    path = folder / f"{log}.svg"
    command.ok("info", log, "--plot", str(path), *words)
    return Picture(path)


def in_many_states(log: zlog.Log) -> None:
    """300 positions in three stripes, of most states there are, and three cursors."""
    log.append_many([b"entry"] * 100)
    for position in range(leave_hole(log, 20), 110):
        log.fill(position)
    log.reconfigure(width=3)
    log.append_many([b"entry"] * 80)
    log.reconfigure(width=4, unit=16)
    log.append_many([b"entry"] * 100)
    remove(log, log.view.object_of(299))
    log.trim(150)
    log.trim_to(25)
    for name, position in (("billing", 120), ("mail", 300), ("search", 300)):
        log.cursor(name, create=position)


def counts_of(log: zlog.Log) -> dict[str, int]:
    cells = log.position_map(cells=300).cells
    sums = {name: sum(getattr(cell, name) for cell in cells) for name in COUNTS}
    return {name: count for name, count in sums.items() if count}


def test_the_strip_shows_what_positions_hold(
    inside: Inside, orders: zlog.Log, tmp_path: Path
) -> None:
    in_many_states(orders)
    picture = draw(inside, tmp_path, "orders")
    counts = counts_of(orders)
    assert {*counts} == {"written", "filled", "trimmed", "unwritten", "unknown"}
    assert picture.parts() == {*counts}
    whole = sum(picture.area(name) for name in counts)
    for name, count in counts.items():
        assert picture.area(name) / whole == pytest.approx(count / 300, rel=1e-4)
        assert picture.part(name)[0] == LIGHT.states[name]
        assert f"{name} {count}" in picture.texts
    left, right = 18, 18 + 7.6 * 72
    assert picture.box("filled")[:2] == pytest.approx(
        [left + (right - left) * position / 300 for position in (100, 110)]
    )


def test_what_else_is_told_of_a_log(inside: Inside, orders: zlog.Log, tmp_path: Path) -> None:
    in_many_states(orders)
    picture = draw(inside, tmp_path, "orders")
    stat = orders.stat()
    numbers = f"tail 300, trim point 25, entries {stat.entries}, bytes {stat.bytes:,} ("
    assert picture.texts[-4:-2] == ["orders", inside.url]
    assert picture.texts[-2].startswith(numbers)
    assert picture.texts[-1] == "every position was looked at"
    for stripe in orders.stripes():
        assert f"epoch {stripe.id}, width {stripe.width}" in picture.texts
    assert {"trim point", "tail", "billing", "mail", "search", "3 cursors"} <= {*picture.texts}


def test_what_is_rare_is_seen(inside: Inside, orders: zlog.Log, tmp_path: Path) -> None:
    orders.append_many([b"entry"] * 30_000)
    orders.fill(leave_hole(orders))
    orders.append_many([b"entry"] * 30_000)
    picture = draw(inside, tmp_path, "orders")
    _, _, top, bottom = picture.box("filled")
    assert top == picture.box("written")[2]
    assert bottom - top == pytest.approx(0.03 * 1.6 * 72)


def test_samples_are_called_so(inside: Inside, orders: zlog.Log, tmp_path: Path) -> None:
    orders.append_many([b"entry"] * 60_000)
    orders.append_many([b"entry"] * 60_000)
    orders.trim_to(30_000)
    picture = draw(inside, tmp_path, "orders")
    assert "samples of 256 positions for each column" in picture.texts
    assert {"written ≈ 75 %", "trimmed ≈ 25 %"} <= {*picture.texts}


@pytest.mark.parametrize("entries", [0, 1])
def test_next_to_nothing(inside: Inside, orders: zlog.Log, tmp_path: Path, entries: int) -> None:
    orders.append_many([b"entry"] * entries)
    picture = draw(inside, tmp_path, "orders")
    assert ("no positions yet" in picture.texts) == (not entries)
    assert ("written 1" in picture.texts) == bool(entries)
    assert picture.parts() == ({"written"} if entries else set())


def test_labels_do_not_lie_upon_each_other(
    inside: Inside, orders: zlog.Log, tmp_path: Path
) -> None:
    orders.append_many([b"entry"] * 5000)
    for number in range(1000):
        orders.cursor(f"cursor-{number}", create=5 * number)
    orders.cursor("long" * 32, create=2500)
    for number in range(40):
        orders.reconfigure(width=1 + number % 7)
        orders.append_many([b"entry"] * 50)
    picture = draw(inside, tmp_path, "orders")
    labels = [word for word in picture.words if re.match(r"cursor-|epoch |tail$|long", word.text)]
    named = [word for word in labels if not word.text.startswith("epoch")]
    assert 40 < len(named) < 1000
    assert f"{1002 - len(named):,} of 1,002 marks have no label here" in picture.texts[-1]
    assert f"{41 - (len(labels) - len(named))} of 41 stripes have no label" in picture.texts[-1]
    rows: dict[float, list[Word]] = {}
    for word in labels:
        rows.setdefault(round(word.y, 1), []).append(word)
    assert len(rows) == 8 + 3
    for row in rows.values():
        row.sort(key=lambda word: word.x)
        for one, other in pairwise(row):
            assert one.x + 72 * width_of(one.text, one.size) < other.x
    assert_inside(picture, labels)


def assert_inside(picture: Picture, words: Sequence[Word]) -> None:
    for word in words:
        assert 0 < word.y < picture.height
        assert word.x + 72 * width_of(word.text, word.size) < picture.width


def test_long_names_are_shortened(url: str, inside: Inside, tmp_path: Path) -> None:
    name = "W" * 64 + "m" * 64
    with zlog.connect(url) as store, zlog.Log.create(store, name) as log:
        log.append(b"entry")
        log.cursor("c" * 127 + "d", create=0)
    path = tmp_path / "picture.svg"
    inside.ok("info", name, "--plot", str(path))
    picture = Picture(path)
    (title,) = (word for word in picture.words if word.text.startswith("WWWW"))
    assert re.fullmatch("W+…m+", title.text)
    assert title.x + 72 * width_of(title.text, title.size, "bold") < picture.width
    assert [word for word in picture.texts if re.fullmatch("c+…c+d", word)]


def test_equal_logs_make_equal_files(inside: Inside, orders: zlog.Log, tmp_path: Path) -> None:
    in_many_states(orders)
    for suffix in (".svg", ".png", ".pdf"):
        one, other = (tmp_path / f"{number}{suffix}" for number in (1, 2))
        for path in (one, other):
            inside.ok("info", "orders", "--plot", str(path))
        assert one.read_bytes() == other.read_bytes()


def test_other_kinds_of_pictures(inside: Inside, ten: zlog.Log, tmp_path: Path) -> None:
    assert ten.tail() == 10
    png, pdf = tmp_path / "ten.PNG", tmp_path / "ten.pdf"
    for path in (png, pdf):
        inside.ok("info", "orders", "--plot", str(path), "--look", "dark")
    pixels = matplotlib.image.imread(png, "png")
    colours = {
        "#" + "".join(f"{round(255 * part):02x}" for part in pixels[row, column][:3])
        for row, column in ((1, 1), (len(pixels) // 2, 200))
    }
    assert colours == {DARK.background, DARK.states["written"]}
    assert pdf.read_bytes().startswith(b"%PDF-")
    assert pdf.read_bytes().rstrip().endswith(b"%%EOF")


def test_the_table_and_json_are_printed_too(inside: Inside, ten: zlog.Log, tmp_path: Path) -> None:
    words = ("info", "orders", "--plot", str(tmp_path / "a.svg"))
    assert inside.ok(*words) == inside.ok("info", "orders")
    assert json.loads(inside.ok(*words, "--json"))["tail"] == ten.tail()


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ("picture", "ends in .svg, .png or .pdf"),
        ("picture.jpeg", "ends in .svg, .png or .pdf"),
        ("nowhere/picture.svg", "No such file or directory"),
        ("folder.svg", "Is a directory"),
    ],
)
@pytest.mark.parametrize("verb", [("info", "orders"), ("bench", "append", "--seconds", "600")])
def test_a_file_that_is_none_is_refused_at_once(
    cli: Cli, tmp_path: Path, verb: Sequence[str], file: str, complaint: str
) -> None:
    (tmp_path / "folder.svg").mkdir()
    before = sorted(tmp_path.rglob("*"))
    result = cli(*verb, "--plot", str(tmp_path / file))
    assert (result.code, result.out) == (2, b"")
    assert complaint in " ".join(result.err.split())
    assert sorted(tmp_path.rglob("*")) == before


def test_a_failure_leaves_no_file_and_none_undone(inside: Inside, tmp_path: Path) -> None:
    new, old = tmp_path / "new.svg", tmp_path / "old.svg"
    old.write_text("kept")
    for path in (new, old):
        assert inside("info", "invoices", "--plot", str(path)).code == 3
    assert not new.exists()
    assert old.read_text() == "kept"


RUN = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(), None))
from zlog.cli.main import command
try:
    command.main(prog_name="zlog")
finally:
    print("matplotlib" in sys.modules, file=sys.stderr)
"""


def test_without_matplotlib(cli: Cli, tmp_path: Path) -> None:
    words = ["info", "orders", "--plot", str(tmp_path / "a.svg")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, "matplotlib", *words],
        capture_output=True,
        text=True,
        env=cli.environment,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "zlog: pictures need the package matplotlib" in done.stderr
    assert "hint: pip install 'matplotlib>=3.7'." in done.stderr


def test_matplotlib_is_imported_for_pictures_only(cli: Cli, tmp_path: Path) -> None:
    plot = ("--plot", str(tmp_path / "a.svg"))
    for words, imported in (((), "False\n"), (plot, "True\n")):
        done = subprocess.run(
            [sys.executable, "-c", RUN, "", "info", "orders", *words],
            capture_output=True,
            text=True,
            env=cli.environment,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, imported)


@pytest.mark.filterwarnings("ignore:Glyph")  # where this measures; the command says nothing
@pytest.mark.parametrize(
    ("words", "compare"),
    [
        (["append", "--batch", "16"], "rate"),
        (["read", "--entries", "1024"], "rate"),
        (["tail"], "latency"),
        (["sequencer", "--connections", "1", "--depth", "2"], "rate"),
    ],
)
def test_a_benchmark_is_drawn_as_it_is_told(tmp_path: Path, words: list[str], compare: str) -> None:
    cli = Cli(f"file://{tmp_path}/$no$formula-日本")
    path = tmp_path / "bench.svg"
    command = ["bench", *words, "--seconds", "0.2", "--json", "--plot", str(path)]
    report = json.loads(cli.ok(*command))
    picture = Picture(path)
    measured = [report["result"], *report["limits"]]
    lengths = []
    for row, each in enumerate(measured):
        ratio = f"{each['ratio']:.2f}" if row and each["ratio"] else None
        rate = f"{each['entries_per_second']:,.0f}"
        assert (f"{rate}, ratio {ratio}" if ratio and compare == "rate" else rate) in picture.texts
        times = " / ".join(f"{each['latency_ms'][name]:.3f}" for name in ("p50", "p99", "p99.9"))
        (text,) = {text for text in picture.texts if text.startswith(times)}
        assert text.endswith(" x as long") == bool(ratio and compare == "latency")
        assert picture.part(f"rate-{row}")[0] == (LIGHT.series[0] if row else LIGHT.accent)
        left, right, _, _ = picture.box(f"rate-{row}")
        lengths.append(right - left)
        assert each["name"] in picture.texts
    rates = [each["entries_per_second"] for each in measured]
    longest = max(lengths)
    assert [length / longest for length in lengths] == pytest.approx(
        [rate / max(rates) for rate in rates], abs=1e-4
    )
    told = " ".join(picture.texts)
    assert f"bench {words[0]} {report['title']} " in told
    assert f", zlog {zlog.__version__}: zlog {shlex.join(command)} " in told
    assert all(f"{each['name']}: {each['how']}" in told for each in measured)
    assert_inside(picture, picture.words)
