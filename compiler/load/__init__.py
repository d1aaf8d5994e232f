"""Stage 1: source files -> Catalog. The only stage that reads sources."""

from __future__ import annotations

from compiler.load.catalog import load

__all__ = ["load"]
