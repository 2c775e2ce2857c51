"""The view of ``zlog top`` on a terminal, with textual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import zlog
from zlog.admin import how_to_install
from zlog.cli.appenders import BY_OBJECT
from zlog.cli.commands.top.rows import (
    HEAD,
    SORTS,
    Row,
    look,
    rows_of,
    sorted_rows,
    state_of,
    summary,
)
from zlog.cli.groups import HEAD as GROUPS_HEAD
from zlog.cli.groups import Seen, cells, see_groups
from zlog.cli.session import Session
from zlog.cli.units import human_bytes
from zlog.errors import ZlogError
from zlog.overview import StoreOverview

try:
    from textual.app import App, ComposeResult
    from textual.binding import Binding, BindingType
    from textual.containers import VerticalScroll
    from textual.widgets import DataTable, Footer, Input, Static
except ImportError:
    raise ZlogError(
        "zlog top needs the package textual; `zlog top --once` does not",
        hint=f"{how_to_install('top')}.",
    ) from None


def run_view(session: Session, store: zlog.Store, match: str, interval: float, sort: str) -> None:
    """Show the logs until the user ends it."""
    view = TopView(session, store, match, interval, sort)
    view.run()
    if view.return_code:
        raise ZlogError("zlog top ended with an error")


class TopView(App[None]):
    """Shows a table of logs, or one log.

    Args:
        session: the global options of the command.
        store: the store whose logs are shown.
        match: a pattern; only logs whose names match it are shown.
        interval: the time between two polls, in seconds.
        sort: the order of the logs, one of ``SORTS``.
    """

    TITLE = "zlog top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #summary { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    #filter { display: none; border: none; height: 1; padding: 0; }
    #one { display: none; height: 1fr; }
    DataTable { height: 1fr; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        ("s", "sort", "Sort"),
        ("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", priority=True),  # the next keys belong to the field
        ("p", "pause", "Pause"),
        ("escape", "back", "Back"),
    ]

    def __init__(
        self, session: Session, store: zlog.Store, match: str, interval: float, sort: str
    ) -> None:
        super().__init__()
        self._store = store
        self._match = match
        self._interval = interval
        self._by = sort
        self._session = session
        self._reversed = False
        self._paused = False
        self._filter = ""
        self._one = ""
        self._seen: StoreOverview | None = None
        self._groups: Mapping[str, Seen] = {}
        self._rows: list[Row] = []
        self._looking = False

    def compose(self) -> ComposeResult:
        """Return the parts of the screen."""
        yield Static("looking …", id="summary", markup=False)
        yield DataTable[str](cursor_type="row", id="logs")
        with VerticalScroll(id="one"):
            yield Static("", id="details", markup=False)
        yield Input(placeholder="type part of a name and Enter; Escape shows all logs", id="filter")
        yield Footer()

    async def on_mount(self) -> None:
        """Begin to poll the logs."""
        logs = self.query_one("#logs", DataTable)
        for word in HEAD:
            logs.add_column(word, key=word)
        logs.focus()
        self.set_interval(self._interval, self._look_on)
        await self._look()

    async def _look_on(self) -> None:
        if not self._paused and not self._looking:
            await self._look()

    async def _look(self) -> None:
        self._looking = True
        try:
            seen = await look(self._store, self._match, self._session.timeout)
            shown = [log for log in seen.logs if log.name == self._one]
            self._groups = await see_groups(self._session, self._store, shown)
        except ZlogError as error:
            self.query_one("#summary", Static).update(f"can't read the logs: {error}")
            return
        finally:
            self._looking = False
        self._rows = rows_of(self._seen, seen)
        self._seen = seen
        self._show()

    def _show(self) -> None:
        if self._seen is None:
            return
        rows = [row for row in self._rows if self._filter in row.log.name]
        rows = sorted_rows(rows, self._by, reverse=self._reversed)
        state = f"by {self._by}" + (", paused" if self._paused else "")
        state += f", names with {self._filter!r}" if self._filter else ""
        line = f"{summary(self._seen, self._rows)}   {state}   {self._seen.url}"
        self.query_one("#summary", Static).update(line)
        logs = self.query_one("#logs", DataTable)
        at = logs.cursor_row
        chosen = logs.ordered_rows[at].key if logs.row_count > at >= 0 else None
        logs.clear()
        for row in rows:
            logs.add_row(*row.cells(), key=row.log.name)
        if chosen is not None and chosen in logs.rows:
            logs.move_cursor(row=logs.get_row_index(chosen))
        if self._one:
            self.query_one("#details", Static).update(self._details())

    def _details(self) -> str:
        row = next((row for row in self._rows if row.log.name == self._one), None)
        if row is None:
            return f"{self._one}: the log no longer exists"
        log = row.log
        if log.error:
            return f"{log.name}: {log.error}"
        lines = [
            ("log", f"{log.name}  {state_of(log)}"),
            ("id", log.id),
            ("rate", _rate(row)),
            ("tail", f"{log.tail:,}"),
            ("trim point", f"{log.trim_point:,}"),
            ("epoch", f"{log.epoch}"),
            (
                "layout",
                (
                    f"{log.stripes} stripes in the view, width {log.width},"
                    f" stripe unit {log.stripe_unit}"
                ),
            ),
            ("sequencer", BY_OBJECT if log.ordering == "object" else log.sequencer or "none"),
            ("writer", log.writer or "any"),
        ]
        if log.content is not None:
            content = log.content
            stored = human_bytes(content.stored_bytes)
            lines += [
                ("entries", f"{content.entries:,}"),
                ("bytes", f"{human_bytes(content.bytes)}, {stored} in objects"),
                ("objects", f"{content.objects}, the fullest at {content.fullness:.0%}"),
            ]
            if content.offloaded_stripes:
                offloaded, files = (
                    human_bytes(content.offloaded_bytes),
                    human_bytes(content.file_bytes),
                )
                what = f"{offloaded} in {content.offloaded_stripes:,} stripes, files of {files}"
                lines.append(("offloaded", what))
        lines += [(f"option {key}", value) for key, value in sorted(log.options.items())]
        lines += [
            (f"cursor {cursor.name}", f"at {cursor.position:,}, {cursor.lag:,} behind")
            for cursor in log.cursors
        ]
        for name, stat in self._groups.get(log.name, {}).items():
            values = zip(GROUPS_HEAD[1:], cells(name, stat)[1:], strict=True)
            words = (f"{what.lower()} {value}" for what, value in values if value != "-")
            lines.append((f"group {name}", ", ".join(words)))
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:{width}}  {value}" for label, value in lines)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show one log."""
        self._one = str(event.row_key.value)
        self.query_one("#logs").display = False
        self.query_one("#one").display = True
        self.set_focus(self.query_one("#one"))
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Show only logs whose names contain the text."""
        self._filter = event.value
        self._go_back()

    async def action_back(self) -> None:
        """Go back to all logs, or end the filter."""
        field = self.query_one("#filter", Input)
        if not self._one and not field.display:
            self._filter = field.value = ""
        self._go_back()

    def _go_back(self) -> None:
        self._one = ""
        self.query_one("#filter").display = False
        self.query_one("#one").display = False
        logs = self.query_one("#logs")
        logs.display = True
        self.set_focus(logs)
        self._show()

    def action_sort(self) -> None:
        """Sort by the next order."""
        self._by = SORTS[(SORTS.index(self._by) + 1) % len(SORTS)]
        self._show()

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._reversed = not self._reversed
        self._show()

    def action_filter(self) -> None:
        """Ask for a text that the names must contain."""
        field = self.query_one("#filter", Input)
        field.display = True
        self.set_focus(field)  # at once, unlike focus()

    def action_pause(self) -> None:
        """Pause or resume polling."""
        self._paused = not self._paused
        self._show()


def _rate(row: Row) -> str:
    if row.rate is None:
        return "not known yet"
    return f"{row.rate:,.1f} entries/s, {human_bytes(int(row.bytes_rate))}/s"
