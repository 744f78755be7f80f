"""Every code block of the documentation runs, every command that it shows exists, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml

import thalweg.cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "decisions" not in page.parts)]
RUN_ELSEWHERE = {  # pages whose code needs a broker, jars, or a server that stays up; by which tests it is run
    "docs/kafka.md": "tests/kafka",
    "docs/dashboard.md": "tests/dashboard",
    "docs/tables.md": "tests/delta",
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
CHECKPOINT = re.compile(r'"(checkpoints?(?:/[^"]*)?)"')
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
SETTINGS = (
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The code blocks of a page in a language, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    return [
        (text[: found.start(2)].count("\n") + 1, found[2]) for found in BLOCK.finditer(text) if found[1] == language
    ]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.fixture
def own_folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Relative paths, of Python and of Spark, begin at a folder of the test."""
    monkeypatch.chdir(tmp_path)
    session: Any = spark  # the JVM keeps the folder that it was started in, and has no public way to change it
    hadoop = session._jvm.org.apache.hadoop.fs  # noqa: SLF001
    files = hadoop.FileSystem.get(session._jsc.hadoopConfiguration())  # noqa: SLF001
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(tmp_path)))
    yield
    files.setWorkingDirectory(before)


@pytest.fixture
def settings_of_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, whose settings and queries do not outlive the test."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    yield spark
    for query in spark.streams.active:
        query.stop()
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page for page in pages_with("python") if named(page) not in RUN_ELSEWHERE], ids=named)
@pytest.mark.usefixtures("own_folder", "settings_of_spark")
def test_code_runs(page_names: dict[str, Any], page: Path, tmp_path: Path) -> None:
    names = page_names | {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        # Checkpoints of Spark begin at the folder in which the JVM was started, whatever is set.
        code = CHECKPOINT.sub(rf'"{tmp_path}/\1"', code)  # noqa: PLW2901
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)  # noqa: S102 - the code of our own pages


@pytest.mark.parametrize("page", pages_with("toml"), ids=named)
def test_settings_are_toml(page: Path) -> None:
    for _, text in blocks(page, "toml"):
        assert tomllib.loads(text)


@pytest.mark.parametrize("page", pages_with("yaml"), ids=named)
def test_settings_are_yaml(page: Path) -> None:
    for _, text in blocks(page, "yaml"):
        assert yaml.safe_load(text)


@pytest.mark.parametrize("page", pages_with("console"), ids=named)
def test_commands_exist(page: Path) -> None:
    main = typer.main.get_command(thalweg.cli.main)
    for _, text in blocks(page, "console"):
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words and Path(words[0]).name == "thalweg":
                check_command(main, words[1:])


def check_command(command: Any, words: list[str]) -> None:  # noqa: ANN401 - a command of the library that typer uses
    """Find the command, and each option that is given, without running anything."""
    with command.make_context("thalweg", [], resilient_parsing=True) as context:
        if words and hasattr(command, "get_command"):
            found = command.get_command(context, words[0])
            if words[0].startswith("--"):
                return
            assert found is not None, f"there is no command {words[0]}"
            check_command(found, words[1:])
            return
        known = {name for parameter in command.params for name in parameter.opts}
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        assert set(options) <= known | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target, _ in LINK.findall(text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{named(page)} links to {target}"


def test_code_that_is_run_elsewhere_has_tests_there() -> None:
    assert all((ROOT / page).is_file() and (ROOT / tests).is_dir() for page, tests in RUN_ELSEWHERE.items())


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    missing = [named(page) for page in PAGES[1:] if str(page.relative_to(DOCS)) not in navigation]
    assert not missing
