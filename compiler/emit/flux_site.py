"""Flux: where the objects of a bundle live in Git and in the cluster, and the settings that decide it."""

from __future__ import annotations

import posixpath
import re
from types import MappingProxyType
from typing import Any

from compiler.emit import names
from compiler.errors import Collector
from compiler.model import FluxSettings, GitSettings, Plan
from compiler.records import dataclass
from compiler.versions import parse_version

GRAPH = "flux/graph"
"""The folder of the nodes, relative to the bundle: one Kustomization a file."""

KUSTOMIZE_API = "kustomize.toolkit.fluxcd.io/v1"
HELM_API = "helm.toolkit.fluxcd.io/v2"
SOURCE_API = "source.toolkit.fluxcd.io/v1"

FLOOR = (2, 8)
"""The oldest Flux that knows every field that is emitted (`waitStrategy`)."""

# Nobody else's variable substitution may touch `${...}` in values: a parent Kustomization can have one.
VERBATIM = MappingProxyType({"kustomize.toolkit.fluxcd.io/substitute": "disabled"})

_SCP = re.compile(r"(?P<user>[^@/:]+)@(?P<host>[^/:]+):(?P<path>[^/].*)")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_TAG = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+([-+].*)?")


@dataclass(frozen=True)
class Site:
    """The bundle's place: names, paths and references that all of its Flux objects share."""

    plan: Plan
    base: str  # folder of the bundle in the source, without `./`; "" is the root

    @property
    def settings(self) -> FluxSettings:
        """The Flux settings of the bundle."""
        return self.plan.settings.flux

    @property
    def source(self) -> str:
        """Name of the source that holds the bundle."""
        return self.settings.source_name or self.plan.settings.prefix

    def name(self, what: str) -> str:
        """`<prefix>-<what>`. Raises `UserError` BC4001 when it is too long for the label that Flux makes of it."""
        return names.derived(self.plan, what)

    def path(self, folder: str) -> str:
        """A folder of the bundle as Flux wants it: relative to the root of the source."""
        return "./" + posixpath.join(self.base, folder)

    def source_ref(self) -> dict[str, Any]:
        """The reference of a Kustomization or chart to the source."""
        return {"kind": self.settings.source_kind, "name": self.source}

    def metadata(self, name: str, component: str | None = None, namespace: str | None = None) -> dict[str, Any]:
        """Metadata of an object of ours, in the namespace of the settings unless another one is given."""
        labels = {"app.kubernetes.io/part-of": self.plan.bundle, "bundlec.dev/bundle": self.plan.bundle}
        if component is not None:
            labels = {"app.kubernetes.io/name": component, **labels, "bundlec.dev/component": component}
        return {
            "name": name,
            "namespace": namespace or self.settings.namespace,
            "labels": labels,
            "annotations": dict(VERBATIM),
        }

    def access(self, *, remote: bool) -> dict[str, Any]:
        """The fields that say as whom and on which cluster an object acts.

        `remote`: it acts on the cluster of `flux.kubeConfig`. The others apply Flux objects, which live beside Flux.
        """
        fields: dict[str, Any] = {}
        if self.settings.service_account:
            fields["serviceAccountName"] = self.settings.service_account
        if remote and self.settings.kube_config:
            fields["kubeConfig"] = {"secretRef": {"name": self.settings.kube_config}}
        return fields


def site_of(plan: Plan) -> Site:
    """The site of a plan. Raises `UserError` with every setting that Flux needs (BC4002) or cannot honour (BC4003)."""
    found = Collector()
    settings, git, at = plan.settings.flux, plan.settings.git, plan.recipe.setting_at
    base = ""
    if git is None:
        found.error(
            "BC4002",
            "flux reads the bundle from Git: no repository is set",
            at("deployers"),
            fix="set `git` in bundlec.yaml",
        )
    else:
        base = posixpath.normpath(git.path or ".").lstrip("/").removeprefix("./")
        base = "" if base == "." else base
        if base.split("/")[0] == "..":
            found.error(
                "BC4002",
                f"`git.path` leads out of the repository: {git.path}",
                at("git.path"),
                fix="name a folder inside it",
            )
        if settings.source_kind == "GitRepository" and not settings.source_existing:
            _check_git(git, plan, found)
    if settings.source_kind not in {"GitRepository", "Bucket"}:
        found.error(
            "BC4003",
            f"`flux.source.kind: {settings.source_kind}`: charts of ours can be read from a GitRepository or a Bucket",
            at("flux.source.kind"),
            fix="set `flux.source.kind: GitRepository`",
        )
    elif settings.source_kind == "Bucket" and not settings.source_existing:
        found.error(
            "BC4002",
            "`flux.source.kind: Bucket` needs a Bucket that exists: its endpoint and credentials are not settings here",
            at("flux.source.kind"),
            fix="create it beside Flux and set `flux.source.name` and `flux.source.existing: true`",
        )
    if settings.source_existing and settings.source_secret:
        found.error(
            "BC4003",
            "`flux.source.secretRef`: the source exists already and brings its own credentials",
            at("flux.source.secretRef"),
            fix="take out `secretRef` or `existing`",
        )
    version = parse_version(settings.min_version)
    if version is None or version < FLOOR:
        found.error(
            "BC4003",
            f"`flux.minVersion: {settings.min_version}`: the emitted objects use fields of Flux 2.8",
            at("flux.minVersion"),
            fix='set `flux.minVersion: "2.8"` or newer',
        )
    found.raise_if_failed()
    return Site(plan, base)


def git_url(url: str) -> str:
    """`url` in the form that a GitRepository takes: `user@host:path` becomes `ssh://user@host/path`."""
    scp = _SCP.fullmatch(url)
    return f"ssh://{scp['user']}@{scp['host']}/{scp['path']}" if scp else url


def git_reference(revision: str) -> dict[str, str]:
    """The `ref` of a GitRepository: a commit by its hash, `refs/...` by name, a version as a tag, else a branch."""
    if _COMMIT.fullmatch(revision):
        return {"commit": revision}
    if revision.startswith("refs/"):
        return {"name": revision}
    return {"tag": revision} if _TAG.fullmatch(revision) else {"branch": revision}


def _check_git(git: GitSettings, plan: Plan, found: Collector) -> None:
    url, at = git_url(git.url), plan.recipe.setting_at("git.url")
    if not url.startswith(("https://", "http://", "ssh://")):
        found.error(
            "BC4003", f"`git.url: {git.url}`: Flux reads https://, http:// and ssh://", at, fix="use one of these forms"
        )
    elif url.startswith("ssh://") and not plan.settings.flux.source_secret:
        found.error(
            "BC4002",
            f"`git.url: {git.url}`: Flux needs a Secret with the key to read over ssh",
            at,
            fix="set `flux.source.secretRef` to its name, or use the https:// form",
        )
