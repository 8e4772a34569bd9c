"""docs/deploy.md and the files that it names: their settings, figures and paths exist."""

import json
import re
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from nmt.config.commands import ServeConfig
from nmt.config.compose import compose
from nmt.serving.server import DRAIN_SECONDS

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "deploy.md"
UNIT = ROOT / "docs" / "deploy" / "nmt@.service"
FILES = [DOCUMENT, ROOT / "Containerfile", *sorted((ROOT / "docs" / "deploy").iterdir())]
TEXTS = {file.name: file.read_text(encoding="utf-8") for file in FILES}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_settings_of_the_server_exist(name: str) -> None:
    named = set(re.findall(r"\bserve\.([a-z_]+)", TEXTS[name]))
    assert named <= {field.name for field in fields(ServeConfig)}


def test_commands_that_serve_have_valid_settings() -> None:
    start = re.search(r"^ExecStart=\S+ serve (.*)$", TEXTS[UNIT.name], re.MULTILINE)
    entry, default = re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", TEXTS["Containerfile"], re.MULTILINE)
    assert start
    unit = compose(shlex.split(start[1].replace("%i", "5001").replace("%d", "/run/credentials/nmt@5001.service")))
    assert (unit.serve.port, unit.serve.key_file) == (
        5001,
        "/run/credentials/nmt@5001.service/keys",
    )
    assert unit.serve.named_folders == [("en-de", "/srv/nmt/models/en-de")]
    container = compose([*json.loads(entry)[2:], *json.loads(default)])
    assert (container.serve.host, container.serve.named_folders) == (
        "0.0.0.0",
        [("default", "/models/default")],
    )


def test_limits_of_unit_and_proxy_fit_those_of_the_server() -> None:
    defaults = ServeConfig()
    assert seconds("TimeoutStopSec=", UNIT.name) > DRAIN_SECONDS
    assert seconds("proxy_read_timeout ", "nginx.conf") > defaults.timeout
    assert f"client_max_body_size {defaults.max_bytes // 1000}k;" in TEXTS["nginx.conf"]
    assert f"max_size {defaults.max_bytes // 1000}KB" in TEXTS["Caddyfile"]


def seconds(setting: str, name: str) -> int:
    found = re.search(rf"{setting}(\d+)", TEXTS[name])
    assert found
    return int(found[1])


def test_figures_to_watch_are_those_of_the_server() -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="needs the extra serve")
    from nmt.serving.metrics import Metrics

    families = parser.text_string_to_metric_families(Metrics().text().decode())
    known = {name for family in families for name in (family.name, f"{family.name}_total")}
    named = set(re.findall(r"`(nmt_[a-z_]+)`", TEXTS[DOCUMENT.name]))
    assert len(named) >= 4
    assert named <= known


def test_paths_and_extras_exist() -> None:
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", TEXTS["Containerfile"], re.MULTILINE)
    assert copied
    assert all((ROOT / path).exists() for line in copied for path in line.split())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name in ("Containerfile", DOCUMENT.name):
        (listed,) = set(re.findall(r"\[([a-z0-9,]+)\]\"$", TEXTS[name], re.MULTILINE))
        assert set(listed.split(",")) <= set(extras)
    for path in re.findall(r"docs/deploy/[\w@.]+", TEXTS[DOCUMENT.name]):
        assert (ROOT / path).is_file()
