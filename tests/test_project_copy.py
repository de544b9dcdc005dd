"""The copy that the tests of laws share: whatever a test changes in it is undone."""

import os
import shutil

import pytest
from project_copy import ROOT, RestoredFolder


@pytest.fixture
def restored(tmp_path):
    for name in ("a.py", "b.py", "folder/c.py", "folder/inner/d.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\n")
    (tmp_path / "empty").mkdir()
    return RestoredFolder(tmp_path)


def contents(folder) -> dict:
    """Everything below a folder, with its mode."""
    return {
        str(path.relative_to(folder)): (path.is_file() and path.read_text(), path.stat().st_mode)
        for path in folder.rglob("*")
    }


def edit(folder):
    (folder / "a.py").write_text("other\n")


def edit_without_another_length(folder):
    (folder / "a.py").write_text("TEXT of a.py\n")


def append(folder):
    with open(folder / "folder" / "c.py", "a") as file:
        file.write("more\n")


def add_a_file(folder):
    (folder / "folder" / "new.py").write_text("new\n")


def add_folders(folder):
    (folder / "new" / "inner").mkdir(parents=True)
    (folder / "new" / "inner" / "x.py").touch()


def add_a_link(folder):
    (folder / "link").symlink_to("folder")


def delete(folder):
    (folder / "folder" / "c.py").unlink()


def delete_folders(folder):
    shutil.rmtree(folder / "folder")
    (folder / "empty").rmdir()


def rename(folder):
    (folder / "a.py").rename(folder / "folder" / "a.py")


def exchange(folder):
    (folder / "a.py").replace(folder / "b.py")


def rename_a_folder(folder):
    (folder / "folder").rename(folder / "other")


def a_file_for_a_folder(folder):
    shutil.rmtree(folder / "folder")
    (folder / "folder").write_text("a file\n")


def a_folder_for_a_file(folder):
    (folder / "a.py").unlink()
    (folder / "a.py").mkdir()
    (folder / "a.py" / "b.py").touch()


def a_link_for_a_file(folder):
    (folder / "a.py").unlink()
    (folder / "a.py").symlink_to("b.py")


def forbid(folder):
    (folder / "folder").chmod(0o500)
    (folder / "a.py").chmod(0o400)


def edit_with_the_old_time(folder):
    before = (folder / "a.py").stat()
    (folder / "a.py").write_text("shorter\n")
    os.utime(folder / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = [
    edit,
    edit_without_another_length,
    append,
    add_a_file,
    add_folders,
    add_a_link,
    delete,
    delete_folders,
    rename,
    exchange,
    rename_a_folder,
    a_file_for_a_folder,
    a_folder_for_a_file,
    a_link_for_a_file,
    forbid,
    edit_with_the_old_time,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_undone(restored, tmp_path, change):
    before = contents(tmp_path)
    for _ in range(3):  # also the same change again, at once
        change(tmp_path)
        assert contents(tmp_path) != before
        assert restored.restore() != []
        assert contents(tmp_path) == before
        assert restored.restore() == []


def test_a_test_finds_what_another_has_changed_as_it_was(project_copy, project):
    page = project / "README.md"
    before = page.read_text()
    page.write_text("broken")
    (project / "helpers" / "new.py").touch()
    (project / "TEACHING.md").unlink()
    assert project_copy.restore() == ["README.md", "TEACHING.md", "helpers/new.py"]
    assert page.read_text() == before and (project / "TEACHING.md").exists()
    assert not (project / "helpers" / "new.py").exists()


def test_the_copy_is_of_the_project_as_it_is(project):
    for name in ("README.md", "helpers/strategy_clinic/cli.py", "tests/conftest.py"):
        assert (project / name).read_bytes() == (ROOT / name).read_bytes()
