"""`make release` begins only where all that it would publish is the tag's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ..support.programs import REPOSITORY

VERSION = re.findall('^version = "(.*)"', (REPOSITORY / "pyproject.toml").read_text(), re.M)[0]
DATED = f"## [{VERSION}] - 2026-12-01\n"
FROZEN = f"tests/versions/testdata/{VERSION.rpartition('.')[0]}/store"


class Checkout:
    """A repository with what the program looks at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "packaging").mkdir()
        for name in ("packaging/release", "pyproject.toml"):
            shutil.copy(REPOSITORY / name, folder / name)
        self.write("CHANGELOG.md", DATED)
        self.write(FROZEN, "")
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words: str) -> None:
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        subprocess.run(["git", *identity, *words], cwd=self.folder, check=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=all")

    def refusal(self) -> str:
        """Run it, with a `make` that does nothing; what it says."""
        self.write(".git/bin/make", "#!/bin/sh\nexit 17\n")
        (self.folder / ".git/bin/make").chmod(0o755)
        path = f"{self.folder / '.git/bin'}:/usr/bin:/bin"
        done = subprocess.run(
            ["packaging/release", "bookworm"],
            cwd=self.folder,
            env={"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == (1 if done.stderr else 17)
        return done.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_clean_checkout_of_tag_is_accepted(checkout: Checkout) -> None:
    checkout.git("tag", f"v{VERSION}")
    assert checkout.refusal() == ""


def test_untagged_commit_is_refused(checkout: Checkout) -> None:
    assert f"does not have the tag v{VERSION}" in checkout.refusal()
    checkout.git("tag", f"v{VERSION}")
    checkout.commit()
    assert f"does not have the tag v{VERSION}" in checkout.refusal()


def test_uncommitted_changes_are_refused(checkout: Checkout) -> None:
    checkout.git("tag", f"v{VERSION}")
    checkout.write("new", "")
    assert "has changes" in checkout.refusal()


def test_changelog_without_date_is_refused(checkout: Checkout) -> None:
    checkout.write("CHANGELOG.md", f"## [{VERSION}] - unreleased\n")
    checkout.commit()
    checkout.git("tag", f"v{VERSION}")
    assert "has no date" in checkout.refusal()


def test_missing_frozen_release_is_refused(checkout: Checkout) -> None:
    shutil.rmtree((checkout.folder / FROZEN).parent)
    checkout.commit()
    checkout.git("tag", f"v{VERSION}")
    assert "is not frozen" in checkout.refusal()
