"""The words that more than one stage uses, as types and in their fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Until: TypeAlias = Literal["applied", "api", "ready"]
Piece: TypeAlias = Literal["pre", "main", "post"]
OnTimeout: TypeAlias = Literal["fail", "warn"]
Scope: TypeAlias = Literal["always", "install"]
Files: TypeAlias = Mapping[str, bytes]
"""Relative POSIX path -> content; content that begins with `#!` is executable."""
PIECES: tuple[Piece, ...] = ("pre", "main", "post")
DEPLOYERS: tuple[str, ...] = ("deploy.sh", "helmfile", "argocd", "flux")
CRITERIA: tuple[str, ...] = ("service", "accelerator", "os", "intent", "platform", "nodes")


def switch(value: Any) -> bool | None:
    """What `value` says about a component that it switches: a boolean, or the word for one; None for anything else."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None
