"""What several processes of the check do when one fails."""

import pytest

from nmt.features.doctor.together import Task, compare


def test_the_error_of_a_failed_process_is_said_and_not_only_its_exit_code() -> None:
    task = Task("cpu", "no-such-model", compiled=False, batch_tokens=512, device_tokens=0, steps=1)
    with pytest.raises(RuntimeError, match="no-such-model"):
        compare(task, 2, 120)
