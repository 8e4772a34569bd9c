"""The folder of translations belongs to the settings with which its first shard is made."""

from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.synthesis.folder import SynthesisFolder


def test_a_folder_without_shards_takes_other_settings(tmp_path: Path) -> None:
    folder = SynthesisFolder(tmp_path / "made", lines=35, shard_lines=10)
    with folder.exclusive({"decoding.beam": 4}):
        pass  # only an estimate, or an interruption before the first shard
    with folder.exclusive({"decoding.beam": 1}):
        folder.shard(0).touch()
    with folder.exclusive({"decoding.beam": 1}):
        assert folder.missing() == [1, 2, 3]
    with pytest.raises(UserError, match=r"another decoding\.beam \(1, not 4\)"), folder.exclusive({"decoding.beam": 4}):
        pass


def test_a_folder_without_shards_and_with_the_manifest_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"tasks": {}}')  # as that of a prepared corpus, which must not be deleted
    with pytest.raises(UserError) as refused, SynthesisFolder(tmp_path, 35, 10).exclusive({}):
        pass
    assert "is no folder of translations" in str(refused.value)
    assert "delete" not in str(refused.value)


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"made_with": {}, "seal": "another"}')
    with pytest.raises(UserError, match="is damaged"), SynthesisFolder(tmp_path, 35, 10).exclusive({}):
        pass
