"""Reading the documents of the project."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """A fenced block: what kind it says it is, its text, the headings above it, and its first line in the document."""

    kind: str
    text: str
    headings: tuple[str, ...]
    line: int


def blocks(document: str) -> list[Block]:
    """The fenced blocks of a Markdown document, in order."""
    found: list[Block] = []
    headings: list[tuple[int, str]] = []
    kind, lines, start = "", [], 0
    for number, line in enumerate(document.splitlines(), 1):
        if line.startswith("```"):
            if start:
                found.append(Block(kind, "\n".join(lines) + "\n", tuple(text for _, text in headings), start))
                start = 0
            else:
                kind, lines, start = line[3:].strip(), [], number + 1
        elif start:
            lines.append(line)
        elif match := re.match(r"(#+) (.*)", line):
            level = len(match[1])
            headings = [*(h for h in headings if h[0] < level), (level, match[2].strip())]
    assert not start, f"the block that begins on line {start} does not end"
    return found


def under(document: str, heading: str, kind: str = "sh") -> list[Block]:
    """The blocks of a kind below a heading."""
    return [block for block in blocks(document) if block.kind == kind and heading in block.headings]


def commands(block: Block) -> list[str]:
    """The commands of a shell block: here-documents and comments left out, continued lines joined."""
    found: list[str] = []
    until = ""
    text = block.text.replace("\\\n", " ")
    for line in text.splitlines():
        if until:
            until = "" if line.strip() == until else until
            continue
        here = re.search(r"<<-?\s*'?(\w+)'?", line)
        if here:
            until = here[1]
        command = re.sub(r"(^|\s)#.*", "", line).strip()
        if command:
            found.append(command)
    return found


def links(document: str) -> list[str]:
    """Targets of the links and pictures outside of fenced blocks."""
    for block in blocks(document):
        document = document.replace(block.text, "")
    return re.findall(r"\]\(([^)\s]+)\)", document)
