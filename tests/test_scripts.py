"""The scripts behind the Makefile, with nothing on the PATH but stubs of the system's own programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


class Machine:
    """A bare machine: its PATH holds `env` and the programs that a test adds."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.log = root / "log"
        self.log.touch()
        (self.bin / "env").symlink_to(shutil.which("env") or "/usr/bin/env")

    def add(self, program: str, body: str) -> None:
        """Add a program that logs how it was called and then runs `body`."""
        path = self.bin / program
        path.write_text(f'#!/bin/sh\necho "{program} $*" >> "{self.log}"\n{body}\n')
        path.chmod(0o755)

    def add_java(self, version: str) -> None:
        self.add("java", java_stub(version))

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", SCRIPTS / script, *arguments],
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def calls(self, program: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(f"{program} ")]


def java_stub(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


def typed_commands(output: str) -> list[str]:
    """The commands that a script asks to be typed: its indented lines."""
    return [line.strip() for line in output.splitlines() if line.startswith("    ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
def test_recent_java_is_silent(machine: Machine, version: str) -> None:
    machine.add_java(version)
    done = machine.run("ensure-java.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("version", ["11.0.20", "1.8.0_301"])
def test_old_java_without_package_manager_asks_for_one_command(machine: Machine, version: str) -> None:
    machine.add_java(version)
    done = machine.run("ensure-java.sh")
    assert done.returncode == 1
    assert typed_commands(done.stderr) == ["export JAVA_HOME=/path/to/jdk"]


def test_java_home_decides_when_it_is_set(machine: Machine, tmp_path: Path) -> None:
    machine.add_java("21")
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{java_stub('11')}\n")
    java.chmod(0o755)
    done = machine.run("ensure-java.sh", JAVA_HOME=str(home))
    assert done.returncode == 1
    assert typed_commands(done.stderr) == ["unset JAVA_HOME"]

    java.write_text(f"#!/bin/sh\n{java_stub('17')}\n")
    assert machine.run("ensure-java.sh", JAVA_HOME=str(home)).returncode == 0


def only_has(machine: Machine, package: str, program: str, body: str) -> str:
    """The body of a package manager that has one package, which brings one program."""
    machine.add("unpacked", body)
    return f"""
case "$*" in
    update) ;;
    *" {package}") /bin/mv "{machine.bin}/unpacked" "{machine.bin}/{program}" ;;
    *) echo "no such package: $*" >&2; exit 100 ;;
esac"""


def test_root_installs_the_newest_java_that_apt_has(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("apt-get", only_has(machine, "openjdk-17-jre-headless", "java", java_stub("17")))
    done = machine.run("ensure-java.sh")
    assert done.returncode == 0, done.stderr
    assert [call.split()[-1] for call in machine.calls("apt-get")] == [
        "update",
        "openjdk-21-jre-headless",
        "openjdk-17-jre-headless",
    ]


def test_passwordless_sudo_installs_java(machine: Machine) -> None:
    machine.add("id", "echo 1000")
    machine.add("sudo", 'shift; [ "$1" = true ] || exec "$@"')
    machine.add("dnf", only_has(machine, "java-21-openjdk-headless", "java", java_stub("21")))
    done = machine.run("ensure-java.sh")
    assert done.returncode == 0, done.stderr
    assert machine.calls("dnf") == ["dnf install -y java-21-openjdk-headless"]


def test_without_root_nothing_is_installed(machine: Machine) -> None:
    machine.add("id", "echo 1000")
    machine.add("sudo", "exit 1")
    machine.add("apt-get", "")
    done = machine.run("ensure-java.sh")
    assert done.returncode == 1
    assert typed_commands(done.stderr) == [f"sudo sh {SCRIPTS / 'ensure-java.sh'}"]
    assert machine.calls("apt-get") == []


def test_failed_installation_shows_what_the_package_manager_said(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("apk", "echo 'unable to select packages' >&2; exit 1")
    done = machine.run("ensure-java.sh")
    assert done.returncode == 1
    assert "unable to select packages" in done.stderr
    assert len(typed_commands(done.stderr)) == 1


def test_python_that_does_not_run_is_passed_over(machine: Machine) -> None:
    machine.add("python3.13", "exit 127")
    machine.add("python3.11", "exit 0")
    machine.add("python3", "exit 0")
    done = machine.run("ensure-python.sh")
    assert (done.returncode, done.stdout) == (0, "python3.11\n")


def test_missing_venv_module_is_installed(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("python3", "exit 1")
    machine.add("apt-get", only_has(machine, "python3.12-venv", "python3.12", "exit 0"))
    done = machine.run("ensure-python.sh")
    assert (done.returncode, done.stdout) == (0, "python3.12\n"), done.stderr


def test_no_python_and_no_package_manager_asks_for_one_command(machine: Machine) -> None:
    done = machine.run("ensure-python.sh")
    assert done.returncode == 1
    assert len(typed_commands(done.stderr)) == 1


PYTEST_STUB = """
case "$4" in
    "(joins"*) echo "rest: 2 passed"; exit {rest} ;;
    "(spark"*) echo "spark: 1 passed"; exit {spark} ;;
esac"""


@pytest.mark.parametrize(
    ("of_spark", "of_rest", "status"),
    [(0, 0, 0), (1, 0, 1), (0, 1, 1), (5, 0, 0), (0, 5, 0), (5, 1, 1), (1, 5, 1), (5, 5, 5), (2, 1, 2)],
)
def test_tests_run_in_two_processes_and_either_may_fail(
    machine: Machine, of_spark: int, of_rest: int, status: int
) -> None:
    for program in ("mktemp", "rm", "cat"):
        (machine.bin / program).symlink_to(shutil.which(program) or f"/bin/{program}")
    machine.add("python", PYTEST_STUB.format(spark=of_spark, rest=of_rest))
    done = machine.run("run-tests.sh", "python", "not long", "-k", "some name")
    assert done.returncode == status
    assert done.stdout == "spark: 1 passed\nrest: 2 passed\n"
    assert all("and not long " in call and call.endswith(" -k some name") for call in machine.calls("python"))
    assert len(machine.calls("python")) == 2
