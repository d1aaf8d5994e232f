"""Builds the programs that end-to-end scenarios run and that this machine lacks; each is built once, then kept.

    python -m tests.e2e.build [kubernetes] [flux] [argocd]    all of them if none is named

Status 1 when one of them is not there in the end; the reason is on standard error. A build that was cut short goes on
where it stopped, since Go keeps what it has compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests.e2e import binaries
from tests.e2e.argocd import controllers as argocd
from tests.e2e.flux import controllers as flux

PROGRAMS: dict[str, Callable[[], dict[str, Path]]] = {
    "kubernetes": binaries.programs,
    "flux": flux.programs,
    "argocd": argocd.programs,
}


def main(names: list[str]) -> int:
    """Builds what is missing of each; prints where the programs are."""
    missing = 0
    for name in names or PROGRAMS:
        if name not in PROGRAMS:
            print(f"e2e: no programs {name}; there are {', '.join(PROGRAMS)}", file=sys.stderr)
            return 2
        try:
            for program, path in PROGRAMS[name]().items():
                print(f"{program}\t{path}")
        except binaries.MissingError as why:
            print(f"e2e: {name}: {why}", file=sys.stderr)
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
