"""Stage 4, emit: Plan -> Files. Pure: no disk, clock, network or environment.

`payload` writes what all deployers share (values, local charts, namespaces, examples), `bundle` and `readme` the
inventory
and the words, one module each the wiring of a deployer. An emitter is a module with four functions:

    emit(plan) -> Files            the deployer's own files
    read_back(files) -> Wiring     the order that a bundle's files really hold, read from the files alone
    tokens(check) -> frozenset     how a check shows in `Wiring.guards`; empty = this deployer cannot hold it
    gate_tokens(item) -> frozenset the same for a check of a gate, with how strictly it is held where that is written
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from compiler.errors import Collector, UserError
from compiler.model import Check, Files, GateCheck, Plan, Wiring

_MODULES: Mapping[str, str] = MappingProxyType(
    {"deploy.sh": "deploysh", "helmfile": "helmfile", "argocd": "argocd", "flux": "flux"}
)


class Emitter(Protocol):
    """What the module of a deployer offers."""

    def emit(self, plan: Plan) -> Files:
        """The deployer's own files. Raises UserError (BC4xxx) for what it cannot carry."""

    def read_back(self, files: Files) -> Wiring:
        """The order that the files hold."""

    def tokens(self, check: Check) -> frozenset[str]:
        """The tokens that a held check leaves in `Wiring.guards`."""

    def gate_tokens(self, item: GateCheck) -> frozenset[str]:
        """The tokens that a check of a gate leaves: also of its deadline and of how a miss ends, if it has them."""


def emitter(deployer: str) -> Emitter:
    """The emitter module of a deployer name (a member of `model.DEPLOYERS`), imported on first use."""
    return cast("Emitter", import_module(f"compiler.emit.{_MODULES[deployer]}"))


def emit(plan: Plan) -> Files:
    """All files of a bundle, `checksums.txt` included, by relative path in sorted order.

    Raises `UserError` (BC4xxx) with the findings of the payload, or else with those of all deployers.
    """
    from compiler.emit import bundle, payload

    files: dict[str, bytes] = dict(payload.emit(plan))
    found = Collector()
    for deployer in plan.settings.deployers:
        try:
            files.update(emitter(deployer).emit(plan))
        except UserError as error:
            found.found += error.diagnostics
    found.raise_if_failed()
    files.update(bundle.emit(plan, files))
    files["checksums.txt"] = bundle.checksums(files)
    return dict(sorted(files.items()))
