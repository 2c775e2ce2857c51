"""The option ``--plot``: pictures of one look, that of the console, drawn by matplotlib."""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zlog import ZlogError
from zlog.admin import how_to_install
from zlog.cli.look import DARK, LIGHT, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

F = TypeVar("F", bound=Callable[..., Any])

_LOOKS = {"light": LIGHT, "dark": DARK}
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {},
}
"""Of each kind of picture: without the date, so that equal pictures are equal files."""

WIDTH = 10.0
"""Of a picture, in inches, as are all lengths here; a margin is on both sides."""
MARGIN = 0.25
_DPI = 200

TITLE_SIZE, TEXT_SIZE, NOTE_SIZE = 13.0, 9.0, 7.5
"""Of letters, in points."""
_TITLE, _LINE, _NOTE = 0.28, 0.19, 0.16
"""Heights of lines of these."""
_EM = 0.56
"""Width of a letter on average, as part of its size."""


def plot_options(verb: F) -> F:
    """Give a verb ``--plot``, which it gets as a :class:`Plot` or None, and ``--look`` of that."""
    look = click.option(
        "--look",
        type=click.Choice([*_LOOKS]),
        metavar="|".join(_LOOKS),
        default="light",
        show_default=True,
        is_eager=True,  # before the file
        expose_value=False,
        callback=_note_look,
        help="Colours of the picture.",
    )
    file = click.option(
        "--plot",
        type=click.Path(path_type=Path),
        metavar="FILE",
        callback=_plot_of,
        help="Draw a picture too: FILE ends in .svg, .png or .pdf.",
    )
    return file(look(verb))


def _note_look(ctx: click.Context, _param: click.Parameter, value: str) -> None:
    ctx.meta[__name__] = value


def _plot_of(ctx: click.Context, _param: click.Parameter, path: Path | None) -> Plot | None:
    """Look whether a picture can be written before there is one: measuring may take minutes."""
    if path is None:
        return None
    if path.suffix.lower() not in _METADATA:
        raise click.BadParameter(f"{str(path)!r} is no picture: it ends in .svg, .png or .pdf")
    # Found, and not yet imported: benchmarks measure the memory of this process.
    if find_spec("matplotlib") is None:
        raise ZlogError("pictures need the package matplotlib", hint=f"{how_to_install('plot')}.")
    new = not os.path.lexists(path)
    try:
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror}") from error
    return Plot(path, _LOOKS[ctx.meta[__name__]])


@dataclass(frozen=True)
class Plot:
    """Where a picture goes.

    Attributes:
        path: the file.
        look: its colours.
    """

    path: Path
    look: Look

    @contextmanager
    def paper(
        self, title: str, facts: Sequence[str], notes: Sequence[str], body: float
    ) -> Iterator[Paper]:
        """Draw a picture in a ``with`` block, and write it at its end.

        Args:
            title: in large letters.
            facts: lines below it, wrapped.
            notes: lines at the bottom in small letters, wrapped.
            body: height of what is between them, in inches.

        Raises:
            OSError: it can't be written.
        """
        from matplotlib import style

        with style.context(["default", _style(self.look)]), warnings.catch_warnings():
            # Letters that the font lacks; in an SVG they are letters all the same.
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            paper = Paper(self.look, title, facts, notes, body)
            yield paper
            suffix = self.path.suffix.lower()
            paper.figure.savefig(self.path, format=suffix[1:], dpi=_DPI, metadata=_METADATA[suffix])


class Paper:
    """A picture in the making; see :meth:`Plot.paper`.

    Attributes:
        look: its colours.
        figure: of matplotlib.
    """

    figure: Figure

    def __init__(
        self, look: Look, title: str, facts: Sequence[str], notes: Sequence[str], body: float
    ) -> None:
        from matplotlib.figure import Figure

        facts, notes = _wrapped(facts, TEXT_SIZE), _wrapped(notes, NOTE_SIZE)
        self.look = look
        self._top = MARGIN + _TITLE + len(facts) * _LINE + 0.1
        self._height = self._top + body + len(notes) * _NOTE + MARGIN
        self.figure = Figure(figsize=(WIDTH, self._height))
        self._write(MARGIN, title, TITLE_SIZE, weight="bold")
        for number, line in enumerate(facts):
            self._write(MARGIN + _TITLE + number * _LINE, line, TEXT_SIZE)
        for number, line in enumerate(notes):
            self._write(self._top + body + number * _NOTE, line, NOTE_SIZE, color=look.faint)

    def _write(self, top: float, text: str, size: float, **others: Any) -> None:
        text = shortened(text, size, WIDTH - 2 * MARGIN, others.get("weight", "normal"))
        place = (MARGIN / WIDTH, 1 - top / self._height)
        self.figure.text(*place, text, size=size, va="top", **others)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return a place for a chart, in inches from the upper left corner of the body."""
        bottom = self._height - self._top - top - height
        place = ((MARGIN + left) / WIDTH, bottom / self._height)
        return self.figure.add_axes((*place, width / WIDTH, height / self._height))


def _wrapped(lines: Sequence[str], size: float) -> list[str]:
    letters = int((WIDTH - 2 * MARGIN) * 72 / (_EM * size))
    parts = (textwrap.wrap(line, letters, break_on_hyphens=False) for line in lines)
    return [part for found in parts for part in found]


def width_of(text: str, size: float, weight: str = "normal") -> float:
    """Return how wide text is, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    found: float = text_to_path.get_text_width_height_descent(
        text, FontProperties(size=size, weight=weight), ismath=False
    )[0]
    return found / 72


def shortened(text: str, size: float, width: float, weight: str = "normal") -> str:
    """Return text without its middle, if it is wider than that, in inches."""
    kept = len(text)
    short = text
    while kept > 1 and (found := width_of(short, size, weight)) > width:
        kept = min(kept - 1, int(kept * width / found))
        short = f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"
    return short


def _style(look: Look) -> dict[str, Any]:
    """Return settings of matplotlib; whatever the user's own are, the rest is its defaults."""
    return {
        "figure.facecolor": look.background,
        "axes.facecolor": look.surface,
        "axes.edgecolor": look.line,
        "axes.labelcolor": look.faint,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": look.line,
        "grid.linewidth": 0.6,
        "text.color": look.text,
        "text.parse_math": False,  # names may have dollar signs
        "xtick.color": look.faint,
        "ytick.color": look.text,
        "legend.frameon": False,
        "font.size": 8,
        "svg.fonttype": "none",
        "svg.hashsalt": "zlog",
        "pdf.fonttype": 42,
    }
