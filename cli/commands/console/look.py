"""The colours of the console.

Colour-blind people can distinguish the hues, which are Okabe and Ito's. The colours of states also
differ in lightness.
"""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """The colours of the page in light or dark mode.

    Attributes:
        background: the colour of the page.
        surface: the colour of boxes on the page.
        line: the colour of frames and grids.
        text: the colour of text.
        faint: the colour of less important text.
        accent: the colour of clickable elements.
        states: maps each state of a position to its colour.
    """

    background: str
    surface: str
    line: str
    text: str
    faint: str
    accent: str
    states: dict[str, str]


LIGHT = Look(
    background="#f7f8fa",
    surface="#ffffff",
    line="#d5dae1",
    text="#1c2430",
    faint="#5b6675",
    accent="#0068b5",
    states={
        "written": "#0072b2",
        "filled": "#e69f00",
        "trimmed": "#d9dee5",
        "unwritten": "#ffffff",
        "lost": "#d0021b",
        "unreadable": "#8e4585",
        "unknown": "#6b7280",
        "offloaded": "#009e73",
    },
)

DARK = Look(
    background="#12161c",
    surface="#1b212a",
    line="#323b48",
    text="#e6eaf0",
    faint="#9aa6b5",
    accent="#6cb8f5",
    states={
        "written": "#3d9bdc",
        "filled": "#f0b429",
        "trimmed": "#313a46",
        "unwritten": "#0c0f13",
        "lost": "#ff5c6c",
        "unreadable": "#c58ac0",
        "unknown": "#8b95a3",
        "offloaded": "#1fbf8f",
    },
)


def style_sheet() -> str:
    """Return the colours as CSS custom properties, as the system or the user chooses."""
    dark = _properties(DARK)
    return (
        f":root {{ color-scheme: light; {_properties(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{\n"
        f'  :root:not([data-look="light"]) {{ color-scheme: dark; {dark} }}\n}}\n'
        f':root[data-look="dark"] {{ color-scheme: dark; {dark} }}\n'
    )


def _properties(look: Look) -> str:
    plain = ("background", "surface", "line", "text", "faint", "accent")
    found = {name: getattr(look, name) for name in plain}
    found |= {f"state-{name}": colour for name, colour in look.states.items()}
    return " ".join(f"--{name}: {colour};" for name, colour in found.items())
