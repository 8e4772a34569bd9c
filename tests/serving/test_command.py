"""Models that `nmt serve` loads."""

from pathlib import Path

import pytest

from nmt.cli import composed_settings
from nmt.config.commands import ServeConfig
from nmt.config.tree import Config
from nmt.errors import ConfigError


@pytest.mark.parametrize("entry", ["outputs/demo", "small:outputs/demo"])
def test_a_model_to_serve_is_a_folder(entry: str) -> None:
    name = "small" if ":" in entry else "demo"
    assert ServeConfig(models=[entry]).named_folders == [(name, "outputs/demo")]


@pytest.mark.parametrize("origin", ["example.org", "https://example.org/", "https://Example.org", "null"])
def test_origins_that_no_browser_sends_are_refused(origin: str) -> None:
    with pytest.raises(ConfigError, match=r"serve\.origins=.* must be an origin"):
        ServeConfig(origins=[origin])


@pytest.mark.parametrize(
    ("given", "named"),
    [(["engine=torch", "decoding.beam=2"], "engine, decoding.beam"), (["decoding=parsing"], "decoding")],
)
def test_settings_of_a_model_are_refused_for_models_that_have_their_own(given: list[str], named: str) -> None:
    composed_settings([*given, "name=tiny"])
    with pytest.raises(ConfigError, match=f"^serve.models and {named}: each of these models has .* leave out"):
        composed_settings([*given, "serve.models=[tiny:folder]"])


def test_a_link_is_followed_once_so_that_a_later_process_has_the_same_model(tmp_path: Path) -> None:
    process = pytest.importorskip("nmt.serving.process", reason="needs the extra serve", exc_type=ImportError)
    (tmp_path / "model-1").mkdir()
    (tmp_path / "model").symlink_to("model-1")
    found = process.ModelProcess("tiny", Config(), str(tmp_path / "model"))
    (tmp_path / "model").unlink()
    assert found.folder == str((tmp_path / "model-1").resolve())
