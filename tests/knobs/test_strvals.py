"""`--set` is typed and split exactly as Helm does it (case 9), compared with Helm 3 and Helm 4 themselves."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.resolve import strvals

# What a value is typed as. The right column is what Helm 3 and 4 were seen to do; the test below asks them again.
TYPED: list[tuple[str, Any]] = [
    ("570.10", "570.10"),
    ("1.10", "1.10"),
    ("0755", "0755"),
    ("0o755", "0o755"),
    ("00", "00"),
    ("0", 0),
    ("-0", 0),
    ("+5", 5),
    ("-5", -5),
    ("08", "08"),
    ("1e3", "1e3"),
    ("0x1f", "0x1f"),
    ("1_000", "1_000"),
    ("12345678", 12345678),
    ("9223372036854775807", 9223372036854775807),
    ("9223372036854775808", "9223372036854775808"),
    ("-9223372036854775808", -9223372036854775808),
    ("true", True),
    ("True", True),
    ("FALSE", False),
    ("yes", "yes"),
    ("no", "no"),
    ("on", "on"),
    ("y", "y"),
    ("null", None),
    ("NULL", None),
    ("~", "~"),
    ("", ""),
    (" 5", " 5"),
    ("5 ", "5 "),
    ("2024-01-01", "2024-01-01"),
    ("22:22", "22:22"),
    ("a=b", "a=b"),
    ("{}", [""]),
    ("{1,x,true,null,007}", [1, "x", True, None, "007"]),
    ("{a b,c\\,d}", ["a b", "c,d"]),
    ("{x,}", ["x", ""]),
    ("{x,{y}", ["x", "{y"]),
    ("a\\,b", "a,b"),
    ("a\\\\b", "a\\b"),
    ("5\\", 5),
    ("#x", "#x"),
    ("${HOME}", "${HOME}"),
    ('"q"', '"q"'),
    ("\u00fc\u4f60", "\u00fc\u4f60"),
    ("\u0664", "\u0664"),  # a digit, but none of Helm's
]

# Whole texts: paths, lists by index, several assignments.
TEXTS = [
    "a.b.c=1,a.b.d=x",
    "a=1,b=2,",
    "a[0]=x,a[1]=y",
    "a[0].b=1,a[0].c=2",
    "a[0][0]=x,a[0][1]=2",
    "a.b[0].c={p,q},a.d=null",
    "a\\.b=1,c\\.d\\.e.f=2",
    "nodeSelector.kubernetes\\.io/os=linux",
    "a\\[0\\]=x",
    "a[+0]=x",
    "a={b},c=1",
    "a= x,b",
    "a.b",
    "a",
    "=x",
    "a[x]=1",
    "a[-1]=1",
    "a[0]x=1",
    "a[0=1",
    "a={b",
    "",
    ",",
    "a,b=1",
    "a[70000]=x",
]


def tree(assignments: strvals.Assignments) -> Any:
    """The assignments of one text put together as Helm does it."""

    def put(node: Any, path: Any, value: Any) -> Any:
        if not path:
            return value
        step = path[0]
        if isinstance(step, int):
            items = list(node or [])
            items += [None] * (step + 1 - len(items))
            items[step] = put(items[step], path[1:], value)
            return items
        return {**(node or {}), step: put((node or {}).get(step), path[1:], value)}

    found: Any = {}
    for path, value in assignments:
        found = put(found, path, value)
    return found


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """A chart that prints its values."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: probe, version: 0.1.0}")
    (tmp_path / "templates/all.yaml").write_text("values: {{ toJson .Values | b64enc }}\n")
    return tmp_path


def asked(helm: Path, probe: Path, *arguments: str) -> Any:
    """The values that Helm makes of its flags; None when it refuses them."""
    command = [str(helm), "template", "x", str(probe), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        return None
    return json.loads(base64.b64decode(done.stdout.partition("values: ")[2]))


@pytest.mark.parametrize(("text", "value"), TYPED)
def test_types(text: str, value: Any) -> None:
    """case 9"""
    ((path, got),) = strvals.parse(f"a.b={text}")
    assert path == ("a", "b")
    assert (type(got), got) == (type(value), value)


@pytest.mark.tools
def test_helm_types_the_same(helm: Path, probe: Path) -> None:
    """case 9: one call with every value of the table."""
    flags = [word for number, (text, _) in enumerate(TYPED) for word in ("--set", f"c{number}.b={text}")]
    said = asked(helm, probe, *flags)
    assert said == {f"c{number}": {"b": value} for number, (_, value) in enumerate(TYPED)}


@pytest.mark.tools
@pytest.mark.parametrize("text", TEXTS)
def test_helm_splits_the_same(helm: Path, probe: Path, text: str) -> None:
    said = asked(helm, probe, "--set", text)
    try:
        ours = tree(strvals.parse(text))
    except ValueError:
        # Helm drops an assignment to an empty key in silence; here nothing is dropped.
        assert said in (None, {})
        return
    assert ours == said


@pytest.mark.tools
def test_helm_reads_the_same_json(helm: Path, probe: Path) -> None:
    text = 'a.b={"x": [1, null, "1e3"], "y": true},c=[1,2],d[0].e="q,r"'
    assert tree(strvals.parse_json(text)) == asked(helm, probe, "--set-json", text)
    whole = '{"a": {"b": 1}, "c": [{"d": null}]}'
    if helm.name == "helm4":  # Helm 3 takes assignments only
        assert tree(strvals.parse_json(whole)) == asked(helm, probe, "--set-json", whole)


@pytest.mark.parametrize(
    "text",
    ["a", "a=", "a={", "a=1 2", "a=NaN", 'a={"x":1,"x":2}', "{", '{"a":1} x', "a=Infinity", "", "a=" + "[" * 9999],
)
def test_json_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        strvals.parse_json(text)


@pytest.mark.tools
def test_helm_reads_the_same_files(helm: Path, probe: Path, tmp_path: Path) -> None:
    (tmp_path / "one,two.txt").write_text("line: 1\nnull\n")
    escaped = f"{tmp_path}/one\\,two.txt"
    read = strvals.parse_file(f"a.b={escaped},c={escaped}", lambda name: Path(name).read_text())
    assert tree(read) == asked(helm, probe, "--set-file", f"a.b={escaped},c={escaped}")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab01.,=[]{}\\ n", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = strvals.parse(text)
    except ValueError:
        return
    for path, _ in found:
        assert path
        assert all(step or step == 0 for step in path)
