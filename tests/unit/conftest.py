"""One browser for the tests of all pages: it takes seconds to start."""

from collections.abc import Iterator

import pytest

from tests.browser import Browser, start


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    driver = start(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()
