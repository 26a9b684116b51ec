"""Files that commands write: all or none, and one line where they cannot."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from synapticos.errors import UserError
from synapticos.host.draw import draw_boxes
from synapticos.host.files import write_files


def test_files_of_subfolders_replace_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")
    write_files(tmp_path, {"a": b"new", "c/d/e": b"1"})
    assert (tmp_path / "a").read_bytes() == b"new" and (tmp_path / "c/d/e").read_bytes() == b"1"
    assert sorted(os.listdir(tmp_path)) == ["a", "c"]


def test_what_cannot_all_be_written_is_not_written_at_all(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(UserError, match=r"cannot be written \(.*\); give another folder"):
        write_files(tmp_path, {"a": b"new", "b": b"1", "b/c": b"2"})
    assert os.listdir(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "old"


def test_no_folder_is_left_where_nothing_could_be_written(tmp_path):
    with pytest.raises(UserError, match="cannot be written"):
        write_files(tmp_path / "x" / "y", {"b": b"1", "b/c": b"2"})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["faces.wibble", "faces", "folder.png"])
def test_boxes_that_cannot_be_drawn_are_one_line(tmp_path, name):
    (tmp_path / "folder.png").mkdir()
    result = SimpleNamespace(input=np.zeros((1, 4, 4, 3), np.uint8), arrays=[np.zeros((1, 6), np.float32)])
    report = SimpleNamespace(results=[result])
    with pytest.raises(UserError, match=r"is no name of a picture|cannot be written"):
        draw_boxes(report, tmp_path / name)
    assert os.listdir(tmp_path) == ["folder.png"]
    draw_boxes(report, tmp_path / "ok.png")
    assert (tmp_path / "ok.png").read_bytes()[:4] == b"\x89PNG"
