"""Values from the command line: who wins, what is refused, and what Helm makes of the outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import emit, payload
from compiler.errors import UserError
from compiler.model import Flags
from compiler.plan import plan
from compiler.resolve import entry_for, resolve, strvals
from compiler.yamlio import dump
from tests.knobs.test_strvals import TYPED, asked, probe  # noqa: F401 - a fixture
from tests.support.scratch import bundlec
from tests.support.workspaces import catalog, findings, pointed, the_finding

OVERLAY = """
criteria: {service: eks}
componentRefs:
  - name: one
    overrides: {list: [{name: p, num: 1}, {name: q}], map: {a: 1, b: {c: 2}}, text: x}
  - {name: dark, enabled: false}
  - {name: bare}
"""
FILES = {
    "overlays/eks.yaml": OVERLAY,
    "components/one": "aliases: [uno]\nchartDefaults: [affinity.node]\nlockedPaths: [{path: nameOverride, reason: checks}]",
    "components/one/values.yaml": "map: {own: true}\n",
    "components/dark": "",
    "components/bare/component.yaml": "namespace: {name: bare}\nmanifestValues: [size]",
}


def flags(*given: str, json_: tuple[str, ...] = ()) -> Flags:
    """Flags as the command line makes them."""
    said: list[Any] = []
    for parse, texts in ((strvals.parse_json, json_), (strvals.parse, given)):
        for text in texts:
            component, _, assigned = text.partition(":")
            said += [(component, path, value) for path, value in parse(assigned)]
    return Flags(set=tuple(said))


def values(root: Path, *given: str, json_: tuple[str, ...] = ()) -> Any:
    found = catalog(root, FILES)
    return resolve(found, entry_for(found, "eks"), flags(*given, json_=json_)).components["one"].chart_values


def test_maps_merge_and_nothing_else_changes(tmp_path: Path) -> None:
    found = catalog(tmp_path, FILES)
    entry = entry_for(found, "eks")
    before = resolve(found, entry, Flags()).components["one"].chart_values
    after = resolve(found, entry, flags("one:map.b.d=3")).components["one"].chart_values
    assert after == {**before, "map": {"own": True, "a": 1, "b": {"c": 2, "d": 3}}}


def test_by_alias_in_any_case(tmp_path: Path) -> None:
    assert values(tmp_path, "UNO:text=y")["text"] == "y"


def test_null_deletes(tmp_path: Path) -> None:
    after = values(tmp_path, "one:map.b=null,affinity.node=null")
    assert after["map"] == {"own": True, "a": 1}
    assert after["affinity"] == {"node": None}


def test_the_deeper_path_wins_in_either_order(tmp_path: Path) -> None:
    deep = "one:map.b.c=9"
    for given in ((deep, 'one:map.b={"c": 1, "z": 1}'), ('one:map.b={"c": 1, "z": 1}', deep)):
        said = [(*text.partition(":")[::2],) for text in given]
        assigned = [(c, p, v) for c, t in said for p, v in (strvals.parse_json if "{" in t else strvals.parse)(t)]
        found = catalog(tmp_path, FILES)
        got = resolve(found, entry_for(found, "eks"), Flags(set=tuple(assigned)))
        assert got.components["one"].chart_values["map"]["b"] == {"c": 9, "z": 1}


def test_of_two_equal_paths_the_later_wins(tmp_path: Path) -> None:
    assert values(tmp_path, "one:text=a", "one:text=b")["text"] == "b"


def test_an_item_of_a_list(tmp_path: Path) -> None:
    after = values(tmp_path, "one:list[0].num=5,list[1].name=r", "one:list[2].name=s", "one:new[0]=a,new[1].b=1")
    assert after["list"] == [{"name": "p", "num": 5}, {"name": "r"}, {"name": "s"}]
    assert after["new"] == ["a", {"b": 1}]
    # As Helm has it, in whichever order they come: the items that others set first are no gap.
    for given in (
        ("one:new[1].b=1,new[0]=a",),
        ("one:new[1].b=1", "one:new[0]=a"),
        ("one:new[1]={x}", "one:new[0].b.c=a"),
    ):
        assert len(values(tmp_path, *given)["new"]) == 2
    # The sources are as they were.
    assert values(tmp_path)["list"] == [{"name": "p", "num": 1}, {"name": "q"}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("one:text.deeper=1",), ["is a scalar (overlay eks)", "becomes a map"]),
        (("one:map=1",), ["is a map (overlay eks)", "becomes a scalar", "--set-json"]),
        (("one:list=x",), ["is a list", "--set-json"]),
        (("one:n.b=1", "one:n=2"), ["`one:n` is a scalar", "becomes a map"]),
        (("one:n=2", "one:n.b=1"), ["`one:n` is a scalar", "becomes a map"]),
        (("one:n[0]=2", "one:n.b=1"), ["`one:n`", "list", "map"]),
        (("one:list[0]=x",), ["`one:list[0]` is a map", "scalar"]),
        (("one:list[0].name.x=1",), ["`one:list[0].name` is a scalar", "map"]),
        (("one:map[0]=1",), ["`one:map` is a map", "list"]),
    ],
)
def test_case_15_values_of_another_type(tmp_path: Path, given: tuple[str, ...], words: list[str]) -> None:
    one = the_finding(catalog(tmp_path, FILES), "eks", "BC2005", flags(*given))
    said = f"{one.message} {one.fix}"
    assert all(word in said for word in words), said
    assert str(one.span).startswith("<--set one:")


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ("onne:x=1", "BC2006", ["`onne` is no component", "did you mean `one`?"]),
        ("onee:enabled=false", "BC2006", ["`onee`", "did you mean `one`?"]),
        ("dark:x=1", "BC2006", ["sets values of `dark`", "switched off already (overlay eks)"]),
        ("dark:enabled=true", "BC2015", ["`dark` is switched off"]),
        ("one:enabled=perhaps", "BC1102", ["true or false"]),
        ("bare:sise=1", "BC2006", ["none of its manifests reads `sise`", "did you mean `size`?"]),
        ("one:nothing=null", "BC2009", ["deletes nothing"]),
        ("one:nameOverride=x", "BC2014", ["locked: checks"]),
        ("one:list[4]=x", "BC2006", ["has 2 items", "the next index is 2"]),
    ],
)
def test_case_58_an_override_that_can_take_no_effect(tmp_path: Path, given: str, code: str, words: list[str]) -> None:
    one = the_finding(catalog(tmp_path, FILES), "eks", code, flags(given))
    said = f"{one.message} | {one.fix}"
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("one:textt=1", "text"),
        ("one:map.wrongg.c=1", "map.wrong"),
        ("one:affinity.nodes=1", "affinity.node"),
        # What is no slip of the pen: another word, a sibling by number, what lies deeper.
        ("one:replicas=3", None),
        ("one:map.wrong2.c=1", None),
        ("one:map.wrong.deeper=1", None),
    ],
)
def test_case_58_a_value_that_looks_like_a_misspelt_one(tmp_path: Path, given: str, meant: str | None) -> None:
    """The chart may read it, so it is a warning; `bundlec lint` fails on those of a bundle's entry."""
    found = catalog(tmp_path, {**FILES, "components/one/values.yaml": "map: {own: true, wrong: {c: 1}}\n"})
    told = [d for d in resolve(found, entry_for(found, "eks"), flags(given)).warnings if d.code == "BC2018"]
    assert [d.fix for d in told] == ([f"did you mean `{meant}`?"] if meant else [])


def test_a_component_is_switched_off(tmp_path: Path) -> None:
    found = catalog(tmp_path, FILES)
    for given in ("one:enabled=false", "uno:enabled=False", "one:install=false"):
        assert not resolve(found, entry_for(found, "eks"), flags(given)).components["one"].enabled
    assert [d.code for d in findings(found, "eks", flags("one:enabled=false,text=y"))] == ["BC2006"]


PROFILE = """
criteria: {service: eks}
componentRefs: [{name: one}]
profile:
  name: mode
  default: a
  values:
    a: {advertiser: x, constraints: [{name: k, value: "1"}], componentRefs: [{name: one, overrides: {who: {it: a}}}]}
    b: {advertiser: x, constraints: [{name: k, value: "2"}], componentRefs: [{name: one, overrides: {who: {it: b}}}]}
"""


def test_a_path_of_the_profile_is_locked_and_the_same_value_is_not(tmp_path: Path) -> None:
    found = catalog(tmp_path, {**FILES, "overlays/eks.yaml": PROFILE})
    entry = entry_for(found, "eks")
    assert resolve(found, entry, flags("one:who.it=a")).components["one"].values["who"] == {"it": "a"}
    for given in ("one:who.it=b", "one:who=null", "one:who.it.x=1"):
        assert "BC2008" in {d.code for d in findings(found, "eks", flags(given))}, given
    assert [d.code for d in findings(found, "eks", flags("one:enabled=false"))] == ["BC2008"]


def test_the_entry_and_the_flag_name_their_place(tmp_path: Path) -> None:
    files = {**FILES, "bundlec.yaml": "bundles:\n  - name: b\n    recipe: eks\n    set:\n      uno: {map: 7}"}
    one = the_finding(catalog(tmp_path, files), "b", "BC2005")
    assert pointed(tmp_path, one.span) == "bundlec.yaml: 7}"


def test_one_component_by_two_of_its_names(tmp_path: Path) -> None:
    """There is no telling which of two keys of a mapping wins."""
    files = {**FILES, "bundlec.yaml": "bundles: [{name: b, recipe: eks, set: {one: {text: a}, UNO: {text: b}}}]"}
    one = the_finding(catalog(tmp_path, files), "b", "BC1203")
    assert one.message == "`set` names the component `one` twice"
    assert pointed(tmp_path, one.span).startswith("bundlec.yaml: UNO")


@pytest.mark.tools
def test_helm_gets_from_a_bundle_what_its_own_set_gives(helm: Path, tmp_path: Path, probe: Path) -> None:  # noqa: F811
    """cases 1, 2, 4, 5, 9: odd values through --set, through our YAML, through Helm; and Helm alone."""
    refused = {"9223372036854775807", "-9223372036854775808"}  # beyond 2**53: JSON readers round them
    odd = [text for text, value in TYPED if text not in refused and value is not None and "null" not in text]
    given = [f"c{number}.b={text}" for number, text in enumerate(odd)]
    found = catalog(tmp_path / "w", {"overlays/eks.yaml": "{criteria: {service: eks}, componentRefs: [{name: one}]}",
                                     "components/one": ""})  # fmt: skip
    planned = plan(resolve(found, entry_for(found, "eks"), flags(*(f"one:{text}" for text in given))))
    written = tmp_path / "values.yaml"
    written.write_bytes(payload.emit(planned)["components/one/values.yaml"])
    ours = asked(helm, probe, "--values", str(written))
    assert ours == asked(helm, probe, *(word for text in given for word in ("--set", text)))


@pytest.mark.tools
def test_helm_gets_from_an_overlay_what_the_same_values_file_gives(
    helm: Path,
    tmp_path: Path,
    probe: Path,  # noqa: F811
) -> None:
    """cases 1, 2, 3, 5, 6, 13: the text of the overlay's overrides, given to Helm as a values file."""
    quoted = ["72225e2", "1e3", "5319E7", "08", "009", "0o755", "0755", "y", "n", "on", "22:22", "12:30", "1.10", "25.10",
              "2024-01-01", "null", "~", "", " x ", "true", "a: b", "# c", "1_000", "0x1f", ".inf", "=", "<<"]  # fmt: skip
    plain = ["12345678", "true", "false", "[]", "{}", "1.5", "-7", "0", "x y"]
    lines = [f"q{n}: {json.dumps(text)}" for n, text in enumerate(quoted)]
    lines += [f"p{n}: {text}" for n, text in enumerate(plain)]
    lines += [f"{json.dumps(key)}: key" for key in ("y", "n", "1e3", "on", "08")]
    written = tmp_path / "plain.yaml"
    written.write_text("\n".join(lines) + "\n")
    overrides = "\n".join(f"      {line}" for line in lines)
    overlay = f"criteria: {{service: eks}}\ncomponentRefs:\n  - name: one\n    overrides:\n{overrides}\n"
    found = catalog(tmp_path / "w", {"overlays/eks.yaml": overlay, "components/one": ""})
    planned = plan(resolve(found, entry_for(found, "eks"), Flags()))
    emitted = tmp_path / "values.yaml"
    emitted.write_bytes(payload.emit(planned)["components/one/values.yaml"])
    assert asked(helm, probe, "--values", str(emitted)) == asked(helm, probe, "--values", str(written))


DEFAULTS = "a: {b: 1, c: {d: x, e: z}}\nlist: [p, q]\ntext: chart\nup: true\nzero: 0\n"
OVER_DEFAULTS = [
    # case 11: a null over a default of the chart
    ("--set", "text=null"),
    ("--set", "a.b=null"),
    ("--set", "a.c=null"),
    ("--set", "list=null"),
    ("--set", "a.c.d=null,a.c.f=1"),
    ("--set-json", 'a={"c": null, "g": 1}'),
    ("--set-json", 'a={"c": {"d": null}},list=[]'),
    # case 13: what is falsy
    ("--set", "up=false"),
    ("--set", "text="),
    ("--set", "list={}"),
    ("--set", "a.b=0,zero=false"),
    ("--set-json", 'list=[],text="",up=false,zero=null'),
    # case 9: what looks like something else
    ("--set", "a.c.d=0755,text=1e3,a.c.e=yes"),
    ("--set-string-like", 'text="null",a.b="true"'),
    ("--set-json", 'a.b=1.5,list=[1,true,"null"]'),
    ("--set-file", "text=FILE,a.c.d=FILE"),
]


@pytest.mark.tools
@pytest.mark.parametrize(("option", "text"), OVER_DEFAULTS)
def test_over_the_defaults_of_a_chart_helm_gets_what_its_own_flags_give(
    helm: Path,
    tmp_path: Path,
    probe: Path,  # noqa: F811
    option: str,
    text: str,
) -> None:
    """cases 9, 11, 13: `bundlec build --set ...`, then Helm with the emitted file; and Helm with the same flag."""
    (probe / "values.yaml").write_text(DEFAULTS)
    (tmp_path / "note").write_text("007\n")
    option, text = option.replace("--set-string-like", "--set-json"), text.replace("FILE", f"{tmp_path}/note")
    leaves = "[a.b, a.c.d, a.c.e, list, text, up, zero]"
    overlay = "{criteria: {service: eks}, componentRefs: [{name: one}]}"
    catalog(tmp_path / "w", {"overlays/eks.yaml": overlay, "components/one": f"chartDefaults: {leaves}"})
    given = ("--deployer", "deploy.sh", "--out", str(tmp_path / "o"), option, f"one:{text}")
    ran = bundlec("build", "eks", *given, cwd=tmp_path / "w")
    assert ran.status == 0, ran.err
    emitted = tmp_path / "o/eks/components/one/values.yaml"
    assert asked(helm, probe, "--values", str(emitted)) == asked(helm, probe, option, text)


@pytest.mark.tools
@pytest.mark.parametrize(
    "overrides",
    [
        "{text: null}",
        "{a: {c: null}}",
        "{a: {c: {d: null}}, list: []}",
        "{up: false, text: '', zero: 1}",
        "{list: [x], a: {b: '0755'}}",
        "{a: {c: {}}, list: null}",
        "{text: '1e3', 'y': 'n', a: {'on': 'off'}}",
    ],
)
def test_over_the_defaults_of_a_chart_helm_gets_what_the_same_file_gives(
    helm: Path,
    tmp_path: Path,
    probe: Path,  # noqa: F811
    overrides: str,
) -> None:
    """cases 2, 4, 11, 13, through an overlay."""
    (probe / "values.yaml").write_text(DEFAULTS)
    overlay = f"{{criteria: {{service: eks}}, componentRefs: [{{name: one, overrides: {overrides}}}]}}"
    leaves = "[a.b, a.c.d, a.c.e, list, text, up, zero]"
    files = {"overlays/eks.yaml": overlay, "components/one": f"chartDefaults: {leaves}"}
    found = catalog(tmp_path / "w", files)
    emitted, plain = tmp_path / "emitted.yaml", tmp_path / "plain.yaml"
    planned = plan(resolve(found, entry_for(found, "eks"), Flags()))
    emitted.write_bytes(payload.emit(planned)["components/one/values.yaml"])
    plain.write_text(overrides)
    assert asked(helm, probe, "--values", str(emitted)) == asked(helm, probe, "--values", str(plain))


def test_case_8_nothing_is_shared_in_the_output(tmp_path: Path) -> None:
    toleration = '[{"key": "k", "operator": "Exists"}]'
    after = values(tmp_path, json_=(f"one:a.t={toleration},b.t={toleration}",))
    assert "&id" not in dump(after)
    assert "*id" not in dump(after)


def test_a_flag_needs_its_own_folder(tmp_path: Path) -> None:
    from tests.support.scratch import write_catalog

    root = write_catalog(tmp_path / "w")
    assert bundlec("build", "demo", cwd=root).status == 0
    ran = bundlec("build", "demo", "--set", "alpha:replicas=9", cwd=root)
    assert ran.status == 1
    assert "[BC5003] --set alpha:replicas changes the content" in ran.err
    assert "--out" in ran.err


@pytest.mark.parametrize(
    ("given", "where", "words"),
    [
        (flags("one:big=9007199254740993"), "--set one:big", "`one:big`: integers beyond 2^53"),
        (flags("one:list[0].num=9007199254740993"), "--set one:list[0].num", "`one:list[0].num`: integers beyond"),
        (flags(json_=('one:x={"y":[1e999]}',)), "--set one:x", "`one:x.y[0]`: JSON has no infinity"),
    ],
)
def test_a_number_that_no_values_file_holds(tmp_path: Path, given: Flags, where: str, words: str) -> None:
    """Found at the flag, before a writer finds it and knows no more than the bundle."""
    found = catalog(tmp_path, FILES)
    finding = the_finding(found, entry_for(found, "eks"), "BC1004", given)
    assert finding.span is not None
    assert finding.span.file == f"<{where}>"
    assert finding.message.startswith(words)


def test_values_that_fit_no_config_map_are_those_of_whoever_set_the_largest(tmp_path: Path) -> None:
    workspace = "git: {url: 'https://git.example.com/x.git', revision: main}\nbundles: [{name: eks, recipe: eks}]\n"
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": workspace})
    given = Flags(deployers=("flux",), set=(("one", ("map", "b", "text"), "x" * 1_100_000),))
    with pytest.raises(UserError) as caught:
        emit(plan(resolve(found, entry_for(found, "eks"), given)))
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.span and finding.span.file) == ("BC4004", "<--set one:map.b.text>")
    assert "the largest is `map.b.text`" in finding.message
