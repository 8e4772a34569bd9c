"""The Containerfile: what can be checked of it without building the image."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8")
STEPS = [line.split(maxsplit=1) for line in TEXT.replace("\\\n", " ").splitlines() if line and line[0] != "#"]


def arguments(step: str) -> list[str]:
    return [text for name, text in STEPS if name == step]


def test_the_base_image_has_a_version() -> None:
    assert arguments("FROM")
    assert all(re.search(r":\d+\.\d+", image) for image in arguments("FROM"))


def test_the_user_is_a_number_that_is_not_root() -> None:
    assert [int(user) for user in arguments("USER")] == [10001]
    assert TEXT.index("USER") < TEXT.index("ENTRYPOINT")


def test_each_file_to_copy_exists_and_is_all_that_is_not_ignored() -> None:
    copied = {name for text in arguments("COPY") if not text.startswith("--from") for name in text.split()[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_each_command_is_valid_for_the_shell() -> None:
    assert arguments("RUN")
    for command in arguments("RUN"):
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_a_compiler_and_headers_are_there_at_run_time() -> None:
    installed = arguments("RUN")[-1].split()
    assert {"gcc", "libc6-dev", "python3-dev", "libgomp1"} <= {*installed}
