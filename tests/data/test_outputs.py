"""Outputs: what is checked before the work, folders that are ours, and what a kill or a full disk leaves."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from killed import full_after, kill_at_every_change, killed_before, tree

from isoglot.core.errors import OutputError
from isoglot.data.files import (
    MARK,
    atomic_write,
    check_output,
    differences,
    exclusive,
    name_beside,
    read_record,
    temporary_folder,
    work_folder,
    writing,
)
from isoglot.model import layout

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks and limits are of POSIX systems")


def save(target, text):
    with layout.replacing(target) as new:
        layout.write_json(new / "1_Pooling" / "config.json", text)
        layout.write_json(new / "modules.json", text)


@pytest.mark.slow
def test_a_model_survives_a_kill_at_every_change(tmp_path):
    target = tmp_path / "model"
    save(target, "old")
    old = tree(target)
    save(tmp_path / "other", "new")
    new = tree(tmp_path / "other")

    def check():
        if target.exists():
            assert tree(target) in (old, new)
        with exclusive(target):
            layout.prepare(target)  # what the next run does first
        assert tree(target) in (old, new)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other"]
        save(target, "new")
        assert tree(target) == new
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other"]
        save(target, "old")

    save(target, "old")
    assert kill_at_every_change(lambda: save(target, "new"), check) > 20


@pytest.mark.parametrize(("name", "by"), [("ä" * 120, None), ("é.npy", KeyboardInterrupt())])
def test_a_file_survives_a_kill_at_every_change(tmp_path, name, by):
    target = tmp_path / name

    def write(text):
        with atomic_write(target) as stream:
            stream.write(text)

    def check():
        assert target.read_text() in ("old", "new")
        write("old")
        assert tree(tmp_path) == {name: b"old"}

    write("old")
    assert kill_at_every_change(lambda: write("new"), check, by=by) > 1


def test_temporary_files_of_living_writers_and_other_targets_stay(tmp_path):
    strange = [".a.txt.0123abcd.tmp", ".b.0123abcd.tmp", ".a.0123.tmp", "a.0123abcd.tmp"]
    for name in strange:
        (tmp_path / name).write_text("mine")
    with atomic_write(tmp_path / "a") as first:
        first.write("first")
        with atomic_write(tmp_path / "a") as second:
            second.write("second")
    assert sorted(tree(tmp_path)) == sorted(["a", *strange])
    assert (tmp_path / "a").read_text() == "first"


@pytest.mark.slow
def test_a_kill_leaves_all_of_a_finished_work_folder_or_nothing(tmp_path):
    """What a pass marks as complete is complete, also for a later run that finds it."""
    names, end = {f"files/pass/{name}" for name in ("0", "1", "complete")}, tmp_path / "end"

    def work():
        with work_folder(tmp_path / "w", "work", keep=False) as files:
            (files / "pass").mkdir()
            for name in names:
                (tmp_path / "w" / name).write_text("x")
            end.touch()

    def check():
        if end.exists():
            assert {name for name in tree(tmp_path / "w") if name.startswith("files/")} in (names, set())
        end.unlink(missing_ok=True)
        with work_folder(tmp_path / "w", "work", keep=False) as files:
            (files / "a").write_text("x")
        assert not (tmp_path / "w").exists()

    assert kill_at_every_change(work, check) > 9


def test_a_temporary_folder_of_a_killed_process_goes(tmp_path):
    def work():
        with temporary_folder(tmp_path / "out") as folder:
            (folder / "half").write_text("x")
            assert list(tmp_path.glob(".out.*.tmp")) == [folder]  # those of others are gone: they take room

    for change in range(3, 12):
        killed_before(change, work)
    (tmp_path / ".other.0123abcd.tmp").mkdir()
    (tmp_path / ".other.0123abcd.tmp" / "diary").write_text("mine")
    work()
    assert tree(tmp_path) == {".other.0123abcd.tmp/diary": b"mine"}


STRANGE = {  # what was done to a work folder, in it
    "unmarked": lambda: Path(MARK).unlink(),
    "other mark": lambda: Path(MARK).write_text("other work\n"),
    "folder as mark": lambda: (shutil.rmtree("files"), Path(MARK).unlink(), Path(MARK).mkdir()),
    "file in its place": lambda: (shutil.rmtree("files"), Path("files").write_text("mine")),
    "strange file": lambda: Path("thesis").write_text("mine"),
    "link": lambda: Path("thesis").symlink_to("../elsewhere"),
    "link in its place": lambda: (shutil.rmtree("files"), Path("files").symlink_to("../elsewhere")),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_folder_with_strange_files_is_no_work_folder(tmp_path, monkeypatch, kind):
    folder = tmp_path / "w"
    with work_folder(folder, "work", keep=True) as files:
        (files / "a").write_text("ours")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/diary").write_text("mine")
    monkeypatch.chdir(folder)
    STRANGE[kind]()
    before = tree(tmp_path)
    with pytest.raises(OutputError, match=r"w: "), work_folder(folder, "work", keep=False):
        pass
    assert tree(tmp_path) == before


def test_what_is_added_to_a_work_folder_stays(tmp_path):
    with work_folder(tmp_path / "w", "work", keep=False) as files:
        (files / "a").write_text("ours")
        (tmp_path / "w" / "b").write_text("mine")
    assert sorted(tree(tmp_path / "w")) == ["b"]


@pytest.mark.parametrize("keep", [True, False])
def test_a_work_folder_stays_with_what_a_failed_run_computed(tmp_path, keep):
    for name in ("a", ".a.0123abcd.tmp"):
        with suppress(KeyError), work_folder(tmp_path / "w", "work", keep=keep) as files:
            (files / name).write_text("ours")
            raise KeyError
        assert sorted(tree(tmp_path)) == ([f"w/{MARK}", "w/files/a"] if name == "a" else [])
        shutil.rmtree(tmp_path / "w", ignore_errors=True)


def refused(path, **options):
    with pytest.raises(OutputError) as caught:
        check_output(path, **options)
    return str(caught.value)


def test_outputs_that_cannot_be_are_refused_before_anything_is_made(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    for path, problem in {
        **{"folder": "is a folder", "file/deep/out": "file is not a folder", "a\0b": "NUL", "x" * 300: "too long"},
        **{"loop": "loop", "/proc/out": "can't write into", "/": "is a folder"},
    }.items():
        assert problem in refused(tmp_path / path)
    for path, problem in {"file": "is a file", "/": "root of the file system", "/dev/null": "a folder"}.items():
        assert problem in refused(tmp_path / path, folder=True)
    check_output("/dev/null", inputs=["/dev/null"])
    check_output(tmp_path / "new" / ("ü" * 127))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    assert "can't write into" in refused(tmp_path / "out")


def test_no_input_is_an_output(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("w")
    (tmp_path / "text").write_text("t")
    (tmp_path / "hard").hardlink_to(tmp_path / "text")
    (tmp_path / "soft").symlink_to("text")
    (tmp_path / "alias").symlink_to("model")
    inputs = [str(model), tmp_path / "text", None, "no/such", "\0", "x" * 5000]
    for name in ("text", "hard", "soft", "../" + tmp_path.name + "/text", "model/weights", "alias/weights"):
        assert "input" in refused(tmp_path / name, inputs=inputs)
    check_output(tmp_path / "other", inputs=inputs)
    for name in ("model", "alias", ".", "model/sub/deep"):
        assert "input" in refused(tmp_path / name, inputs=inputs, folder=True, whole=True)
    check_output(tmp_path / "other", inputs=inputs, folder=True, whole=True)
    check_output(tmp_path, inputs=inputs, folder=True)


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=255))
def test_hidden_names_fit_and_differ(name):
    made = name_beside(Path("folder") / name, "12345678.tmp").name
    assert len(made.encode()) <= 255
    assert made.startswith(".")
    assert name_beside(Path("folder") / (name + "x"), "12345678.tmp").name != made


@pytest.mark.parametrize("content", ["mine", "[]", "null", "[" * 100_000, '{"recipe": 1}', '{"a": 1}'])
def test_a_file_of_another_program_is_told_from_ours(tmp_path, content):
    path = tmp_path / "run.json"
    assert read_record(path) is None
    path.write_text(content)
    with pytest.raises(OutputError, match=r"run\.json: "):
        read_record(path, ("recipe", "seed"))
    path.write_text('{"recipe": 1, "seed": 2, "more": 3}')
    assert read_record(path, ("recipe", "seed")) == {"recipe": 1, "seed": 2, "more": 3}


def test_the_keys_whose_values_differ_are_named():
    ours = {"a": {"b": (1, {"c": 2}), "d": None}, "e": 1}
    assert differences(ours, {"a": {"b": [1, {"c": 2}]}, "e": 1, "more": 2}) == []
    assert differences(ours, {"a": {"b": [1, {"c": 3}], "f": 1}}) == ["a.b.1.c", "a.f", "e"]
    assert differences(ours, {"a": {"b": [1]}, "e": 1}) == ["a.b"]


def test_a_lock_is_held_again_by_its_thread_alone(tmp_path):
    with exclusive(tmp_path / "a"):
        with exclusive(tmp_path / "a"):
            pass
        assert name_beside(tmp_path / "a", "lock").exists()
    (tmp_path / ".a.lock").write_text("mine")
    with pytest.raises(OutputError, match="is not a lock"), exclusive(tmp_path / "a"):
        pass
    assert tree(tmp_path) == {".a.lock": b"mine"}


def test_a_lock_that_cannot_be_made_is_an_error_of_the_output(tmp_path):
    for name in (tmp_path / ".lock", name_beside(tmp_path, "lock")):
        with pytest.raises(OutputError, match=f"{tmp_path}: can't be written: no"), writing(tmp_path):
            raise PermissionError(errno.EACCES, "no", str(name))


def test_a_full_disk_names_the_path_and_keeps_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def fill():
        with full_after(10_000), atomic_write(path) as stream:
            stream.write("x" * 100_000)

    with pytest.raises(OutputError, match=r"/a: can't be written: .*make room"):
        fill()
    assert tree(tmp_path) == {"a": b"old"}
    with pytest.raises(OutputError, match=r"^/dev/full: .*make room"), atomic_write("/dev/full") as stream:
        stream.write("x")


def test_errors_of_other_files_keep_their_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="other"), writing(tmp_path / "a"):
        (tmp_path / "other").read_text()
    with pytest.raises(BrokenPipeError), writing(tmp_path / "a"):
        raise BrokenPipeError(errno.EPIPE, "gone")
    with pytest.raises(OutputError, match="/a: "), writing(tmp_path / "a"):
        (tmp_path / "a").read_text()


def test_a_lock_of_a_dead_process_is_no_obstacle(tmp_path):
    def hold():
        with exclusive(tmp_path / "a"):
            os._exit(9)

    killed_before(10_000, hold)
    assert (tmp_path / ".a.lock").exists()
    with exclusive(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []
