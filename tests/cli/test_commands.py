"""What the commands print, where, and how they end."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from compiler import pipeline
from compiler.cli import cli
from tests.support.scratch import FILES, Ran, appended, bundlec, replaced, told, write_catalog

LEAF = "overlays/leaf.yaml"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return write_catalog(tmp_path / "w")


def process(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    """The command line as a process of its own."""
    command = [sys.executable, "-m", "compiler.cli", *arguments]
    paths = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=cwd, env={**paths, **env}, capture_output=True, check=False, timeout=60)


# ---------------------------------------------------------------------------------------------------------------------
# list, resolve, graph, verify


def test_list(catalog: Path):
    write_catalog(catalog, {LEAF: appended("  maturity: stable\n  description: A leaf.\n")})
    assert bundlec("list", cwd=catalog) == Ran(
        0,
        "BUNDLE  RECIPE  COMPONENTS  PROFILE           MATURITY\n"
        "demo    leaf    3           mode=plain|fancy  stable\n"
        "\n"
        "RECIPE  CRITERIA                             COMPONENTS  PROFILE           MATURITY  DESCRIPTION\n"
        "leaf    service=any-cloud,accelerator=gb200  3           mode=plain|fancy  stable    A leaf.\n",
        "",
    )  # fmt: skip


def test_list_for_machines(catalog: Path):
    by_criteria = (
        "    - {name: picked, prefix: p, criteria: {service: any-cloud, accelerator: gb200}, profile: {mode: fancy}}\n"
    )
    write_catalog(catalog, {"bundlec.yaml": appended(by_criteria)})
    said = {
        "criteria": {"service": "any-cloud", "accelerator": "gb200"},
        "components": 3,
        "profile": {"name": "mode", "value": "plain", "others": ["fancy"]},
        "maturity": "preview",
        "description": "",
    }
    picked = {**said, "profile": {"name": "mode", "value": "fancy", "others": ["plain"]}}
    assert json.loads(bundlec("list", "--format", "json", cwd=catalog).out) == {
        "bundles": [{"bundle": "demo", "recipe": "leaf", **said}, {"bundle": "picked", "recipe": "leaf", **picked}],
        "recipes": [{"recipe": "leaf", **said}],
    }
    assert "picked  leaf    3           mode=fancy|plain" in bundlec("list", cwd=catalog).out


def test_resolve_prints_what_recipe_yaml_holds(catalog: Path):
    bundlec("build", "demo", cwd=catalog)
    ran = bundlec("resolve", "demo", cwd=catalog)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (catalog / "out/demo/recipe.yaml").read_text()
    as_json = json.loads(bundlec("resolve", "demo", "--format", "json", cwd=catalog).out)
    (alpha, beta, gamma) = as_json["spec"]["components"]
    assert alpha["values"]["image"] == {"repository": "example.org/alpha", "tag": "1.0"}
    assert beta["values"] == {"greeting": "hello"}
    assert gamma["values"] == {"fancy": False}


def test_resolve_with_another_profile(catalog: Path):
    ran = bundlec("resolve", "demo", "--profile", "mode=fancy", "--format", "json", cwd=catalog)
    (*_, gamma) = json.loads(ran.out)["spec"]["components"]
    assert gamma["values"] == {"fancy": True}


def test_graph(catalog: Path):
    text = bundlec("graph", "demo", cwd=catalog).out
    assert [line for line in text.splitlines() if "widgets.example.org" in line], text
    assert text.index("alpha") < text.index("beta") < text.index("gamma")
    assert bundlec("graph", "demo", "--format", "mermaid", cwd=catalog).out.startswith("flowchart ")
    assert bundlec("graph", "demo", "--format", "dot", cwd=catalog).out.startswith("digraph ")


def test_a_waiver_holds_for_every_command(catalog: Path):
    path, where = catalog / "bundlec.yaml", "components/gamma/component.yaml"
    rule = "  rules: [{id: a, severity: warning, that: {value: .some, exists: true}, message: nothing is set}]\n"
    (catalog / where).write_text((catalog / where).read_text() + rule)
    commands = (["build", "--all"], ["build", "--all", "--check"], ["graph", "demo"])
    assert all("[BC3006]" in bundlec(*words, cwd=catalog).err for words in commands)
    path.write_text(path.read_text() + f"  lint: {{waivers: [{{code: BC3006, where: {where}, reason: known}}]}}\n")
    bundlec("build", "--all", cwd=catalog)
    assert [bundlec(*words, cwd=catalog).err for words in commands] == ["", "", ""]


def test_verify_sees_modes(catalog: Path, tmp_path: Path):
    bundlec("build", "--all", "--out", str(tmp_path / "o"), cwd=catalog)
    (tmp_path / "o/demo/deploy.sh").chmod(0o644)
    (tmp_path / "o/demo/recipe.yaml").chmod(0o755)
    ran = bundlec("verify", "o/demo", cwd=tmp_path)
    assert ran.status == 1
    assert "deploy.sh is not executable, and was built so" in ran.err
    assert "recipe.yaml is executable, and was not built so" in ran.err
    assert "2 errors" in ran.err


def test_verify_of_garbage_is_one_error(catalog: Path, tmp_path: Path):
    bundlec("build", "--all", "--out", str(tmp_path / "o"), cwd=catalog)
    (tmp_path / "o/demo/checksums.txt").write_bytes(bytes(range(256)) * 100)
    ran = bundlec("verify", "o/demo", cwd=tmp_path)
    assert ran.status == 1
    assert "1 error" in ran.err
    assert "not a line of `sha256sum`" in ran.err


def test_verify_needs_no_sources(catalog: Path, tmp_path: Path):
    bundlec("build", "demo", "--out", tmp_path / "o", cwd=catalog)
    assert bundlec("verify", "o/demo", cwd=tmp_path) == Ran(0, "o/demo: checksums, files and order hold\n", "")
    widget = tmp_path / "o/demo/components/beta/manifests/widget-one.yaml"
    widget.write_text(widget.read_text().replace("size: 3", "size: 4"))
    (tmp_path / "o/demo/mine.txt").write_text("mine")
    ran = bundlec("verify", "o/demo", "nowhere", cwd=tmp_path)
    assert (ran.status, ran.out) == (1, "")
    assert [line.partition(" | ")[0] for line in told(ran.err)] == [
        "o/demo/mine.txt:1:1: [BC6003] mine.txt does not belong to the bundle",
        "o/demo/components/beta/manifests/widget-one.yaml:1:1: [BC6002] components/beta/manifests/widget-one.yaml is not what was built",
        "nowhere: [BC6004] no such folder",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# names, flags, usage


@pytest.mark.parametrize(
    ("arguments", "finding"),
    [
        (["build", "dmeo"], "[BC2001] there is no bundle and no recipe `dmeo` | did you mean `demo`?"),
        (["resolve", "laef"], "[BC2001] there is no bundle and no recipe `laef` | did you mean `leaf`?"),
        (["graph", "zzz"], "[BC2001] there is no bundle and no recipe `zzz` | `bundlec list` prints all of them"),
        (
            ["build", "base"],
            "overlays/base.yaml:1:1: [BC2001] `base` is no recipe: it takes no part in matching (it has no criteria, or `match: false`) | recipes that build on it: leaf",
        ),
        (
            ["resolve", "demo", "--profile", "mode=fanc"],
            "--profile mode=fanc: [BC2007] profile `mode` has no value `fanc` | did you mean `fancy`?",
        ),
        (
            ["graph", "demo", "--profile", "mod=fancy"],
            "--profile mod=fancy: [BC2007] the recipe has no profile `mod` | did you mean `mode`?",
        ),
        (
            ["build", "demo", "--profile", "mode=fancy"],
            "bundlec.yaml:6:7: [BC5003] --profile mode=fancy changes the content of bundle `demo` | give --out DIR, or write it into an entry of bundlec.yaml",
        ),
        (
            ["build", "demo", "--deployer", "flux", "--deployer", "helmfile"],
            "bundlec.yaml:6:7: [BC5003] --deployer flux --deployer helmfile changes the content of bundle `demo` | give --out DIR, or write it into an entry of bundlec.yaml",
        ),
        (
            ["-C", "nowhere", "list"],
            "[BC1210] there is no bundlec.yaml in nowhere | run bundlec inside a workspace, or name one with -C DIR",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_input_that_is_wrong(catalog: Path, arguments: list[str], finding: str):
    ran = bundlec(*arguments, cwd=catalog)
    assert (ran.status, ran.out, told(ran.err)) == (1, "", [finding])
    assert not (catalog / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build"], "Error: name bundles, or give --all"),
        (["build", "--all", "demo"], "Error: give names or --all, not both"),
        (["build", "demo", "--deployer", "flx"], "`flx` is none of deploy.sh, helmfile, argocd, flux; did you mean `flux`?"),
        (["build", "demo", "--profile", "mode"], "`mode` is not NAME=VALUE"),
        (["build", "demo", "--profile", "m=a", "--profile", "m=b"], "profile `m` is given twice, as `a` and as `b`"),
        (["build", "demo", "--out", ""], "the name is empty"),
        (["-C", "", "list"], "the name is empty"),
        (["list", "--format", "yaml"], "'yaml' is not one of 'text', 'json'"),
        (["lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["verify"], "Missing argument 'DIR...'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_usage(catalog: Path, arguments: list[str], message: str):
    ran = bundlec(*arguments, cwd=catalog)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
    assert not (catalog / "out").exists()


def test_several_unknown_names_are_told_together(catalog: Path):
    assert [line.partition(" | ")[0] for line in told(bundlec("build", "a", "demo", "b", cwd=catalog).err)] == [
        "[BC2001] there is no bundle and no recipe `a`",
        "[BC2001] there is no bundle and no recipe `b`",
    ]
    assert not (catalog / "out").exists()


def test_a_workspace_is_found_above(catalog: Path):
    inner = catalog / "components/alpha"
    assert bundlec("list", cwd=inner).out == bundlec("list", cwd=catalog).out
    assert bundlec("build", "demo", cwd=inner).status == 0
    assert (catalog / "out/demo/bundle.yaml").is_file()


def test_no_workspace(tmp_path: Path):
    fix = "run bundlec inside a workspace, or name one with -C DIR"
    ran = bundlec("build", "--all", cwd=tmp_path)
    assert told(ran.err) == [f"[BC1210] there is no bundlec.yaml in {tmp_path} or above | {fix}"]
    assert ran.status == 1


def test_a_folder_that_is_gone(tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os, sys; os.rmdir({str(gone)!r}); from compiler.cli import main; sys.exit(main(['list']))"
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=gone, env={"PYTHONPATH": root}, capture_output=True, check=False
    )
    assert (done.returncode, told(done.stderr.decode())) == (
        1,
        ["[BC1210] the current folder cannot be read: No such file or directory | change to a folder that exists"],
    )


# ---------------------------------------------------------------------------------------------------------------------
# text for people


def test_a_finding_shows_its_line(catalog: Path):
    write_catalog(catalog, {LEAF: replaced("[tuned, extra]", "[tund, extra]")})
    ran = bundlec("list", cwd=catalog / "overlays")
    assert ran.err == (
        "leaf.yaml:7:12: [BC1204] unknown mixin `tund`\n"
        "    7 |   mixins: [tund, extra]\n"
        "      |            ^\n"
        "  fix: did you mean `tuned`?\n"
        "\n"
        "1 error\n"
    )


def test_files_are_shown_from_where_we_are(catalog: Path, tmp_path: Path):
    write_catalog(catalog, {LEAF: replaced("[tuned, extra]", "[tund, extra]")})
    assert bundlec("-C", "w", "list", cwd=tmp_path).err.startswith("w/overlays/leaf.yaml:7:12: ")
    assert bundlec("-C", catalog, "list", cwd=Path("/")).err.startswith(
        f"{catalog}/overlays/leaf.yaml:7:12: ".lstrip("/")
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert bundlec("-C", catalog, "list", cwd=elsewhere).err.startswith(f"{catalog}/overlays/leaf.yaml:7:12: ")


def test_thousands_of_findings(catalog: Path):
    """A file of another kind: the first hundred are shown, all are counted, and machines get all."""
    write_catalog(catalog, {"components/alpha/values.yaml": "".join(f"k{n}: yes\n" for n in range(3000))})
    ran = bundlec("list", cwd=catalog)
    assert len(told(ran.err)) == 100
    assert ran.err.endswith("\n\n... and 2900 more\n\n3000 errors\n")
    assert len(json.loads(bundlec("list", "--format", "json", cwd=catalog).out)["diagnostics"]) == 3000


def test_a_long_line_is_cut_around_the_place(catalog: Path):
    line = "  description: " + "x" * 5000 + "\n"
    write_catalog(
        catalog, {LEAF: FILES[LEAF].replace("spec:\n", "spec: {a: [" + "1, " * 3000 + "'é\x85', yes]}\n" + line)}
    )
    ran = bundlec("list", cwd=catalog)
    assert all(len(row) <= 140 for row in ran.err.splitlines()), ran.err


def test_control_characters_do_not_reach_the_terminal(catalog: Path):
    write_catalog(catalog, {LEAF: replaced("name: leaf", 'name: "le\\u001b[31maf"')})
    assert "\x1b" not in bundlec("list", cwd=catalog).err


@pytest.mark.parametrize("wide", ["日本語", "e\u0301e\u0301e\u0301", "\t\t"])
def test_the_caret_stands_below_its_place(catalog: Path, wide: str):
    write_catalog(catalog, {LEAF: replaced("base: base", f'{{"{wide}": yes}}')})
    _, line, caret = bundlec("list", cwd=catalog).err.splitlines()[:3]
    cells = {"日": 2, "本": 2, "語": 2, "\u0301": 0}
    before = line[: line.index("yes")]
    if "\t" in wide:
        assert caret.rstrip("^").replace("|", "").count("\t") == 2
    else:
        assert len(caret) - 1 == sum(cells.get(c, 1) for c in before)


@pytest.mark.parametrize(
    ("terminal", "env", "coloured"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_colours(catalog: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool, env: dict[str, str], coloured: bool):
    from tests.support import scratch

    if terminal:
        real = scratch._Stream
        monkeypatch.setattr(scratch, "_Stream", type("_Tty", (real,), {"isatty": lambda self: True}))
    write_catalog(catalog, {LEAF: replaced("[tuned, extra]", "[tund, extra]")})
    ran = bundlec("list", cwd=catalog, **{"TERM": "xterm", "NO_COLOR": "", **env})
    assert ("\x1b[" in ran.err) is coloured
    assert "unknown mixin `tund`" in ran.err


def test_a_warning_is_printed_once_and_stops_nothing(catalog: Path):
    """case 12: a key whose children are all commented out."""
    empty = "    - name: gamma\n      overrides:\n        driver:\n          # enabled: true\n"
    write_catalog(
        catalog,
        {
            "bundlec.yaml": appended("    - {name: two, recipe: leaf}\n"),
            "components/gamma/values.yaml": "driver: {enabled: true}\n",
            LEAF: replaced("    - name: gamma\n", empty),
        },
    )
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran.status == 0
    assert [line.partition(" | ")[0] for line in told(ran.err)] == [
        "overlays/leaf.yaml:16:16: warning: [BC1208] `driver` has no value but comments below it: it is null and deletes what it inherits"
    ]


# ---------------------------------------------------------------------------------------------------------------------
# streams, signals, bugs


def test_results_for_machines_also_when_the_input_is_wrong(catalog: Path):
    write_catalog(catalog, {LEAF: replaced("[tuned, extra]", "[tund, extra]")})
    ran = bundlec("build", "--all", "--format", "json", cwd=catalog)
    assert ran.status == 1
    assert json.loads(ran.out) == {
        "diagnostics": [
            {
                "code": "BC1204",
                "severity": "error",
                "message": "unknown mixin `tund`",
                "file": "overlays/leaf.yaml",
                "line": 7,
                "column": 12,
                "fix": "did you mean `tuned`?",
                "notes": [],
            }
        ]
    }


def test_a_reader_that_goes_away_changes_nothing(catalog: Path):
    """`bundlec build --all | head -0`: all bundles are written, and the status is that of the work."""
    write_catalog(catalog, {"bundlec.yaml": appended("    - {name: two, recipe: leaf}\n")})
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "compiler.cli", "build", "--all"]
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        command, cwd=catalog, env={"PYTHONPATH": root}, stdout=write, stderr=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(p.name for p in (catalog / "out").iterdir()) == ["demo", "two"]
    (catalog / "out/two/README.md").unlink()
    done = subprocess.run(
        [*command, "--check"], cwd=catalog, env={"PYTHONPATH": root}, stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_output_that_cannot_be_written(catalog: Path):
    root = str(Path(__file__).resolve().parents[2])
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "compiler.cli", "list"]
        done = subprocess.run(
            command, cwd=catalog, env={"PYTHONPATH": root}, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"[BC5002] standard output cannot be written: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("coding", ["ascii", "latin-1"])
def test_any_text_on_any_terminal(catalog: Path, coding: str):
    write_catalog(catalog, {LEAF: appended("  description: Größe 日本\n")})
    done = process("resolve", "demo", cwd=catalog, LC_ALL="C", PYTHONIOENCODING=coding, PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Größe 日本" in done.stdout.decode()
    write_catalog(catalog, {LEAF: replaced("[tuned, extra]", "[tünd, extra]")})
    done = process("list", cwd=catalog, LC_ALL="C", PYTHONIOENCODING=coding, PYTHONUTF8="0")
    assert done.returncode == 1
    assert b"nd` is not valid" in done.stderr
    assert b"Traceback" not in done.stderr


def test_interrupt_while_reading(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "read_catalog", interrupted)
    assert bundlec("build", "--all", cwd=catalog) == Ran(130, "", "\ninterrupted\n")


def test_interrupt_of_the_process(catalog: Path):
    """Ctrl-C while another build holds the lock of out/: status 130, nothing written, nothing left behind."""
    (catalog / "out").mkdir()
    lock = os.open(catalog / "out", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    root = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; from compiler import cli; print('up', flush=True); sys.exit(cli.main(['build', '--all']))"],
        cwd=catalog, env={"PYTHONPATH": root}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1.5)  # it waits for the lock by now
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    os.close(lock)
    assert (running.returncode, out, err) == (130, b"", b"\ninterrupted\n")
    assert list((catalog / "out").iterdir()) == []


def test_a_bug_of_ours(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(pipeline, "compile_bundle", broken)
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran == Ran(
        3,
        "",
        "bundlec: internal error: ZeroDivisionError: division by zero\n"
        "This is a bug of bundlec, not of your input. BUNDLEC_DEBUG=1 shows where it happened.\n",
    )
    with pytest.raises(ZeroDivisionError):
        bundlec("build", "--all", cwd=catalog, BUNDLEC_DEBUG="1")


# ---------------------------------------------------------------------------------------------------------------------
# help and completion


def test_every_command_and_option_has_help():
    for name, command in sorted(cli.commands.items()):
        assert command.help, name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}"


def test_help_and_version(tmp_path: Path):
    ran = bundlec("--help", cwd=tmp_path)
    assert (ran.status, ran.err) == (0, "")
    assert "bundlec [OPTIONS] COMMAND" in ran.out
    assert bundlec("--version", cwd=tmp_path).out == "bundlec, version 0.1.0\n"


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("bundlec bu", ["build"]),
        ("bundlec build ", ["demo", "leaf"]),
        ("bundlec graph d", ["demo"]),
        ("bundlec build --deployer ", ["deploy.sh", "helmfile", "argocd", "flux"]),
        ("bundlec resolve demo --format ", ["yaml", "json"]),
    ],
)
def test_completion(catalog: Path, words: str, completions: list[str]):
    count = len(words.split()) - (not words.endswith(" "))
    done = process(cwd=catalog, _BUNDLEC_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(count))
    assert [line.partition(",")[2] for line in done.stdout.decode().splitlines()] == completions
    assert done.stderr == b""


def test_completion_says_nothing_in_a_broken_catalog(catalog: Path):
    write_catalog(catalog, {LEAF: "["})
    done = process(cwd=catalog, _BUNDLEC_COMPLETE="bash_complete", COMP_WORDS="bundlec build ", COMP_CWORD="2")
    assert (done.stdout.strip(), done.stderr) == (b"", b"")
