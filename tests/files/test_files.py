"""Law 12: nothing that koktok did not write is ever deleted or replaced; what it writes is there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import AT_A_STEP, ROOT
from hypothesis import given
from hypothesis import strategies as st

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files import (
    Checkpoint,
    Product,
    check_file,
    check_folder,
    place_of,
    read_whole,
    sweep,
    workplace,
    workplace_of,
    write_file,
    write_folder,
)

THING = Product("thing.sha256", "thing", frozenset({"a"}))
GUEST = Product("guest.sha256", "guest", guest=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def state(folder: Path) -> dict[str, object]:
    """All that a folder holds, links and hidden things too."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


# ── folders ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def listed(manifest: Path) -> set[str]:
    return {line.split("  ", 1)[1] for line in manifest.read_text(encoding="utf-8").splitlines()[1:]}


def test_a_folder_lists_what_koktok_wrote(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out", {"b": b"1", "a": "", '한 "글"': "2"}, THING)
    first, *rows = (out / "thing.sha256").read_text(encoding="utf-8").splitlines()
    assert first.startswith("# Written by koktok")
    assert rows == [
        f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in (("a", b""), ("b", b"1"), ('한 "글"', b"2"))
    ]
    subprocess.run(["sha256sum", "--check", "--strict", "thing.sha256"], cwd=out, check=True, capture_output=True)
    assert names(tmp_path) == ["out"]
    again = write_folder(tmp_path / "again", {'한 "글"': "2", "a": b"", "b": b"1"}, THING)
    assert state(again) == state(out)


def fill_with_others(folder: Path) -> dict[str, object]:
    """What a user keeps beside koktok's files."""
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "runs" / "1").mkdir(parents=True)
    (folder / "runs" / "1" / "events").write_bytes(b"log")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("runs/1/events")
    (folder / "nowhere").symlink_to("gone")
    theirs = ("model.safetensors", "runs", "empty", "link", "nowhere")
    return {name: what for name, what in state(folder).items() if name.split("/")[0] in theirs}


def test_others_files_stay_and_ours_are_replaced(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out", {"a": "1", "b": "1", "c": "1"}, THING)
    others = fill_with_others(out)
    inode, opened = (out / "model.safetensors").stat().st_ino, (out / "runs" / "1" / "events").open("ab")
    write_folder(out, {"a": "2", "b": "2", "d": "2"}, THING)
    opened.write(b" goes on")
    opened.close()
    others["runs/1/events"] = b"log goes on"
    found = state(out)
    assert found.items() >= {**others, "a": b"2", "b": b"2", "d": b"2"}.items()
    assert "c" not in found
    assert (out / "model.safetensors").stat().st_ino == inode
    assert listed(out / "thing.sha256") == {"a", "b", "d"}
    assert names(tmp_path) == ["out"]


def test_save_keeps_the_folder_where_it_is_the_working_directory_or_has_unlisted_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = write_folder(tmp_path / "out", {"a": "1"}, THING)
    before = out.stat().st_ino
    monkeypatch.chdir(out)
    write_folder(".", {"a": "2"}, THING)  # where the shell stands
    assert (Path("a").read_text(), out.stat().st_ino) == ("2", before)
    monkeypatch.chdir(tmp_path)
    (out / "notes").write_text("mine")
    write_folder(out, {"a": "3"}, THING)
    assert ((out / "a").read_text(), out.stat().st_ino) == ("3", before)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda out: (out / "b").write_text("mine"), "b"),
        (lambda out: ((out / "b").unlink(), (out / "b").mkdir()), "b"),
        (lambda out: ((out / "b").unlink(), (out / "b").symlink_to("a")), "b"),
        (lambda out: (out / "new").write_text("mine"), "new"),
        (lambda out: (out / "new").symlink_to("gone"), "new"),
        (lambda out: (out / "thing.sha256").write_text((out / "thing.sha256").read_text() + "\n"), "thing.sha256"),
        (lambda out: (out / "a").write_text("mine"), "a"),  # one of the names of the product, new or not
    ],
)
def test_what_was_changed_is_refused_and_named(tmp_path: Path, change: Callable[[Path], object], name: str) -> None:
    out = write_folder(tmp_path / "out", {"a": "1", "b": "1"}, THING)
    change(out)
    before = state(tmp_path)
    with pytest.raises(UsageError, match=f"out/{name}` was not written by koktok, or was changed since") as caught:
        write_folder(out, {"b": "2", "new": "2"}, THING)
    assert caught.value.hint == f"mv {out / name} ELSEWHERE, or --out NEW-FOLDER"
    with pytest.raises(UsageError, match=f"out/{name}`"):
        check_folder(out, THING, ("b", "new"))
    assert state(tmp_path) == before


def test_what_was_changed_and_is_not_needed_stays(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out", {"a": "1", "README.md": "card"}, THING)
    (out / "README.md").write_text("my card")
    write_folder(out, {"a": "2"}, THING)
    assert state(out).items() >= {"a": b"2", "README.md": b"my card"}.items()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = state(tmp_path)
    for write in (check_folder, lambda path, product: write_folder(path, {"a": "1"}, product)):
        with pytest.raises(UsageError, match="is not empty and holds no koktok thing"):
            write(tmp_path, THING)
        with pytest.raises(UsageError, match="expected a folder, got the file"):
            write(tmp_path / "file", THING)
    assert state(tmp_path) == before
    write_folder(tmp_path, {"report": "1"}, GUEST)  # a guest asks for nothing but free names
    write_folder(tmp_path, {"speed": "1"}, GUEST)
    write_folder(tmp_path, {"report": "2"}, GUEST)
    assert state(tmp_path).items() >= {**before, "report": b"2", "speed": b"1"}.items()
    assert listed(tmp_path / "guest.sha256") == {"report", "speed"}


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", "", "a\\b", "a\0b", "a\nb", "/etc/x", 3])
def test_names_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a plain name of a file"):
        write_folder(tmp_path / "out", {name: "1"}, THING)
    assert not names(tmp_path)


def test_lines_that_others_wrote_into_the_list_of_checksums_are_not_ours(tmp_path: Path) -> None:
    """Lines that others wrote, names that lead elsewhere, a list that somebody else made."""
    out, other = tmp_path / "out", tmp_path / "other"
    other.write_text("mine")
    write_folder(out, {"b": "1"}, THING)
    (out / "c").write_text("mine")
    sha, manifest = hashlib.sha256(b"mine").hexdigest(), out / "thing.sha256"
    head, rows = manifest.read_text().split("\n", 1)
    for row in (f"{sha}  c\n", f"{sha}  ../other\n", "some text\n"):
        manifest.write_text(f"{head}\n{rows}{row}")
        with pytest.raises(UsageError, match=r"thing\.sha256` was not written by koktok, or was changed since"):
            write_folder(out, {"c": "1"}, THING)
    row = f"{sha}  ../other\n"
    manifest.write_text(f"{head.rpartition(' ')[0]} {hashlib.sha256(row.encode()).hexdigest()}\n{row}")
    (out / "b").unlink()
    write_folder(out, {"a": "1"}, THING)
    manifest.unlink()
    for text in (f"{sha}  c\n", "\0", "", "\ud800"):
        manifest.write_text(text, errors="surrogatepass")
        with pytest.raises(UsageError, match="holds no koktok thing"):
            write_folder(out, {"a": "1"}, THING)
    assert (other.read_text(), (out / "c").read_text()) == ("mine", "mine")


def test_permissions_are_kept_and_new_ones_are_the_users(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        out = write_folder(tmp_path / "out", {"a": "1"}, THING)
        assert stat.S_IMODE(out.stat().st_mode) == 0o750
        assert stat.S_IMODE((out / "a").stat().st_mode) == 0o640
        out.chmod(0o700)
        (out / "a").chmod(0o600)
        write_folder(out, {"a": "2"}, THING)
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
        assert stat.S_IMODE((out / "a").stat().st_mode) == 0o600
        file = write_file(tmp_path / "file", b"1")
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        file.chmod(0o600)
        write_file(file, b"2")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_failure_keeps_the_old_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = write_folder(tmp_path / "out", {"a": "1"}, THING)
    before = state(tmp_path)

    def fail(fresh: Path) -> None:
        (fresh / "a").write_text("half")
        raise OSError(28, "No space left on device")

    def stop(fresh: Path) -> None:
        (fresh / "sub").mkdir()
        raise KeyboardInterrupt

    with pytest.raises(InputError, match="No space left"):
        write_folder(out, fail, THING)
    with pytest.raises(KeyboardInterrupt):
        write_folder(out, stop, THING)
    with pytest.raises(UsageError, match="`sub` is not a file"):
        write_folder(out, lambda fresh: (fresh / "sub").mkdir(), THING)

    def refuse(self: Path, place: Path) -> Path:
        if "new" in self.parts:
            raise OSError(18, "Invalid cross-device link")
        return real(self, place)

    real = Path.rename
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(InputError, match="cross-device"):
        write_folder(out, {"a": "2"}, THING)
    assert state(tmp_path) == before


def test_a_mount_point_is_written_without_renames_across_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be renamed into it, nor can it change places."""
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == out)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if (out in self.parents) != (out in Path(target).parents):
            raise OSError(18, "Invalid cross-device link")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(Path, "replace", rename)
    check_folder(out, THING)
    for content in ("1", "2"):
        write_folder(out, {"a": content, content: content}, THING)
        assert state(out).keys() == {"a", content, "thing.sha256"}
    assert names(tmp_path) == ["out"]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_of_others_is_not_replaced(tmp_path: Path) -> None:
    def ours(file: Path) -> bool:
        return file.read_bytes().startswith(b"ours")

    file = write_file(tmp_path / "deep" / "file", b"ours 1", ours=ours)
    write_file(file, lambda fresh: fresh.write_bytes(b"ours 2"), ours=ours)
    assert file.read_bytes() == b"ours 2"
    file.write_bytes(b"mine")
    for write in (check_file, lambda path, ours: write_file(path, b"ours 3", ours=ours)):
        with pytest.raises(
            UsageError, match=r"was not written by koktok; it is left as it is\nhint: mv .*file ELSEWHERE"
        ):
            write(file, ours)
        with pytest.raises(UsageError, match="got the folder"):
            write(tmp_path, ours)
    assert file.read_bytes() == b"mine"
    file.write_bytes(b"")
    assert write_file(file, b"ours 4", ours=ours).read_bytes() == b"ours 4"  # nothing was there to lose
    assert state(tmp_path).keys() == {"deep", "deep/file"}


def test_a_device_takes_bytes_and_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    thread.start()
    write_file(tmp_path / "pipe", b"1")
    thread.join()
    assert read == [b"1"]
    with pytest.raises(UsageError, match="is not a file"):
        write_file(tmp_path / "pipe", lambda _: None)
    write_file("/dev/null", b"1", ours=lambda _: False)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("folder", [True, False])
def test_a_link_is_written_through(tmp_path: Path, folder: bool) -> None:
    def write(content: str) -> None:
        if folder:
            write_folder(tmp_path / "link", {"a": content}, THING)
        else:
            write_file(tmp_path / "link", content.encode())

    (tmp_path / "real").mkdir()
    place = tmp_path / "real" / "place"
    (tmp_path / "link").symlink_to("real/place")
    for check in (check_file, lambda path: check_folder(path, THING), lambda _: write("0")):
        with pytest.raises(UsageError, match="is a link to `real/place`, which is not there"):
            check(tmp_path / "link")
    place.mkdir() if folder else place.touch()
    for content in ("1", "2"):
        write(content)
        assert (place / "a" if folder else place).read_text() == content
    assert (tmp_path / "link").readlink() == Path("real/place")
    assert place_of(tmp_path / "link") == place.resolve()
    assert names(tmp_path) == ["link", "real"]
    assert names(tmp_path / "real") == ["place"]


def test_paths_that_cannot_be_written_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    before = state(tmp_path)
    for bad in ("/proc/koktok", "/proc/self/x/y", tmp_path / ("x" * 256), tmp_path / "file" / "x", tmp_path / "loop"):
        for check in (check_file, lambda path: check_folder(path, THING)):
            with pytest.raises((InputError, UsageError), match=r"cannot be written to|is not there|File name too long"):
                check(bad)
    assert check_folder(tmp_path / "a" / "b" / "c", THING) == tmp_path / "a" / "b" / "c"
    assert state(tmp_path) == before
    long = tmp_path / ("글" * 83)  # 249 bytes: with anything before or behind it, it would be no name
    assert write_file(long, b"1").read_bytes() == b"1"
    assert names(tmp_path) == ["file", "loop", long.name]


# ── workplaces ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_of_others_is_no_workplace(tmp_path: Path) -> None:
    place = workplace_of(tmp_path / "out")
    place.mkdir()
    (place / "thesis").write_text("mine")
    before = state(tmp_path)
    for write in (
        lambda: write_folder(tmp_path / "out", {"a": "1"}, THING),
        lambda: write_file(tmp_path / "out", b"1"),
        lambda: check_folder(tmp_path / "out", THING),
    ):
        with pytest.raises(UsageError, match=r"\.out\.koktok` exists and was not made by koktok") as caught:
            write()
        assert caught.value.hint == f"mv {place} ELSEWHERE"
    assert state(tmp_path) == before
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".x.koktok").symlink_to("elsewhere")
    with pytest.raises(UsageError, match="was not made by koktok"):
        write_file(tmp_path / "x", b"1")
    (tmp_path / ".y.koktok").write_text("mine")
    with pytest.raises(UsageError, match="was not made by koktok"):
        write_file(tmp_path / "y", b"1")
    assert not names(tmp_path / "elsewhere")


def test_writers_come_one_after_the_other(tmp_path: Path) -> None:
    def write(n: int) -> None:
        for _ in range(5):
            write_folder(tmp_path / "out", {"a": str(n), "b": str(n)}, THING)

    place = workplace_of(tmp_path / "out")
    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    with workplace(place):
        for thread in threads:
            thread.start()
        with pytest.raises(InputError, match="is in use by another process"), workplace(place, wait=0):
            pass
        assert not (tmp_path / "out").exists()
    for thread in threads:
        thread.join()
    found = state(tmp_path / "out")
    assert found["a"] == found["b"]
    assert names(tmp_path) == ["out"]


def test_sweep_removes_workplaces_of_ended_processes_only(tmp_path: Path) -> None:
    for name in (".dead.koktok", ".mine.koktok", ".living.koktok"):
        (tmp_path / name / "new").mkdir(parents=True)
        (tmp_path / name / "new" / "a").write_text("1")
    for name in (".dead.koktok", ".living.koktok"):
        (tmp_path / name / "koktok.lock").touch()
    with workplace(tmp_path / ".living.koktok"):
        sweep(tmp_path, ".*.koktok")
        assert names(tmp_path) == [".living.koktok", ".mine.koktok"]


# ── kills ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

STEPS = (
    AT_A_STEP
    + """
import json, os, signal, sys
from pathlib import Path
from koktok.files import *
from koktok.files import write as folders
from koktok.errors import ArtifactError

base, kind, stride = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
THING = Product("thing.sha256", "thing")
out = base / "out"
OLD, NEW = {"a": "old", "b": "old", "c": "old"}, {"a": "new", "b": "new", "d": "new", "e": "old"}
others = {}

def read(place):
    found = {file.name: file.read_text() for file in place.iterdir() if file.name in "abcde"} if place.exists() else {}
    if found not in ({}, OLD, NEW):
        raise ArtifactError(str(found))
    return found

def shards(content):
    def make(notes):
        for name in content:
            if name not in [part["name"] for part in notes.parts]:
                (notes.folder / name).write_text(content[name]); notes.add({"name": name}, [name])
        return {}
    return resumable(out, THING, {"text": content["a"]}, make, force=True)

def prepare():
    if kind == "shards":
        shards(OLD)
    elif "new" in kind:
        import shutil; shutil.rmtree(out, ignore_errors=True)
    elif "file" in kind:
        write_file(out, b"old" * 1000)
    else:
        write_folder(out, OLD, THING)
        if "others" in kind:
            (out / "runs").mkdir(exist_ok=True); (out / "runs" / "x").write_text("mine"); (out / "model").write_text("mine")

def save():
    shards(NEW) if kind == "shards" else write_file(out, b"new" * 1000) if "file" in kind else write_folder(out, NEW, THING)

def check():
    if "file" in kind:
        assert out.read_bytes() in (b"old" * 1000, b"new" * 1000)
    else:
        before = state()
        try:
            got = read(out if out.exists() else base / ".out.partial" / "old") if kind == "shards" else read_whole(out, THING, read)
            assert got or "new" in kind, "there is nothing"
        except ArtifactError as error:
            assert "is incomplete" in str(error), error
            half.append(kills)
        assert state() == before
        if "others" in kind:
            assert (out / "runs" / "x").read_text() == (out / "model").read_text() == "mine"

def state():
    return {str(path): path.stat().st_mtime_ns for path in base.rglob("*")}

kills, half = 0, []
folders._MOVING = 0.05
while True:
    prepare()
    pid = os.fork()
    if not pid:
        signal_at(kills * stride, signal.SIGKILL)
        save()
        os._exit(0)
    killed = os.waitpid(pid, 0)[1] != 0
    kills += killed
    check()
    if kills % 3:
        check()
    save()
    check()
    assert sorted(os.listdir(base)) == ["out"], os.listdir(base)
    if not killed:
        break
print(kills, len(half))
"""
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["file", "new", "ours", "others", "shards"])
def test_a_kill_at_any_step_leaves_the_old_or_the_new(tmp_path: Path, kind: str, stride: int) -> None:
    """Not at random: the process is killed before each thing (by default every third) that it asks of the system.

    A reader finds the old, the new, or an error that says what to type, and changes nothing; the next writer goes on.
    """
    done = subprocess.run(
        [sys.executable, "-c", STEPS, str(tmp_path), kind, str(stride)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kills, half = map(int, done.stdout.split())
    assert kills > 10 / stride
    assert (half > 0) == (kind == "others")  # their folder stays itself


def killed(out: Path, at: str) -> None:
    """A process that writes `new` to a folder, and ends at a call."""
    code = (
        "import os, sys; from pathlib import Path; from koktok.files import *; from koktok.files import write\n"
        f"{at} = lambda *_: os._exit(9)\n"
        "write_folder(sys.argv[1], {'a': 'new', 'b': 'new'}, Product('thing.sha256', 'thing'))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(out)], cwd=ROOT, check=False).returncode == 9


def test_a_killed_writer_overwrites_nothing_that_came_later(tmp_path: Path) -> None:
    """The process was killed before it moved the files; then the user wrote one of those that were to come."""
    out = write_folder(tmp_path / "out", {"a": "old", "b": "old"}, THING)
    (out / "others").write_text("mine")
    killed(out, "write._replace")
    assert read_whole(out, THING, lambda place: (place / "a").read_text()) == "old"  # nothing has been moved yet
    (out / "b").write_text("written by hand")
    with pytest.raises(UsageError, match="out/b` was not written by koktok, or was changed since"):
        write_folder(out, {"a": "newer", "b": "newer"}, THING)
    (out / "b").rename(out / "mine")
    write_folder(out, {"a": "newer", "b": "newer"}, THING)
    assert state(out).items() >= {"a": b"newer", "mine": b"written by hand", "others": b"mine"}.items()
    assert names(tmp_path) == ["out"]


def test_a_half_written_folder_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process was killed when the list of old and new files stood, and before the first old one went."""
    out = write_folder(tmp_path / "out", {"a": "old", "c": "old"}, THING)
    (out / "others").write_text("mine")
    killed(out, "Path.unlink")
    monkeypatch.setattr("koktok.files.write._MOVING", 0)
    with pytest.raises(ArtifactError, match="is incomplete") as caught:
        read_whole(out, THING, state)
    assert caught.value.hint == "run that command again"
    check_folder(out, THING, same=lambda _: False)  # half of a result is not another one
    write_folder(out, {"a": "new", "b": "new"}, THING)
    assert read_whole(out, THING, state).items() >= {"a": b"new", "b": b"new", "others": b"mine"}.items()
    assert names(out) == ["a", "b", "others", "thing.sha256"]
    assert names(tmp_path) == ["out"]


def test_a_file_put_into_the_old_folder_stays(tmp_path: Path) -> None:
    """The process was killed with the old folder aside, into which the user put a file."""
    out = write_folder(tmp_path / "out", {"a": "old"}, THING)
    killed(out, "write._remove")
    assert names(out) == ["a", "b", "thing.sha256"]
    (tmp_path / ".out.koktok" / "old" / "notes").write_text("mine")
    write_folder(out, {"a": "newer"}, THING)
    assert state(out).items() >= {"a": b"newer", "notes": b"mine"}.items()
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("saved", [True, False])
def test_an_old_folder_without_a_list_is_not_koktoks(saved: bool, tmp_path: Path) -> None:
    out, old = tmp_path / "out", tmp_path / ".out.koktok" / "old"
    if saved:
        write_folder(out, {"a": "1"}, THING)
    old.mkdir(parents=True)
    (old / "notes").write_text("mine")
    (old.parent / "koktok.lock").touch()
    before = state(tmp_path)
    with pytest.raises(UsageError, match=r"old` was not written by koktok"):
        write_folder(out, {"a": "2"}, THING)
    assert state(tmp_path) == before


def test_reading_gives_up_at_once_where_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ArtifactError("damaged")

    out = write_folder(tmp_path / "out", {"a": "1"}, THING)
    monkeypatch.setattr("koktok.files.write.time.sleep", lambda _: pytest.fail("it waits"))
    for place in (out, tmp_path / "none"):
        with pytest.raises(ArtifactError, match="damaged"):
            read_whole(place, THING, lambda _: fail())


# ── notes of finished parts ───────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.binary(max_size=9), max_size=6), st.data())
def test_a_torn_note_is_no_note(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("notes")
    notes = Checkpoint(folder / "notes.jsonl", folder, {"run": 1})
    for i, content in enumerate(contents):
        (folder / str(i)).write_bytes(content)
        notes.add({"name": i}, [str(i)])
    whole = notes.notes.read_bytes() if contents else b""
    cut = data.draw(st.integers(0, len(whole)))
    notes.notes.write_bytes(whole[:cut])
    again = Checkpoint(notes.notes, folder, {"run": 1})
    kept = max(0, whole[:cut].count(b"\n") - 1)
    assert [part["name"] for part in again.parts] == list(range(kept))
    assert all(map(again.whole, again.parts))
    (folder / "x").write_bytes(b"more")
    again.add({"name": "x"}, ["x"])
    third = Checkpoint(notes.notes, folder, {"run": 1})
    assert [part["name"] for part in third.parts] == [*range(kept), "x"]
    other = Checkpoint(notes.notes, folder, {"run": 2})
    other.add({"name": "y"}, ["x"])
    assert [json.loads(line).get("name") for line in notes.notes.read_text().splitlines()] == [None, "y"]


@pytest.mark.parametrize("damage", [b"", b"shor", b"longer", b"same!", None])
def test_a_part_that_is_not_as_it_was_is_not_finished(tmp_path: Path, damage: bytes | None) -> None:
    notes = Checkpoint(tmp_path / "notes.jsonl", tmp_path, {})
    (tmp_path / "a").write_bytes(b"shard")
    part = notes.add({}, ["a"])
    assert notes.whole(part)
    (tmp_path / "a").unlink() if damage is None else (tmp_path / "a").write_bytes(damage)
    assert not notes.whole(part)
