"""Files -> disk: what changes, what stays, and who owns what."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from compiler.errors import InternalError, UserError
from compiler.write import Drift, WriteReport, compare, read, swap, tree, write
from tests.support.trees import beside, contents, mode, snapshot, with_checksums

OLD = with_checksums(
    {"README.md": b"one\n", "deploy.sh": b"#!/bin/sh\n", "flux/a.yaml": b"a: 1\n", "flux/b.yaml": b"b\n"}
)
NEW = with_checksums(
    {"README.md": b"two\n", "deploy.sh": b"#!/bin/sh\n", "argocd/c.yaml": b"c\n", "flux/a.yaml": b"a: 1\n"}
)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out" / "gb200"


def codes(error: UserError) -> list[tuple[str, str]]:
    return [(d.code, str(d.span)) for d in error.diagnostics]


# What a build does


def test_first_build_makes_the_folder_and_its_parents(target: Path):
    report = write(OLD, target)
    assert report == WriteReport(added=tuple(sorted(OLD)))
    assert contents(target) == OLD
    assert beside(target) == []


def test_a_build_reports_each_file_once(target: Path):
    write(OLD, target)
    assert write(NEW, target) == WriteReport(
        added=("argocd/c.yaml",),
        changed=("README.md", "checksums.txt"),
        removed=("flux/b.yaml",),
        unchanged=("deploy.sh", "flux/a.yaml"),
    )
    assert contents(target) == NEW
    assert beside(target) == []


def test_a_folder_that_holds_nothing_any_more_goes(target: Path):
    write(NEW, target)
    write(OLD, target)
    assert "argocd" not in snapshot(target)


def test_nothing_is_touched_when_nothing_differs(target: Path):
    write(OLD, target)
    before = {path: path.lstat() for path in [target.parent, target, *target.rglob("*")]}
    report = write(OLD, target)
    assert report == WriteReport(unchanged=tuple(sorted(OLD)))
    assert not report.touched
    after = {path: path.lstat() for path in [target.parent, target, *target.rglob("*")]}
    same = ("st_ino", "st_mtime_ns", "st_ctime_ns", "st_mode", "st_nlink")
    assert {p: [getattr(s, f) for f in same] for p, s in after.items()} == {
        p: [getattr(s, f) for f in same] for p, s in before.items()
    }


def test_unchanged_files_keep_their_time_stamps_and_become_no_copies(target: Path):
    write(OLD, target)
    os.utime(target / "flux/a.yaml", ns=(10**18, 10**18 + 7))
    inode = (target / "flux/a.yaml").stat().st_ino
    write(NEW, target)
    now = (target / "flux/a.yaml").stat()
    assert (now.st_ino, now.st_mtime_ns, now.st_nlink) == (inode, 10**18 + 7, 1)
    assert (target / "README.md").stat().st_mtime_ns > 10**18 + 7


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027, 0o077])
def test_modes_are_the_same_under_every_umask(target: Path, umask: int):
    target.parent.mkdir(parents=True)
    before = os.umask(umask)
    try:
        write(OLD, target)
    finally:
        os.umask(before)
    assert {path: mode(target / path) for path in OLD} == {
        path: 0o755 if path == "deploy.sh" else 0o644 for path in OLD
    }
    assert {mode(target), mode(target / "flux")} == {0o755}


def test_a_wrong_executable_bit_is_set_right(target: Path):
    write(OLD, target)
    (target / "deploy.sh").chmod(0o644)
    (target / "README.md").chmod(0o755)
    assert compare(OLD, target) == Drift(modes=("README.md", "deploy.sh"))
    assert write(OLD, target).changed == ("README.md", "deploy.sh")
    assert (mode(target / "deploy.sh"), mode(target / "README.md")) == (0o755, 0o644)


def test_a_checkout_under_a_strict_umask_is_no_difference(target: Path):
    write(OLD, target)
    for path in OLD:
        (target / path).chmod(0o700 if path == "deploy.sh" else 0o600)
    assert compare(OLD, target).clean
    assert not write(OLD, target).touched


def test_folders_keep_their_permissions(target: Path):
    write(OLD, target)
    target.chmod(0o2770)
    (target / "flux").chmod(0o750)
    write(NEW, target)
    assert (mode(target), mode(target / "flux"), mode(target / "argocd")) == (0o2770, 0o750, 0o755)


def test_a_folder_closed_to_writing_is_still_replaced(target: Path):
    write(OLD, target)
    (target / "flux").chmod(0o555)
    write(NEW, target)
    assert contents(target) == NEW
    assert beside(target) == []
    (target / "flux").chmod(0o755)


def test_where_hard_links_are_refused_files_are_copied_with_their_time_stamps(
    target: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    write(OLD, target)
    os.utime(target / "flux/a.yaml", ns=(10**18, 10**18))
    monkeypatch.setattr(tree.os, "link", refuse)
    assert write(NEW, target).unchanged == ("deploy.sh", "flux/a.yaml")
    assert contents(target) == NEW
    assert (target / "flux/a.yaml").stat().st_mtime_ns == 10**18
    assert mode(target / "deploy.sh") == 0o755


def test_a_file_becomes_a_folder_and_back(target: Path):
    one, two = with_checksums({"x": b"file"}), with_checksums({"x/y": b"below"})
    for files in (one, two, one):
        write(files, target)
        assert contents(target) == files


def test_large_and_empty_files(target: Path):
    files = with_checksums({"empty": b"", "large": os.urandom(5_000_003)})
    write(files, target)
    assert read(target) == files


def test_a_relative_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(OLD, Path("here"))
    write(NEW, Path("sub/../here"))
    assert contents(tmp_path / "here") == NEW


def test_an_empty_folder_is_taken_over(target: Path):
    target.mkdir(parents=True)
    write(OLD, target)
    assert contents(target) == OLD


# Ownership


def test_files_of_others_stop_the_build_and_are_each_named(target: Path):
    write(OLD, target)
    (target / "notes.md").write_text("mine")
    (target / "flux/c.yaml").write_text("mine")
    (target / "old/deep").mkdir(parents=True)
    (target / "old/deep/one").write_text("mine")
    (target / "old/two").write_text("mine")
    (target / "link").symlink_to("/etc/hostname")
    before = snapshot(target.parent)
    with pytest.raises(UserError) as caught:
        write(NEW, target)
    assert codes(caught.value) == [
        ("BC5001", f"{target}/flux/c.yaml"),
        ("BC5001", f"{target}/link"),
        ("BC5001", f"{target}/notes.md"),
        ("BC5001", f"{target}/old/"),
    ]
    assert all(d.fix for d in caught.value.diagnostics)
    assert snapshot(target.parent) == before


def test_files_of_others_stop_an_unchanged_build_too(target: Path):
    write(OLD, target)
    (target / "notes.md").write_text("mine")
    with pytest.raises(UserError, match=r"BC5001"):
        write(OLD, target)


def test_a_foreign_file_at_a_new_path_is_not_overwritten(target: Path):
    write(OLD, target)
    (target / "argocd").mkdir()
    (target / "argocd/c.yaml").write_text("mine")
    with pytest.raises(UserError, match=r"BC5001"):
        write(NEW, target)
    assert (target / "argocd/c.yaml").read_text() == "mine"


def test_a_folder_without_checksums_is_not_ours(target: Path):
    target.mkdir(parents=True)
    (target / "thesis.tex").write_text("mine")
    with pytest.raises(UserError) as caught:
        write(NEW, target)
    assert codes(caught.value) == [("BC5001", str(target))]
    assert snapshot(target) == {"thesis.tex": b"mine"}


def test_leftovers_of_an_earlier_version_are_removed_case_75(target: Path):
    write(with_checksums({**OLD, "013-kgateway/values.yaml": b"x", "013-kgateway/install.sh": b"#!/bin/sh\n"}), target)
    assert write(OLD, target).removed == ("013-kgateway/install.sh", "013-kgateway/values.yaml")
    assert "013-kgateway" not in snapshot(target)


def test_a_hand_edited_file_is_overwritten_and_reported(target: Path):
    write(OLD, target)
    (target / "README.md").write_text("edited")
    (target / "flux/b.yaml").write_text("edited, and removed by the build")
    report = write(NEW, target)
    assert report.edited == ("README.md", "flux/b.yaml")
    assert contents(target) == NEW


def test_an_edit_that_agrees_with_the_new_content_is_no_edit(target: Path):
    write(OLD, target)
    (target / "README.md").write_bytes(NEW["README.md"])
    assert write(NEW, target).edited == ()


def test_a_deleted_file_comes_back(target: Path):
    write(OLD, target)
    (target / "flux/a.yaml").unlink()
    assert write(OLD, target).added == ("flux/a.yaml",)
    assert contents(target) == OLD


def test_a_merge_conflict_in_checksums_still_tells_whose_files_these_are(target: Path):
    write(OLD, target)
    ours, theirs = OLD["checksums.txt"], with_checksums({"extra.yaml": b"e\n"})["checksums.txt"]
    (target / "extra.yaml").write_bytes(b"e\n")
    (target / "checksums.txt").write_bytes(b"<<<<<<< HEAD\n" + ours + b"=======\n" + theirs + b">>>>>>> topic\n")
    assert write(NEW, target).removed == ("extra.yaml", "flux/b.yaml")
    assert contents(target) == NEW


def test_checksums_with_carriage_returns_still_count(target: Path):
    write(OLD, target)
    (target / "checksums.txt").write_bytes(OLD["checksums.txt"].replace(b"\n", b"\r\n"))
    write(NEW, target)
    assert contents(target) == NEW


def test_checksums_cannot_claim_a_file_outside(tmp_path: Path):
    target = tmp_path / "bundle"
    outside = tmp_path / "outside"
    outside.write_text("mine")
    write(OLD, target)
    (target / "checksums.txt").write_bytes(OLD["checksums.txt"] + b"0" * 64 + b"  ../outside\n")
    write(NEW, target)
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_owned_path_that_became_a_link_is_not_followed(tmp_path: Path, kind: str):
    target, elsewhere = tmp_path / "bundle", tmp_path / "elsewhere"
    write(OLD, target)
    elsewhere.mkdir()
    (elsewhere / "a.yaml").write_bytes(b"a: 1\n")
    path = target / ("flux/a.yaml" if kind == "file" else "flux")
    if kind == "file":
        path.unlink()
        path.symlink_to(elsewhere / "a.yaml")
    else:
        path.rename(tmp_path / "moved")
        path.symlink_to(elsewhere)
    with pytest.raises(UserError) as caught:
        write(NEW, target)
    assert codes(caught.value) == [("BC5001", str(path))]
    assert snapshot(elsewhere) == {"a.yaml": b"a: 1\n"}
    assert path.is_symlink()


def test_a_target_that_is_a_link_is_refused(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(UserError, match=r"BC5001.*symbolic link"):
        write(OLD, tmp_path / "link")
    with pytest.raises(UserError, match=r"BC5001.*symbolic link"):
        compare(OLD, tmp_path / "link")
    assert list((tmp_path / "real").iterdir()) == []


def test_a_target_that_is_a_file_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match=r"BC5001.*a file, not a folder"):
        write(OLD, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_link_above_the_target_is_fine(tmp_path: Path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    write(OLD, tmp_path / "out" / "gb200")
    assert contents(tmp_path / "disk" / "gb200") == OLD


def test_a_file_that_turns_up_during_the_build_is_kept(target: Path, monkeypatch: pytest.MonkeyPatch):
    write(OLD, target)
    exchange = swap.exchange

    def late(new: Path, place: Path) -> None:
        (target / "flux/late.yaml").write_text("mine")
        (target / "notes").mkdir()
        (target / "notes/late.txt").write_text("mine too")
        exchange(new, place)

    monkeypatch.setattr(swap, "exchange", late)
    with pytest.raises(UserError) as caught:
        write(NEW, target)
    assert codes(caught.value) == [("BC5001", f"{target}/flux/late.yaml"), ("BC5001", f"{target}/notes/late.txt")]
    assert contents(target) == {**NEW, "flux/late.yaml": b"mine", "notes/late.txt": b"mine too"}
    assert beside(target) == []


def test_a_late_file_whose_place_is_taken_stays_where_it_was(target: Path, monkeypatch: pytest.MonkeyPatch):
    write(OLD, target)
    exchange = swap.exchange

    def late(new: Path, place: Path) -> None:
        (target / "argocd").mkdir()
        (target / "argocd/c.yaml").write_text("mine")
        exchange(new, place)

    monkeypatch.setattr(swap, "exchange", late)
    with pytest.raises(UserError) as caught:
        write(NEW, target)
    (found,) = caught.value.diagnostics
    assert contents(target) == NEW
    assert Path(str(found.span)).read_text() == "mine"
    # Later builds say so until somebody has moved it.
    monkeypatch.undo()
    with pytest.raises(UserError) as again:
        write(NEW, target)
    assert codes(again.value) == codes(caught.value)
    assert Path(str(found.span)).read_text() == "mine"
    Path(str(found.span)).unlink()
    assert write(OLD, target).touched
    assert beside(target) == []


# Input that is a bug of the caller


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "", "a\\b", "a\nb", "ä", "x" * 256, "a/\x7f"]
)
def test_paths_that_are_refused(target: Path, path: str):
    with pytest.raises(InternalError):
        write(with_checksums({path: b""}), target)
    assert not target.parent.exists()


@pytest.mark.parametrize("pair", [("a", "A"), ("x/a", "X/b"), ("dir", "dir/file")])
def test_paths_that_collide_somewhere_are_refused(target: Path, pair: tuple[str, str]):
    with pytest.raises(InternalError):
        write(with_checksums(dict.fromkeys(pair, b"")), target)


@pytest.mark.parametrize(
    "files",
    [
        {"a": b""},
        {**OLD, "extra": b""},
        {path: data for path, data in OLD.items() if path != "README.md"},
        {**OLD, "README.md": b"other"},
    ],
    ids=["none", "uncovered", "missing", "wrong"],
)
def test_checksums_must_cover_the_files_exactly(target: Path, files: dict[str, bytes]):
    with pytest.raises(InternalError, match=r"checksums\.txt does not cover"):
        write(files, target)


# Disks that fail


@pytest.mark.parametrize("call", ["mkdir", "open", "write", "fchmod", "chmod", "rename", "syncfs", "fsync"])
def test_a_failing_disk_is_the_users_error_and_changes_nothing(
    target: Path, monkeypatch: pytest.MonkeyPatch, call: str
):
    write(OLD, target)
    real = getattr(os, call, None)

    def full(first: object, *rest: object, **named: object) -> object:
        if call == "open" and not rest[0] & os.O_CREAT:  # type: ignore[operator]
            return real(first, *rest, **named)  # type: ignore[misc]
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if call == "syncfs":
            patch.setattr(swap, "_syncfs", full)
        else:
            patch.setattr(os, call, full)
            patch.setattr(swap, "_syncfs", lambda _: False)  # as where there is none: file by file
        with pytest.raises(UserError) as caught:
            write(NEW, target)
    assert codes(caught.value) == [("BC5002", str(target))]
    assert "No space left on device" in str(caught.value)
    assert contents(target) == OLD
    assert write(NEW, target).touched
    assert contents(target) == NEW
    assert beside(target) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_parent(target: Path):
    write(OLD, target)
    target.parent.chmod(0o555)
    try:
        with pytest.raises(UserError, match=r"BC5002.*Permission denied"):
            write(NEW, target)
        assert not write(OLD, target).touched
    finally:
        target.parent.chmod(0o755)


def test_a_parent_that_is_a_file(tmp_path: Path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UserError, match=r"BC5002"):
        write(OLD, tmp_path / "out" / "gb200")


def test_the_root_of_the_file_system():
    with pytest.raises(UserError, match=r"BC5002"):
        write(OLD, Path("/"))


def test_a_disk_that_is_really_full_or_read_only(tmp_path: Path):
    """A tmpfs of 256 KiB, where mounting is allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("mount is not allowed here")
    try:
        write(OLD, disk / "gb200")
        with pytest.raises(UserError, match=r"BC5002.*No space left"):
            write(with_checksums({"big": os.urandom(600_000)}), disk / "gb200")
        assert contents(disk / "gb200") == OLD
        assert beside(disk / "gb200") == []
        write(NEW, disk / "gb200")
        assert contents(disk / "gb200") == NEW
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(UserError, match=r"BC5002.*Read-only file system"):
            write(OLD, disk / "gb200")
        assert not write(NEW, disk / "gb200").touched
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# Two builds at once


def test_builds_of_one_folder_take_turns(target: Path):
    trees = [with_checksums({f"f{i}": bytes([n]) * 200 for i in range(40)}) for n in range(6)]
    failures: list[BaseException] = []

    def build(files: dict[str, bytes]) -> None:
        try:
            for _ in range(10):
                write(files, target)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=build, args=(files,)) for files in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert contents(target) in trees
    assert beside(target) == []


def test_a_build_that_hangs_is_waited_for_and_then_named(target: Path, monkeypatch: pytest.MonkeyPatch):
    write(OLD, target)
    monkeypatch.setattr(swap, "PATIENCE", 0.1)
    handle = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"BC5002.*another build is writing there"):
            write(NEW, target)
    finally:
        os.close(handle)
    assert write(NEW, target).touched


def test_without_locks_a_build_leaves_the_trees_of_others_alone(target: Path, monkeypatch: pytest.MonkeyPatch):
    def none(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    write(OLD, target)
    other = target.parent / ".gb200.new-0123456789abcdef"
    other.mkdir()
    monkeypatch.setattr(swap.fcntl, "flock", none)
    write(NEW, target)
    assert contents(target) == NEW
    assert beside(target) == [other.name]


# compare and read


def test_compare_finds_every_kind_of_difference(target: Path):
    write(OLD, target)
    (target / "README.md").write_text("edited")
    (target / "flux/a.yaml").unlink()
    (target / "flux/a.yaml").symlink_to("b.yaml")
    (target / "flux/b.yaml").unlink()
    (target / "deploy.sh").chmod(0o644)
    (target / "notes.md").write_text("mine")
    before = snapshot(target.parent)
    drift = compare(OLD, target)
    assert drift == Drift(
        missing=("flux/b.yaml",),
        changed=("README.md", "flux/a.yaml"),
        extra=("notes.md",),
        modes=("deploy.sh",),
    )
    assert drift.lines()[0] == "changed   README.md"
    assert not drift.clean
    assert snapshot(target.parent) == before


def test_compare_of_a_missing_folder(target: Path):
    assert compare(OLD, target) == Drift(missing=tuple(sorted(OLD)))


def test_compare_after_write_is_clean(target: Path):
    write(OLD, target)
    assert compare(OLD, target) == Drift()
    assert compare(OLD, target).clean


def test_compare_of_a_bundle_that_lost_its_checksums(target: Path):
    write(OLD, target)
    (target / "checksums.txt").unlink()
    assert compare(OLD, target) == Drift(missing=("checksums.txt",))


def test_read_returns_what_write_wrote(target: Path):
    write(OLD, target)
    assert read(target) == OLD
    assert list(read(target)) == sorted(OLD)


def test_read_refuses_what_is_no_bundle(target: Path, tmp_path: Path):
    with pytest.raises(UserError, match=r"BC6004"):
        read(target)
    write(OLD, target)
    (target / "pipe").symlink_to("README.md")
    with pytest.raises(UserError, match=r"BC6003"):
        read(target)


def test_an_unchanged_build_loads_no_heavy_module(target: Path):
    """A build without changes and `--check` must not pay for what only an exchange or a crash needs."""
    write(OLD, target)
    code = (
        "import sys; from pathlib import Path; from compiler.write import compare, read, write\n"
        "files = read(Path(sys.argv[1])); write(files, Path(sys.argv[1])); compare(files, Path(sys.argv[1]))\n"
        "print([name for name in ('ctypes', 'shutil', 'secrets', 'tempfile', 'subprocess') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
