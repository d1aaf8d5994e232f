"""Past states of the sources, read from Git without touching its index, its refs or the work tree."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

from compiler import tools
from compiler.errors import Diagnostic, UserError
from compiler.records import dataclass
from compiler.write.scratch import scratch
from compiler.yamlio import load

WORKSPACE = "bundlec.yaml"
CACHE = ".bundlec/cache/sources.json"
_SOURCES = ("overlays", "mixins", "components")
_MAIN = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_SECONDS = 120.0


@dataclass(frozen=True)
class Repository:
    """A clone, a shallow one or a linked work tree. `prefix`: the workspace's folder inside it, "" or ending in `/`."""

    top: Path
    prefix: str


@dataclass(frozen=True)
class Revision:
    """A commit. `label` says in words what it is."""

    commit: str
    label: str


def repository(root: Path) -> Repository:
    """The repository that holds the workspace `root`. Raises UserError (BC6005) when there is none, or no Git."""
    done = _git(root, "rev-parse", "--show-toplevel", "--show-prefix")
    if done.returncode != 0:
        said = _said(done)
        if "not a git repository" in said:
            raise _error(f"{root} lies in no Git repository", "give two folders: bundlec diff OLD NEW")
        raise _error(f"Git cannot read the repository of {root}: {said}", "see what `git status` says there")
    lines = done.text.split("\n")
    return Repository(Path(lines[0]), lines[1])


def revision(repo: Repository, name: str) -> Revision:
    """The commit that `name` means. Raises UserError (BC6005) when there is none."""
    done = _git(repo.top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode != 0:
        if not _has_commits(repo):
            raise _error("the repository has no commit yet, so there is nothing to compare with", "commit first")
        shallow = _git(repo.top, "rev-parse", "--is-shallow-repository").text.strip() == "true"
        remote, slash, branch = name.partition("/")
        fetch = f"`git fetch {remote} {branch}`" if slash and remote == "origin" else "`git fetch`"
        fix = f"{fetch} may bring it" + ("; this clone is shallow: `git fetch --unshallow`" if shallow else "")
        raise _error(f"there is no revision `{name}`", fix)
    commit = done.text.strip()
    short = commit[:10]
    return Revision(commit, short if commit.startswith(name) else f"{name} ({short})")


def base_of(repo: Repository, name: str | None, head: str, *, exact: bool = False) -> tuple[Revision, tuple[str, ...]]:
    """The commit to compare `head` (a revision) with, and what to tell about the choice.

    It is the merge base with `name` (default: the main branch of `origin`, else the local one), so that what others
    changed meanwhile does not count; `name` itself when `exact`, or when there is no merge base: then that is told.
    """
    at = revision(repo, name if name is not None else _main_branch(repo))
    if exact:
        return at, ()
    done = _git(repo.top, "merge-base", at.commit, revision(repo, head).commit)
    if done.returncode != 0:
        shallow = _git(repo.top, "rev-parse", "--is-shallow-repository").text.strip() == "true"
        why = "this clone is shallow; `git fetch --unshallow` brings the history" if shallow else "unrelated histories"
        note = f"no merge base ({why}): compared with {at.label} itself, so what changed there shows in reverse"
        return at, (note,)
    commit = done.text.strip()
    if commit == at.commit:
        return at, ()
    return Revision(commit, f"{commit[:10]}, the merge base with {at.label}"), ()


@contextlib.contextmanager
def checked_out(repo: Repository, at: Revision, cache: bytes | None = None) -> Iterator[Path]:
    """A temporary folder with the workspace's sources as they are at a revision; gone afterwards.

    `cache` is the content of the workspace's cache of parsed files, which saves parsing what did not change. Raises
    UserError (BC6005) when the revision holds no workspace at that place, or Git cannot give a file.
    """
    entries = _entries(repo, at)
    workspace = repo.prefix + WORKSPACE
    if workspace not in entries:
        raise _error(f"{at.label} has no {workspace}", "name a revision since which the workspace lies there")
    contents = _contents(repo, {path: entries[path][1] for path in _wanted(repo, entries)})
    links = {
        path: content.decode("utf-8", "surrogateescape") for path, content in contents.items() if _link(entries, path)
    }
    files = {path: content for path, content in contents.items() if path not in links}
    if cache is not None:
        files[repo.prefix + CACHE] = cache
    with scratch(files, links) as folder:
        yield folder / repo.prefix if repo.prefix else folder


def _wanted(repo: Repository, entries: Mapping[str, tuple[str, str]]) -> list[str]:
    """The paths that the loader reads; everything when a symbolic link among them may lead anywhere."""
    workspace = repo.prefix + WORKSPACE
    text = _contents(repo, {workspace: entries[workspace][1]})[workspace]
    roots = [repo.prefix]
    roots += [posixpath.normpath(repo.prefix + folder) + "/" for folder in _data_folders(text)]
    folders = tuple(f"{'' if root == './' else root}{name}/" for root in roots for name in _SOURCES)
    wanted = [path for path in entries if path == workspace or path.startswith(folders)]
    if any(_link(entries, path) for path in wanted):
        return list(entries)
    return wanted


def _data_folders(text: bytes) -> list[str]:
    """`spec.data` of a bundlec.yaml; nothing when it is not well-formed, which the loader will tell."""
    try:
        data = load(text.decode("utf-8-sig"), WORKSPACE).data
        return [str(folder) for folder in data["spec"].get("data") or ()]
    except (UserError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return []


def _entries(repo: Repository, at: Revision) -> dict[str, tuple[str, str]]:
    """Path from the top of the repository -> (mode, object) of every file and link of a commit."""
    done = _git(repo.top, "ls-tree", "-r", "-z", "--full-tree", at.commit)
    if done.returncode != 0:
        raise _error(f"Git cannot list {at.label}: {_said(done)}", "see what `git fsck` says")
    found: dict[str, tuple[str, str]] = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").split("\0"):
        head, tab, path = line.partition("\t")
        mode, _, rest = head.partition(" ")
        kind, _, name = rest.partition(" ")
        if tab and kind == "blob":
            found[path] = (mode, name)
    return found


def _contents(repo: Repository, names: Mapping[str, str]) -> dict[str, bytes]:
    """Path -> content of blobs, read in one go."""
    unique = list(dict.fromkeys(names.values()))
    if not unique:
        return {}
    done = _git(repo.top, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in unique))
    blobs: dict[str, bytes] = {}
    data, position = done.stdout, 0
    for name in unique:
        end = data.find(b"\n", position)
        words = data[position:end].split()
        if done.returncode != 0 or end < 0 or len(words) != 3:
            raise _error(f"Git cannot give the object {name}: {_said(done)}", "see what `git fsck` says")
        size = int(words[2])
        blobs[name] = data[end + 1 : end + 1 + size]
        position = end + 1 + size + 1
    return {path: blobs[name] for path, name in names.items()}


def _link(entries: Mapping[str, tuple[str, str]], path: str) -> bool:
    return entries[path][0] == "120000"


def _main_branch(repo: Repository) -> str:
    for name in _MAIN:
        if _git(repo.top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").returncode == 0:
            # origin/HEAD stands for a branch, whose name says more.
            return _git(repo.top, "rev-parse", "--abbrev-ref", name).text.strip() or name
    return "HEAD"


def _has_commits(repo: Repository) -> bool:
    return _git(repo.top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode == 0


def _git(where: Path, *arguments: str, stdin: str = "") -> tools.Result:
    # Options only, so that neither the environment nor the user's settings change what is printed.
    command: tuple[str | Path, ...] = ("git", "--no-pager", "-c", "core.quotePath=false", "-C", where, *arguments)
    try:
        return tools.run(command, stdin=stdin, timeout=_SECONDS, check=False)
    except tools.ToolError as error:
        raise _error(str(error), "install Git, or give two folders: bundlec diff OLD NEW") from error


def _said(done: tools.Result) -> str:
    return " ".join(done.stderr.decode("utf-8", "replace").split()) or f"exit status {done.returncode}"


def _error(message: str, fix: str) -> UserError:
    return UserError([Diagnostic("BC6005", message, None, fix)])
