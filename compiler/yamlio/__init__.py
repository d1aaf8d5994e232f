"""The one door to YAML: nothing else in the package imports `yaml`."""

from __future__ import annotations

from compiler.yamlio.reader import load, load_all
from compiler.yamlio.scalars import MAX_EXACT, DoubtfulError, OutOfRangeError, go_value, needs_quotes, plain_value
from compiler.yamlio.writer import dump, dump_all

__all__ = [
    "MAX_EXACT",
    "DoubtfulError",
    "OutOfRangeError",
    "dump",
    "dump_all",
    "go_value",
    "load",
    "load_all",
    "needs_quotes",
    "plain_value",
]
