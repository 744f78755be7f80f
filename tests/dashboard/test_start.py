from __future__ import annotations

import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from thalweg.cli import command_line
from thalweg.dashboard.security import Access
from thalweg.dashboard.start import PORT, NoServerError, PageServer, dashboard


def test_the_command_serves_until_it_is_interrupted(folder: Path) -> None:
    script = "from thalweg.cli import main; main()"
    command = [sys.executable, "-c", script, "dashboard", "--port", "0", "--folder", str(folder)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background lets them ignore interrupts, and so their children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no thread is forked away
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        url = server.stdout.readline().strip()
        with urlopen(url, timeout=30) as answer:  # noqa: S310 - the address that it printed
            assert b"Thalweg" in answer.read()
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
        assert server.stderr.read() == ""


def test_the_command_refuses_a_short_token() -> None:
    result = CliRunner().invoke(command_line([]), ["dashboard", "--host", "0.0.0.0", "--token", "short"])  # noqa: S104
    assert result.exit_code == 1
    assert "a token has 16 letters or more" in result.output


def test_a_port_that_is_named_and_taken_is_an_error(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NoServerError, match=f"127.0.0.1:{port}.*choose another port"):
            PageServer(folder, "127.0.0.1", port, Access())


def test_the_next_port_is_taken_if_none_is_named(folder: Path) -> None:
    servers = [PageServer(folder, "127.0.0.1", None, Access()) for _ in range(2)]
    assert servers[0].url != servers[1].url
    assert all(int(server.url.rpartition(":")[2].rstrip("/")) >= PORT for server in servers)
    for server in servers:
        server.close()


def test_the_address_has_the_token_where_one_is_needed(folder: Path) -> None:
    access = Access.to("0.0.0.0")  # noqa: S104 - only the rules of that address
    server = PageServer(folder, "127.0.0.1", 0, access)
    assert server.url.endswith(f"/?token={access.token}")
    server.close()


def test_a_program_may_write_events_alone(folder: Path) -> None:
    with dashboard(folder=folder, serve=False) as page:
        assert page.url is None
        assert repr(page) == f"Dashboard(events in {folder})"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_second_call_returns_the_page_that_there_is(folder: Path) -> None:
    first = dashboard(folder=folder, port=0)
    assert dashboard(folder=folder, port=0) is first
    first.close()
    second = dashboard(folder=folder, port=0)
    assert second is not first
    second.close()


def test_the_function_has_the_name_of_its_package_and_can_be_called_again(folder: Path) -> None:
    import thalweg as tw
    import thalweg.dashboard.svg  # as the picture of an explanation does

    page = tw.dashboard(serve=False, folder=folder)
    try:
        assert tw.dashboard(serve=False, folder=folder) is page
    finally:
        page.close()
