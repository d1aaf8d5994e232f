"""The helper that reads documents."""

from __future__ import annotations

from tests.docs.markdown import Block, blocks, commands, links, under

TEXT = """\
# One

```sh
a  # comment
cat > x <<'END'
not a command
END
b \\
  c
```

## Two [link](x.md#y)

```yaml
a: 1
```

## Three

```sh
d
```
"""


def test_blocks_with_their_headings_and_lines():
    assert [(b.kind, b.headings, b.line) for b in blocks(TEXT)] == [
        ("sh", ("One",), 4),
        ("yaml", ("One", "Two [link](x.md#y)"), 15),
        ("sh", ("One", "Three"), 21),
    ]
    assert [b.text for b in under(TEXT, "Three")] == ["d\n"]
    assert [b.text for b in under(TEXT, "One", "yaml")] == ["a: 1\n"]


def test_commands():
    assert commands(blocks(TEXT)[0]) == ["a", "cat > x <<'END'", "b    c"]
    assert commands(Block("sh", "# only a comment\n", (), 1)) == []


def test_links():
    assert links(TEXT) == ["x.md#y"]
