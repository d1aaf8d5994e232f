"""What the compiler takes, beside what it may take: `make bench`.

Every figure is of a new process, as people run it: the wall clock and the peak memory that the system accounts to it.
Rows of one table are measured in one run on one machine; nothing here fails a build, since machines differ.

What a run is to find missing is put aside, not deleted: ext4 hands out no inode that was freed in the last minutes and
searches past it for every new file, so that a run would pay for the deletions of the runs before it (measured for 3,000
files: over 1 s of system time instead of 0.3 s).
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.synthetic import write_catalog  # noqa: E402

BUNDLEC = str(Path(sys.executable).parent / "bundlec")
SOURCES = ("bundlec.yaml", "overlays", "components", "mixins")
RUNS = 7


@dataclass(frozen=True)
class Sample:
    """One process: wall seconds and peak resident memory in MB."""

    seconds: float
    megabytes: float


def run(command: list[str], folder: Path) -> Sample:
    """Run a command to its end; a failure ends the benchmark with its output."""
    log = folder / "bench.log"
    with log.open("wb") as output:
        started = time.perf_counter()
        # As users run it: Python keeps the bytecode of what it compiled.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, output.fileno(), 2)]
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - started
    if status != 0:
        sys.exit(f"bench: {' '.join(command)} failed:\n{log.read_text(errors='replace')}")
    return Sample(seconds, usage.ru_maxrss / 1024)


def measure(command: list[str], folder: Path, before: Callable[[], None] = lambda: None, runs: int = RUNS) -> Sample:
    """The median time and the highest memory of several runs, each after `before`."""
    samples = []
    for _ in range(runs):
        before()
        samples.append(run(command, folder))
    return Sample(statistics.median(s.seconds for s in samples), max(s.megabytes for s in samples))


def main() -> None:
    rows: list[tuple[str, str, str, str]] = []

    def row(what: str, budget: float | None, value: float, unit: str, note: str = "") -> None:
        verdict = "" if budget is None else "ok" if value <= budget else "OVER"
        rows.append((what, "" if budget is None else f"<= {budget:g} {unit}", f"{value:.3g} {unit}", note or verdict))

    with tempfile.TemporaryDirectory(prefix="bundlec-bench-") as name:
        folder = Path(name)
        for source in SOURCES:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / source)
            else:
                shutil.copy(ROOT / source, folder / source)
        bundles = _bundles(folder)
        clear = _clear(folder)
        here = [BUNDLEC, "-C", str(folder)]

        floor = measure([sys.executable, "-c", "pass"], folder)
        row("an empty Python process, for comparison", None, floor.seconds, "s")
        row("bundlec --help", 0.1, measure([BUNDLEC, "--help"], folder).seconds, "s")
        one = measure([*here, "build", bundles[0]], folder, clear)
        row(f"{bundles[0]}, four deployers, nothing parsed before", None, one.seconds, "s")
        cold = measure([*here, "build", bundles[0]], folder, _forget(folder))
        row("the same in a checkout that was built before", 0.25, cold.seconds, "s")
        everything = measure([*here, "build", "--all"], folder, clear)
        row(f"all {len(bundles)} bundles, no cache", 1.5, everything.seconds, "s")
        run([*here, "build", "--all"], folder)
        again = measure([*here, "build", "--all"], folder)
        row("the same, nothing changed", 0.3, again.seconds, "s")
        component = "gpu-operator"
        why = measure([*here, "explain", bundles[0], component, "driver.enabled"], folder)
        row("explain a value", 0.3, why.seconds, "s")
        chain = measure([*here, "explain", bundles[0], "--order", "cert-manager", component], folder)
        row("explain an order", 0.3, chain.seconds, "s")
        row("lint of the catalog", 3, measure([*here, "lint"], folder).seconds, "s")
        both = 2 * everything.seconds
        compared = measure([*here, "diff", str(folder / "out" / bundles[0]), str(folder / "out" / bundles[1])], folder)
        row("diff of two emitted bundles", None, compared.seconds, "s")
        base = measure([BUNDLEC, "-C", str(ROOT), "diff", "--all", "--base", "HEAD"], folder)
        row("diff of the catalog, HEAD and the work tree; twice compiling both", 2 * both, base.seconds, "s")
        row("peak memory of these", 150, max(s.megabytes for s in (one, everything, again)), "MB")

        seconds = {}
        memory = {}
        for size, runs in ((100, RUNS), (1000, 3)):
            catalog = folder / str(size)
            write_catalog(catalog, size)
            built = measure([BUNDLEC, "-C", str(catalog), "build", "--all"], catalog, _clear(catalog), runs)
            seconds[size], memory[size] = built.seconds, built.megabytes
            row(f"{size:,} made-up components, four deployers, no cache", None, built.seconds, "s")
        row("the same, 1,000 against 100", 12, seconds[1000] / seconds[100], "times")
        row("peak memory of 1,000", None, memory[1000], "MB")

    widths = [max(len(line[column]) for line in rows) for column in range(3)]
    for what, budget, value, verdict in rows:
        print(f"{what:<{widths[0]}}  {budget:>{widths[1]}}  {value:>{widths[2]}}  {verdict}".rstrip())


def _bundles(folder: Path) -> list[str]:
    from compiler.load import load

    return list(load(folder).workspace.bundles)


def _clear(folder: Path) -> Callable[[], None]:
    """Take away the bundles and all that was remembered."""
    return lambda: _put_aside(folder, "out", ".bundlec")


def _forget(folder: Path) -> Callable[[], None]:
    """Take away the bundle and what was remembered of it; what was parsed of the sources stays."""
    return lambda: _put_aside(folder, "out", ".bundlec/builds.json")


def _put_aside(folder: Path, *names: str) -> None:
    aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=folder))
    for name in names:
        if (folder / name).exists():
            (folder / name).rename(aside / Path(name).name)


if __name__ == "__main__":
    main()
