"""Every emitted script: it parses, shellcheck is content, and it works from anywhere."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bundles.bundle import Bundle
from tests.bundles.reading import helm_commands, read

TELL = {  # what they say about themselves, called with --help from another folder
    "deploy.sh": "usage: ./deploy.sh [OPTION...]",
    "undeploy.sh": "usage: ./undeploy.sh [OPTION...]",
    "preflight.sh": "usage: ./preflight.sh [--context NAME]",
    "argocd/remove.sh": "usage: argocd/remove.sh",
    "flux/remove.sh": "usage: flux/remove.sh",
}


def scripts(bundle: Bundle) -> list[str]:
    return [path for path, content in bundle.files.items() if content.startswith(b"#!") or path.endswith(".sh")]


def test_these_are_the_scripts(bundle: Bundle) -> None:
    libraries = ["lib/gate", "lib/gates.sh", "lib/prepare", "lib/releases.sh"]
    assert sorted(scripts(bundle)) == sorted([*TELL, *libraries])
    for path in scripts(bundle):
        executable = bool((bundle.folder / path).stat().st_mode & 0o111)
        assert executable == (path not in {"lib/gates.sh", "lib/releases.sh"}), path


def test_bash_reads_them(bundle: Bundle) -> None:
    for path in scripts(bundle):
        done = subprocess.run(
            ["bash", "-n", path], cwd=bundle.folder, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), path


@pytest.mark.tools
def test_shellcheck_finds_nothing(bundle: Bundle, tool: Callable[[str], Path]) -> None:
    command = [str(tool("shellcheck")), "--external-sources", *scripts(bundle)]
    done = subprocess.run(command, cwd=bundle.folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", TELL)
def test_help_from_another_folder(nvke: Bundle, script: str, tmp_path: Path) -> None:
    """Without kubectl and helm: who asks for help has not installed them yet."""
    done = subprocess.run(
        [str(nvke.folder / script), "--help"],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert TELL[script] in done.stdout


@pytest.mark.parametrize("script", TELL)
def test_an_unknown_option_is_a_wrong_usage(nvke: Bundle, script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(nvke.folder / script), "--forse"],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "--forse" in done.stderr


def test_deploy_sh_works_in_a_folder_with_a_space(nvke: Bundle, tmp_path: Path) -> None:
    """Case 72: what it hands to helm is one word each."""
    place = tmp_path / "my bundle"
    shutil.copytree(nvke.folder, place)
    moved = replace(nvke, folder=place)
    assert read("deploy.sh", moved) == read("deploy.sh", nvke)
    (words,) = [w for w in helm_commands(moved) if w[2] == "sriov-ib-networks"]
    assert words[3] == f"{tmp_path}/my bundle/components/sriov-ib-networks"


def test_the_scripts_name_no_place_of_the_machine_that_compiled(bundle: Bundle) -> None:
    for path, content in bundle.files.items():
        assert str(bundle.repo).encode() not in content, path
        assert str(Path(__file__).resolve().parents[2]).encode() not in content, path
