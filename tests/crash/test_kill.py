"""A build that is killed leaves the old tree or the new one, and the next build goes through."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compiler.errors import UserError
from compiler.write import swap, write
from tests.crash.writer import trees
from tests.support.trees import beside, contents

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 35


@pytest.mark.parametrize("way", ["exchange", "no-exchange"])
def test_killed_at_random_moments(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch):
    """35 kills each way. The two renames of `no-exchange` have a moment without a target, which the next run ends."""
    target = tmp_path / "out" / "gb200"
    one, two = trees()
    write(one, target)
    seed = random.randrange(2**32)
    print("seed", seed)  # shown when the test fails
    chance = random.Random(seed)
    seen = {"one": 0, "two": 0, "left": 0}
    if way == "no-exchange":
        monkeypatch.setattr(swap, "_renameat2", lambda *_: False)
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "tests.crash.writer", str(target), way]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0.0, 0.12))
            writer.kill()
            _, stderr = writer.communicate()
        assert stderr == b""
        seen["left"] += bool(beside(target))
        if way == "exchange" or target.exists():
            found = contents(target)
            assert found in (one, two)
            seen["one" if found == one else "two"] += 1
        write(chance.choice((one, two)), target)
        assert contents(target) in (one, two)
        assert beside(target) == []
    # The moments were spread: both trees were seen, and some kills hit a build in the middle.
    assert min(seen.values()) > 0, seen


def test_a_foreign_file_survives_kills(tmp_path: Path):
    """Somebody saves a file into the folder while builds run and are killed: it is never lost."""
    target = tmp_path / "out" / "gb200"
    one, two = trees()
    write(one, target)
    chance = random.Random(random.randrange(2**32))
    for number in range(20):
        command = [sys.executable, "-m", "tests.crash.writer", str(target)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(chance.uniform(0.0, 0.08))
            mine = target / f"notes-{number}.md"
            mine.write_text("mine")
            time.sleep(chance.uniform(0.0, 0.04))
            writer.kill()
            writer.communicate()
        # It lies in the target, or in a tree that was being replaced and that the next build clears.
        found = list(target.parent.rglob("notes-*.md"))
        assert [path.read_text() for path in found] == ["mine"], found
        with contextlib.suppress(UserError):  # refused, since the file is there; anything else fails below
            write(one, target)
        assert mine.read_text() == "mine"
        mine.unlink()
        write(two, target)
        assert contents(target) == two
        assert beside(target) == []
