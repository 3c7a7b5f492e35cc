import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tamis_command() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs the command line of the repository, which `cargo xtask` compiles."""
    binary = os.environ.get("TAMIS_BIN") or shutil.which("tamis")
    assert binary, "set TAMIS_BIN to the command, as `cargo xtask python` does"

    def run(
        *arguments: object, **options: object
    ) -> subprocess.CompletedProcess[bytes]:
        words = [binary, *map(str, arguments)]
        return subprocess.run(words, check=True, capture_output=True, **options)  # type: ignore[call-overload]

    return run
