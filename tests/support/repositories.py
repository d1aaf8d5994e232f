"""Small Git repositories that hold a scratch catalog, and what `bundlec diff` says about a change of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.tools import run
from tests.support.scratch import FILES, Change, Ran, bundlec, write_catalog

_COMMIT = re.compile(r"\b[0-9a-f]{10}\b")
_IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgSign=false")


class Repository:
    """A repository on branch main; `folder` is where the workspace lies inside it."""

    def __init__(self, root: Path, folder: str = "") -> None:
        self.root = root
        self.workspace = root / folder
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.files: dict[str, str] = dict(FILES)

    def git(self, *arguments: str | Path) -> str:
        """Run git here; the output."""
        return run(["git", *_IDENTITY, *arguments], cwd=self.root).text

    def write(self, changes: Mapping[str, Change] | None = None) -> None:
        """Apply changes (file -> new text, function of the old one, or None to remove) to the work tree."""
        for name, change in (changes or {}).items():
            old = self.files.get(name, "")
            text = change(old) if callable(change) else change
            if text is None:
                del self.files[name]
                (self.workspace / name).unlink()
            else:
                assert isinstance(text, str)
                self.files[name] = text
        write_catalog(self.workspace, {**dict.fromkeys(FILES.keys() - self.files.keys()), **self.files})

    def commit(self, message: str = "change") -> str:
        """Commit everything; the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def diff(self, *arguments: str | Path) -> Ran:
        """`bundlec diff` in the workspace; commits in its output are replaced by a word."""
        ran = bundlec("diff", *arguments, cwd=self.workspace)
        return Ran(ran.status, _COMMIT.sub("<commit>", ran.out), ran.err)

    def json(self, *arguments: str | Path) -> dict[str, Any]:
        """The report as data."""
        ran = self.diff("--format", "json", *arguments)
        assert ran.out, ran.err
        found: dict[str, Any] = json.loads(ran.out)
        return found


def repository(root: Path, changes: Mapping[str, Change] | None = None, *, folder: str = "") -> Repository:
    """A repository with one commit of the scratch catalog (with `changes`)."""
    made = Repository(root, folder)
    made.write(changes)
    made.commit("base")
    return made
