"""A shell on a terminal of its own, as the one that a reader of the tutorial types into."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path

_PROMPT = "\x01prompt\x02"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ROWS, _COLUMNS = 40, 100


class Terminal:
    """Runs commands one after the other, and gathers what appears on the screen.

    Args:
        folder: where the shell starts.
        environment: all that it gets.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._screen, slave = pty.openpty()
        size = struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
        self._shell = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *shell],
            cwd=folder,
            env={**environment, "PS1": _PROMPT, "PS2": "", "TERM": "dumb", "PWD": str(folder)},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self._output = select.poll()
        self._output.register(self._screen, select.POLLIN)
        self._shown = ""
        self._to_come = 1

    def enter(self, command: str) -> None:
        """Enter a command, which may have several lines."""
        self._to_come += 1
        os.write(self._screen, f"{command}\n".encode())

    def press(self, keys: str) -> None:
        """Type for the command that runs, having forgotten what appeared so far."""
        self.clear()
        os.write(self._screen, keys.encode())

    def read(self, seconds: float) -> None:
        """Wait for something to appear, for so long at most.

        Raises:
            EOFError: the shell has ended.
        """
        if self._output.poll(max(0.0, seconds) * 1000):
            try:
                self._shown += os.read(self._screen, 1 << 16).decode(errors="replace")
            except OSError:  # EIO: the other end is closed
                raise EOFError from None

    @property
    def idle(self) -> bool:
        """Whether every command that was entered has ended or runs in the background."""
        return self._shown.count(_PROMPT) >= self._to_come

    def screen(self) -> str:
        """Return what appeared since `clear`, without prompts."""
        return _COLOURS.sub("", self._shown.replace("\r\n", "\n").replace(_PROMPT, ""))

    def clear(self) -> None:
        """Forget what appeared so far."""
        self._to_come -= self._shown.count(_PROMPT)
        self._shown = ""

    def wait_until_idle(self, seconds: float) -> None:
        """Wait until the shell waits for a command.

        Raises:
            TimeoutError: a command takes longer.
        """
        end = time.monotonic() + seconds
        while not self.idle:
            if time.monotonic() >= end:
                raise TimeoutError(self.screen())
            self.read(end - time.monotonic())

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up, which ends the shell and what it runs in the background."""
        os.close(self._screen)
        try:
            self._shell.wait(10)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()
