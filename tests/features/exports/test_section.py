"""The page of a run links its exports."""

from dataclasses import replace
from pathlib import Path

from nmt.config.schema import Config, PathsConfig
from nmt.features.exports.record import ExportRecord, VerificationRecord
from nmt.features.exports.section import links_section
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.runs.section import ShownRun


def test_the_page_links_the_card_of_each_export(tmp_path: Path) -> None:
    run = ShownRun(replace(Config(), name="small", paths=PathsConfig(outputs=str(tmp_path))), {})
    assert links_section(run) is None
    for target in ("argos", "ctranslate2"):
        folder = tmp_path / "small" / "export" / f"{target}-int8"
        folder.mkdir(parents=True)
        ExportRecord(
            nmt="1", target=target, quantization="int8", languages=("en", "de"), positions=9,
            checkpoint=CheckpointRecord("averaged", 7, "0"),
            verified=VerificationRecord(4, 3, 0.5, None, "3 of 4 <identical>"),
        ).write(folder)  # fmt: skip
    section = links_section(run)
    assert section is not None
    for target in ("argos", "ctranslate2"):
        link = f'<a href="export/{target}-int8/README.md">{target}, int8</a>: 3 of 4 &lt;identical&gt;'
        assert link in section.body
