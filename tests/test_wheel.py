"""The wheel installs into a clean environment, and the README's example runs there."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, as `pip install 'thalweg[spark]'` makes it, beside this PySpark."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT))
    run(sys.executable, "-m", "venv", str(folder / "venv"))
    (wheel,) = folder.glob("*.whl")
    python = folder / "venv" / "bin" / "python"
    constraints = folder / "constraints.txt"
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    constraints.write_text(re.sub(r"(?m)^pyspark==.*", f"pyspark=={version('pyspark')}", pins), encoding="utf-8")
    run(str(python), "-m", "pip", "install", "-q", "-c", str(constraints), f"{wheel}[spark]")
    return folder


def run(*command: str, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    environment = kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "SPARK_LOCAL_IP": "127.0.0.1"} | variables
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, env=environment)
    return done.stdout + done.stderr if done.returncode else done.stdout


def example(folder: Path) -> Path:
    """The README's example as a program."""
    found = re.search(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    program = folder / "example.py"
    program.write_text(found[1], encoding="utf-8")
    return program


@pytest.mark.cluster
def test_the_example_of_the_readme_runs(clean_environment: Path) -> None:
    binaries = clean_environment / "venv" / "bin"
    program = str(example(clean_environment))
    output = run(str(binaries / "python"), program, PATH=f"{binaries}{os.pathsep}{os.environ['PATH']}")
    assert "is_spam" in output, output
    assert "\n100\n" in f"\n{output}", output


@pytest.mark.cluster
def test_the_command_of_the_wheel_starts(clean_environment: Path) -> None:
    assert "doctor" in run(str(clean_environment / "venv" / "bin" / "thalweg"), "--help")


@pytest.mark.cluster
def test_an_environment_that_is_not_activated_says_what_to_set(clean_environment: Path, tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    python = clean_environment / "venv" / "bin" / "python"
    output = run(str(python), str(example(clean_environment)), PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert f"PYSPARK_PYTHON={python}" in output, output
