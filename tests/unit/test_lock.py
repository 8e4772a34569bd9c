"""The three files that `make lock` writes agree with each other, and installing from them verifies hashes."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([a-z0-9.-]+)==(\S+)", re.MULTILINE)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_each_installed_package_has_a_hash_and_torch_is_left_to_its_own_index() -> None:
    packages = re.split(r"\n(?=\S)", text("requirements.lock").split("\n", 1)[1])
    assert len(packages) > 50
    assert [each for each in packages if not re.search(r"--hash=sha256:[0-9a-f]{64}", each)] == []
    assert "torch" not in dict(PIN.findall(text("requirements.lock")))


def test_the_lock_the_constraints_and_the_list_of_components_agree() -> None:
    components = json.loads(text("sbom.cdx.json"))["components"]
    installed, constrained = (set(PIN.findall(text(name))) for name in ("requirements.lock", "constraints.lock"))
    assert installed < constrained
    assert constrained <= {(each["name"], each["version"]) for each in components}
    assert {"torch", "ctranslate2", "h11"} <= dict(constrained).keys()


def test_the_list_of_components_names_no_index() -> None:
    assert "://" not in json.dumps(json.loads(text("sbom.cdx.json"))["components"])
