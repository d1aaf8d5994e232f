"""Every command that a document shows is run here, or listed with the reason why not and where it is covered.

A command is a line of a fenced `sh` block, or a code span that begins with the name of a program of ours or of a deployer. Blocks of
`console` are in docs/errors.md alone, which is made by running them (test_errors.py).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from compiler.cli import cli
from compiler.model import DEPLOYERS
from tests.docs import project
from tests.docs.markdown import Block, blocks, commands, under
from tests.docs.project import ROOT

DOCUMENTS = sorted(
    p for pattern in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/**/*.md") for p in ROOT.glob(pattern)
)
SPAN = re.compile(
    r"`((?:bundlec|make|helm|helmfile|kubectl|(?:un)?deploy\.sh|(?:argocd|flux)/remove\.sh|\.ci/run)(?: [^`\n]*)?)`"
)
NVKE = "gb200-nvke-ubuntu-training"

# Commands with a place to fill in, and those that only make sense after another one: what is run for them.
STANDS_FOR: Mapping[str, tuple[str, ...]] = {
    "bundlec build [BUNDLE...|--all] [--deployer D] [--profile N=V] [--set C:P=V] [--out DIR] [--check]": (
        "bundlec build --all",
        "bundlec build --all --check",
        f"bundlec build {NVKE} --deployer flux --set rdmamodules:autoTaintNewNodes=false --out /tmp/bundles/one",
        "bundlec build gb200-gke-cos-training --profile gpuStack=bundle-installer --out /tmp/bundles/two",
    ),
    "bundlec list [--format text|json|md]": tuple(f"bundlec list --format {form}" for form in ("text", "json", "md")),
    "bundlec new component|overlay|mixin|bundle NAME": (
        "bundlec new component shiny",
        "bundlec new overlay gb200-nvke-ubuntu-inference --criteria intent=inference",
        "bundlec new mixin common-part",
        f"bundlec new bundle prod-south --recipe {NVKE}",
        # They are the tree's now; what was there compiles as before.
        f"bundlec build prod-south {NVKE}",
    ),
    "bundlec resolve NAME": (f"bundlec resolve {NVKE}",),
    "bundlec graph NAME [--format text|mermaid|dot|svg]": tuple(
        f"bundlec graph {NVKE} --format {form}" for form in ("text", "mermaid", "dot", "svg")
    ),
    "bundlec explain NAME [COMPONENT [PATH]]": (
        f"bundlec explain {NVKE} gpu-operator",
        f"bundlec explain {NVKE} gpu-operator driver.version",
        f"bundlec explain {NVKE} --edge network-operator nfd",
        f"bundlec explain {NVKE} --gate sriov-ib-networks",
    ),
    # As text and for GitHub it is run below.
    "bundlec lint [--format text|github|sarif|json]": ("bundlec lint --format sarif", "bundlec lint --format json"),
    "bundlec schema [KIND]": ("bundlec schema", "bundlec schema component"),
    "bundlec diff [BUNDLE...] [--base REV] [--head REV] [--format text|md|json] [--exit-code]": (
        f"bundlec diff {NVKE} --base HEAD --head main --format json --exit-code",
    ),
    "bundlec diff DIR DIR": (f"bundlec diff out/{NVKE} out/gb200-nvke-ubuntu-training-kubeflow",),
    "bundlec verify DIR...": (f"bundlec verify out/{NVKE} out/h100-kind-training",),
    "bundlec verify": (f"bundlec verify out/{NVKE}",),
    'make bundle RECIPE=... [DEPLOYERS="..." PROFILE=... OUT=...]': (
        'make bundle RECIPE=gb200-gke-cos-training DEPLOYERS="argocd flux" PROFILE=gpuStack=bundle-installer OUT=/tmp/bundles/three',
    ),
    "deploy.sh --help": (f"out/{NVKE}/deploy.sh --help",),
}

CLUSTER = "needs a cluster; run by"
# Commands that no test of the documents can run, each with the reason and the file that covers it.
ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "make test": ("it is this run", "Makefile"),
    "make test && make lint": ("it is this run, and the step of continuous integration before it", ".ci/run"),
    "make lint": ("a step of continuous integration before the tests", ".ci/run"),
    "make bench": ("takes minutes and judges by the clock, which no test does", "tests/bench/bench.py"),
    "make docs": ("what it would write is compared with what is there", "tests/docs/test_errors.py"),
    "make tools": ("downloads; continuous integration begins with it", ".ci/run"),
    "make e2e": ("the end-to-end tests themselves", ".ci/run"),
    'make e2e ARGS="-k killed"': ("the end-to-end tests themselves", ".ci/run"),
    ".ci/run": ("it is what runs this", ".ci/run"),
    "helmfile sync": (CLUSTER, "tests/e2e/test_helmfile.py"),
    "helmfile apply": (CLUSTER, "tests/e2e/test_helmfile_apply.py"),
    "helmfile destroy": (CLUSTER, "tests/e2e/test_helmfile.py"),
    "deploy.sh": (CLUSTER, "tests/e2e/test_deploysh.py"),
    "undeploy.sh": (CLUSTER, "tests/e2e/test_deploysh.py"),
    "argocd/remove.sh": (CLUSTER, "tests/e2e/test_argocd.py"),
    "flux/remove.sh": (CLUSTER, "tests/e2e/test_flux.py"),
    "flux/remove.sh --only NAME": (CLUSTER, "tests/e2e/test_flux.py"),
    "helm uninstall": ("tells what Helm does, asks nobody to run it", "docs/adr/0007-what-teardown-leaves.md"),
    "kubectl get": ("what a gate of the scripts runs", "tests/e2e/test_deploysh.py"),
    "kubectl wait": ("what a guard Job runs", "tests/e2e/test_guards.py"),
    "kubectl apply --server-side": ("how a script makes namespaces", "tests/e2e/test_deploysh.py"),
}


def shown() -> Iterator[tuple[str, str]]:
    """(document, command) for all commands of the documents; options and values as they are shown."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        for block in blocks(text):
            if block.kind == "sh":
                for command in commands(block):
                    yield name, command
            text = text.replace(block.text, "")
        for span in SPAN.findall(text):
            yield name, span.replace("\\|", "|")


COMMANDS = list(dict.fromkeys(command for _, command in shown()))
# What the tutorial's blocks hold is run there, block by block.
TUTORIAL = {
    command
    for heading in ("Look around", "Add a component", "Add a cluster", "Review a change", "Ask why")
    for block in under((ROOT / "README.md").read_text(encoding="utf-8"), heading)
    for command in commands(block)
}


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 40
    assert len(TUTORIAL) > 15


def test_no_row_is_of_a_command_that_no_document_shows() -> None:
    assert {*STANDS_FOR, *ELSEWHERE} - set(COMMANDS) == set()


@pytest.mark.parametrize("command", ELSEWHERE)
def test_what_is_not_run_is_covered_by_a_file_that_is_there(command: str) -> None:
    reason, file = ELSEWHERE[command]
    assert reason
    assert (ROOT / file).is_file(), file


@pytest.fixture(scope="module")
def repository(copy: Path) -> Path:
    """The copy as a Git repository with a remote branch, every bundle built, and the one that the README adds."""
    text = (copy / "bundlec.yaml").read_text()
    entry = f"    - name: prod-east\n      recipe: {NVKE}\n      prefix: east\n"
    (copy / "bundlec.yaml").write_text(text.replace("  bundles:\n", f"  bundles:\n{entry}", 1))
    (copy / ".gitignore").write_text(".venv/\n.bundlec/\n")
    words = "git -c user.name=a -c user.email=a@b"
    project.run(
        Block(
            "sh",
            f"git init -q -b main && bundlec build --all && {words} add -A && {words} commit -qm x\n"
            "git update-ref refs/remotes/origin/main main\nbundlec build prod-east --out /tmp/bundles\n",
            (),
            0,
        ),
        copy,
    )
    return copy


@pytest.fixture
def clone(repository: Path) -> Path:
    """The repository as it was committed: what one command left is not there for the next."""
    project.run(Block("sh", "git reset --quiet --hard main && git clean --quiet --force -d", (), 0), repository)
    return repository


RUN = [c for c in COMMANDS if c not in ELSEWHERE and c not in TUTORIAL]


@pytest.mark.parametrize("command", RUN)
def test_a_command_does_what_it_is_shown_for(clone: Path, command: str) -> None:
    for words in STANDS_FOR.get(command, (command,)):
        assert "..." not in words, f"`{words}` stands for others: add a row to STANDS_FOR"
        project.run(Block("sh", words, (), 0), clone)


@pytest.mark.parametrize("heading", ["Review a change", "Ask why"])
def test_a_block_of_the_readme(clone: Path, heading: str) -> None:
    """The other blocks of the tutorial are run by test_readme.py, each with a look at what it did."""
    for block in under((ROOT / "README.md").read_text(encoding="utf-8"), heading):
        said = project.run(block, clone)
        assert said.strip()


def test_every_command_of_bundlec_is_shown() -> None:
    words = {w[1] for w in (c.removeprefix(".venv/bin/").split() for c in COMMANDS) if w[0] == "bundlec" and len(w) > 1}
    assert words == set(cli.commands)


# ---------------------------------------------------------------------------------------------------------------------
# docs/ci and the hooks: the scripts are run by test_ci.py with stand-ins for bundlec and the forge; here bundlec itself

HOOKS = re.findall(
    r"(?:^\s*(?:entry|run): |^\s+)(bundlec [^|#\n]+?)(?: \|\|.*)?$",
    "".join((ROOT / n).read_text() for n in (".pre-commit-hooks.yaml", "docs/ci/github.yml", "docs/ci/gitlab.yml")),
    re.MULTILINE,
)


@pytest.mark.parametrize("command", sorted(set(HOOKS)))
def test_a_command_of_a_workflow(clone: Path, command: str) -> None:
    project.run(Block("sh", command, (), 0), clone)


def test_the_workflows_have_such_commands() -> None:
    assert {"bundlec lint", "bundlec build --all --check", "bundlec lint --format github"} <= set(HOOKS)


# ---------------------------------------------------------------------------------------------------------------------
# The README of a bundle: what it tells to run against a cluster

# Command -> the end-to-end test that runs it. NAME and NAMESPACE stand for what differs between bundles.
ON_A_CLUSTER: Mapping[str, str] = {
    "./deploy.sh": "tests/e2e/test_deploysh.py",
    "./deploy.sh --health": "tests/e2e/test_deploysh.py",
    "./deploy.sh --prune": "tests/e2e/test_deploysh.py",
    "./undeploy.sh": "tests/e2e/test_deploysh.py",
    "helmfile sync": "tests/e2e/test_helmfile.py",
    "helmfile apply": "tests/e2e/test_helmfile_apply.py",
    "helmfile --selector bundlec.dev/teardown!=keep destroy": "tests/e2e/test_helmfile.py",
    "helmfile destroy": "tests/e2e/test_helmfile.py",
    "BUNDLEC_PURGE=1 helmfile destroy": "tests/e2e/test_helmfile.py",
    "kubectl apply --filename argocd/root.yaml": "tests/e2e/test_argocd.py",
    "kubectl --namespace argocd get applications --selector bundlec.dev/bundle=NAME": "tests/e2e/test_argocd.py",
    "argocd/remove.sh": "tests/e2e/test_argocd.py",
    "kubectl --namespace argocd patch applications.argoproj.io APPLICATION --type=merge --patch "
    """'{"status":{"operationState":{"phase":"Terminating"}}}'""": "tests/e2e/test_argocd.py",
    "kubectl apply --filename flux/root.yaml": "tests/e2e/test_flux.py",
    "kubectl --namespace flux-system get kustomizations --selector bundlec.dev/bundle=NAME": "tests/e2e/test_flux.py",
    "flux/remove.sh": "tests/e2e/test_flux.py",
}


@pytest.mark.parametrize("path", sorted(ROOT.glob("out/*/README.md")), ids=lambda p: p.parent.name)
def test_the_readme_of_a_bundle_tells_nothing_that_is_not_covered(path: Path) -> None:
    found = {
        command.replace(path.parent.name, "NAME")
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.kind == "sh"
        for command in commands(block)
    }
    assert found <= set(ON_A_CLUSTER)
    for deployer, word in zip(
        DEPLOYERS, ("./deploy.sh", "helmfile sync", "argocd/remove.sh", "flux/remove.sh"), strict=True
    ):
        assert word in found, deployer


def test_what_needs_a_cluster_is_run_end_to_end() -> None:
    """Each file names the script, the manifest or the words that the README tells to run."""
    for command, file in ON_A_CLUSTER.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        support = "".join((ROOT / "tests/e2e" / n).read_text() for n in ("cluster.py",))
        program, *words = command.removeprefix("BUNDLEC_PURGE=1 ").removeprefix("./").split()
        known = {"deploy.sh": ".deploy(", "undeploy.sh": ".undeploy(", "helmfile": ".helmfile(", "kubectl": "kubectl"}
        folder, _, name = program.rpartition("/")
        wanted = [known.get(program, name)] if not folder else [folder, name]
        wanted += [
            w for w in words if w in ("sync", "apply", "destroy", "--health", "--prune", "bundlec.dev/teardown!=keep")
        ]
        for word in wanted:
            assert word in text + support, f"{command}: {file} does not run {word}"


@pytest.mark.parametrize("script", ["deploy.sh", "undeploy.sh", "argocd/remove.sh", "flux/remove.sh"])
def test_the_options_that_a_bundle_s_readme_names_are_there(script: str) -> None:
    bundle = ROOT / "out" / NVKE
    done = subprocess.run([str(bundle / script), "--help"], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    for line in (bundle / "README.md").read_text().splitlines():
        if line.startswith((f"./{script}", f"{script} ")):
            for option in re.findall(r"--[a-z-]+", line):
                assert option in done.stdout, f"{script} {option}"
