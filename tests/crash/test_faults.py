"""The same, systematically: a build dies at each of its system calls in turn."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler.errors import UserError
from compiler.write import ownership, swap, tree, write
from tests.support.trees import beside, contents, mode, snapshot, with_checksums

OLD = with_checksums({"README.md": b"one\n", "deploy.sh": b"#!/bin/sh\n", "flux/a.yaml": b"a\n", "flux/b.yaml": b"b\n"})
NEW = with_checksums(
    {"README.md": b"two\n", "deploy.sh": b"#!/bin/sh\n", "argocd/c.yaml": b"c\n", "flux/a.yaml": b"a\n"}
)
LATE = {"late-1.txt": b"mine", "flux/late-2.txt": b"mine", "deep/er/late-3.txt": b"mine"}


class Dead(BaseException):
    """The process is gone: no later system call happens either."""


class Kernel:
    """`os`, whose calls are counted; from call number `last` on every call kills."""

    def __init__(self, last: int, late: Callable[[], None] | None = None, late_at: int = -1) -> None:
        self.last, self.late, self.late_at = last, late, late_at
        self.count = 0

    def call(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if self.count == self.late_at and self.late:
                self.late()
            if self.count > self.last:
                if real is os.close:  # the system closes what a dead process held, its lock with it
                    os.close(*arguments)
                raise Dead
            return real(*arguments, **named)

        return counted

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self.call(real) if callable(real) and name not in {"fspath", "fsencode", "strerror"} else real


def build(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], target: Path, kernel: Kernel, *, exchange: bool
) -> None:
    with monkeypatch.context() as patch:
        rename = swap._renameat2 if exchange else lambda *_: False
        patch.setattr(swap, "_renameat2", kernel.call(rename))
        patch.setattr(swap, "_syncfs", kernel.call(swap._syncfs))
        patch.setattr(shutil, "rmtree", kernel.call(shutil.rmtree))
        for module in (ownership, swap, tree):
            patch.setattr(module, "os", kernel)
        write(files, target)


def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exchange: bool) -> int:
    """How many system calls a whole build from OLD to NEW makes."""
    kernel = Kernel(10**9)
    write(OLD, tmp_path / "count" / "x")
    build(monkeypatch, NEW, tmp_path / "count" / "x", kernel, exchange=exchange)
    assert kernel.count > 40
    return kernel.count


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "renames"])
def test_dying_at_every_system_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool):
    outcomes: list[str] = []
    for last in range(calls(tmp_path, monkeypatch, exchange=exchange) + 1):
        target = tmp_path / str(last) / "gb200"
        write(OLD, target)
        try:
            build(monkeypatch, NEW, target, Kernel(last), exchange=exchange)
            outcomes.append("done")
        except Dead:
            outcomes.append({True: "old", False: "new"}[contents(target) == OLD] if target.exists() else "none")
            if outcomes[-1] != "none":
                assert contents(target) in (OLD, NEW)
        # The next run succeeds, whichever tree it writes, and nothing stays behind.
        files = (OLD, NEW)[last % 2]
        write(files, target)
        assert contents(target) == files, last
        assert beside(target) == [], last
        assert (mode(target), mode(target / "flux"), mode(target / "deploy.sh")) == (0o755, 0o755, 0o755)
    order = [outcome for i, outcome in enumerate(outcomes) if i == 0 or outcomes[i - 1] != outcome]
    assert order == (["old", "new", "done"] if exchange else ["old", "none", "new", "done"])


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "renames"])
def test_dying_in_the_run_that_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool):
    """The run after a death may die as well, at any of its calls."""
    total = calls(tmp_path, monkeypatch, exchange=exchange)
    for first in range(10, total, 7):
        for second in range(0, total, 5):
            target = tmp_path / f"{first}-{second}" / "gb200"
            write(OLD, target)
            for last, files in ((first, NEW), (second, OLD)):
                with contextlib.suppress(Dead):
                    build(monkeypatch, files, target, Kernel(last), exchange=exchange)
            if target.exists():
                assert contents(target) in (OLD, NEW)
            write(NEW, target)
            assert contents(target) == NEW
            assert beside(target) == []


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "renames"])
def test_a_file_that_turns_up_at_any_moment_is_never_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
):
    total = calls(tmp_path, monkeypatch, exchange=exchange)
    for moment in range(1, total + 1):
        for death in (10**9, moment, moment + 9):
            target = tmp_path / f"{moment}-{death}" / "gb200"
            write(OLD, target)
            saved: set[str] = set()

            def late(target: Path = target, saved: set[str] = saved) -> None:
                for path, data in LATE.items():
                    try:
                        (target / path).parent.mkdir(parents=True, exist_ok=True)
                        (target / path).write_bytes(data)
                        saved.add(path)
                    except OSError:  # no target at this very moment: the save fails for whoever saves
                        pass

            with contextlib.suppress(Dead, UserError):
                build(monkeypatch, NEW, target, Kernel(death, late, moment), exchange=exchange)
            with contextlib.suppress(UserError):
                write(NEW, target)
            everything = snapshot(target.parent)
            for path in saved:
                places = [p for p, data in everything.items() if data == b"mine" and p.endswith("/" + path)]
                assert places == [f"gb200/{path}"], (moment, death)
            # Whoever makes a folder of that name while there is none has it: renames cannot put the bundle there.
            ours = {path: data for path, data in contents(target).items() if data != b"mine"}
            assert ours in ((OLD, NEW) if exchange else (OLD, NEW, {}))
