"""The last stage: files -> disk."""

from __future__ import annotations

from compiler.write.single import replace_file, take_back
from compiler.write.tree import Drift, WriteReport, compare, read, write, wrong_modes

__all__ = ["Drift", "WriteReport", "compare", "read", "replace_file", "take_back", "write", "wrong_modes"]
