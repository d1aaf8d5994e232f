"""Strict validation of built-in Kubernetes objects, as `kubectl --validate=strict` does it: no unknown field."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
from referencing import Registry, Resource

VERSION = "1.34.0"
"""The oldest Kubernetes that a recipe asks for."""


def faults(item: dict[str, Any]) -> list[str]:
    """What the schema of a built-in kind finds wrong with `item`. KeyError when it is no built-in kind."""
    validator = _validator(item["apiVersion"], item["kind"])
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(item)]


def known(item: dict[str, Any]) -> bool:
    """Whether it is a built-in kind."""
    return _file(item["apiVersion"], item["kind"]).is_file()


@cache
def _validator(api_version: str, kind: str) -> Any:
    file = _file(api_version, kind)
    if not file.is_file():
        raise KeyError(f"{api_version} {kind}")
    return jsonschema.Draft202012Validator(json.loads(file.read_text()), registry=_registry())


@cache
def _registry() -> Any:
    return Resource.from_contents(json.loads((_FOLDER / "_definitions.json").read_text())) @ Registry()


_FOLDER = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"v{VERSION}-local-strict"


def _file(api_version: str, kind: str) -> Path:
    # The package names its files deployment-apps-v1.json, role-rbac-v1.json, pod-v1.json.
    group, slash, version = api_version.rpartition("/")
    builtin = "." not in group or group.endswith(".k8s.io")
    short = re.sub(r"\..*", "", group)
    name = f"{kind.lower()}-{short}-{version}.json" if slash else f"{kind.lower()}-{version}.json"
    return _FOLDER / name if builtin else _FOLDER / "no-such-kind"
