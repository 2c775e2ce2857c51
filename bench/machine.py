"""A description of the machine on which the table was measured."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from bench import REPOSITORY


def describe(folder: Path) -> dict[str, str]:
    """Return a description of this machine."""
    return {
        "measured": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GiB",
        "disk": _file_system(folder),
        "system": f"{_distribution()}, Linux {platform.release()}",
        "Python": platform.python_version(),
        "Ceph": _ceph(),
        "load before": f"{os.getloadavg()[0]:.1f}",
        "zlog": _said("git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _file_system(folder: Path) -> str:
    words = _said("df", "--output=fstype,source", str(folder)).split()
    return " on ".join(words[-2:]) if words else "unknown"


def _ceph() -> str:
    program = shutil.which("ceph-osd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    words = _said(program, "--version").split() if program else []
    return words[2] if len(words) > 2 else "none"


def _said(*words: str) -> str:
    """Return a program's output, or an empty text if it cannot be run."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
