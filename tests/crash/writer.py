"""Writes two trees in turn into one folder, for ever: the program that `test_kill.py` kills."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from compiler.errors import UserError
from compiler.write import swap, write
from tests.support.trees import with_checksums


def trees() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Two trees of 240 files, a third of them common to both, a third changed, a third in one only."""
    common = {f"common/{i:03}/values.yaml": b"same: true\n" * 50 for i in range(80)}
    changed = [{f"changed/{i % 7}/{i:03}.yaml": word * 300 for i in range(80)} for word in (b"old\n", b"new\n")]
    alone = [{f"{name}/{i:03}/run.sh": b"#!/bin/sh\n" * 30 for i in range(80)} for name in ("first", "second")]
    one, two = (with_checksums({**common, **c, **a}) for c, a in zip(changed, alone, strict=True))
    return one, two


def main() -> None:
    target = Path(sys.argv[1])
    if "no-exchange" in sys.argv:
        swap._renameat2 = lambda *_: False  # type: ignore[assignment]
    print("ready", flush=True)
    for files in itertools.cycle(trees()):
        try:
            write(files, target)
        except UserError:  # a foreign file that the test put there: go on until killed
            print("refused", flush=True)


if __name__ == "__main__":
    main()
