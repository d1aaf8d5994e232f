"""The words that more than one stage uses, as types and in their fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Until: TypeAlias = Literal["applied", "api", "ready"]
Piece: TypeAlias = Literal["pre", "main", "post"]
OnTimeout: TypeAlias = Literal["fail", "warn"]
Scope: TypeAlias = Literal["always", "install"]
Files: TypeAlias = Mapping[str, bytes]
"""Relative POSIX path -> content; content that begins with `#!` is executable."""
PIECES: tuple[Piece, ...] = ("pre", "main", "post")
DEPLOYERS: tuple[str, ...] = ("deploy.sh", "helmfile", "argocd", "flux")
CRITERIA: tuple[str, ...] = ("service", "accelerator", "os", "intent", "platform", "nodes")
