"""`tw.dashboard`: shows the runs of this program, and of this user's other programs, on a page."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.dashboard.event_log import default_folder, make_private_folder
from thalweg.dashboard.security import PARAMETER, Access, is_unspecified
from thalweg.keywords import checks_keywords

if TYPE_CHECKING:
    from thalweg.dashboard.recorder import Recorder

HOST = "127.0.0.1"
PORT = 8642
OTHER_PORTS = 20  # that are tried if the port is taken and the user named none
START_SECONDS = 20.0  # that the server may take to start
CLOSE_SECONDS = 2  # that open pages are given when the server closes


_lock = threading.Lock()
_open: dict[tuple[Any, ...], Dashboard] = {}  # by the arguments of `dashboard`


class NoServerError(RuntimeError):
    """The page's server cannot be started."""


class Dashboard:
    """A page that is served, and the events that this program writes for it.

    `url` is its address, with its token if there is any; None if this program only writes events. `close` ends both.
    """

    def __init__(self, server: PageServer | None, recorder: Recorder, folder: Path) -> None:
        self.url = None if server is None else server.url
        self.folder = folder
        self.is_closed = False
        self._server = server
        self._recorder = recorder

    def close(self) -> None:
        """Stop writing events, and stop serving the page."""
        self.is_closed = True
        self._recorder.close()
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> Dashboard:  # noqa: PYI034 - the class has no subclasses
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Dashboard({self.url or f'events in {self.folder}'})"


@checks_keywords("tw.dashboard")
def dashboard(
    *shown: Any,  # noqa: ANN401 - DataFrames, streaming queries, driven streams and sessions
    host: str = HOST,
    port: int | None = None,
    token: str | None = None,
    names: Sequence[str] = (),
    folder: str | os.PathLike[str] | None = None,
    serve: bool = True,
) -> Dashboard:
    """Show what the queries of this program do, live, on a page in the browser.

    Needs ``pip install "thalweg[dashboard]"``. The page shows the runs of all programs of this user that call this
    function, also after they have ended: events are kept for a week. A second call with the same arguments, as when the
    cell of a notebook runs again, returns the page that there is.

    Parameters
    ----------
    shown
        What to show: what `tw.where`, `tw.join` and `tw.stream` gave, streaming queries, or sessions. By default all
        runs of this program.
    host, port
        Where to serve the page. By default the address can be reached from this machine alone. Any other address needs
        a token. If no port is named and the usual port is taken, the next free port is used.
    token
        The token that readers of the page need, 16 letters or more. By default a token is made where it is needed.
    names
        More names by which the page may be called, such as the name of a proxy.
    folder
        Where events are kept, by default in the user's folder for state.
    serve
        False only writes events, for a page that is served by ``thalweg dashboard``.

    Examples
    --------
    >>> page = dashboard()  # doctest: +SKIP
    >>> page.url  # doctest: +SKIP
    'http://127.0.0.1:8642/'
    """
    from thalweg.dashboard.recorder import Recorder

    keys = [key for each in shown for key in _keys_of(each)]
    chosen = default_folder() if folder is None else Path(folder).expanduser()
    arguments = (tuple(keys), host, port, token, tuple(names), chosen, serve)
    with _lock:
        opened = _open.get(arguments)
        if opened is not None and not opened.is_closed:
            return opened
        make_private_folder(chosen)
        server = PageServer(chosen, host, port, Access.to(host, token, names)) if serve else None
        recorder = Recorder(chosen, keys)
        recorder.start()
        _open[arguments] = Dashboard(server, recorder, chosen)
        return _open[arguments]


def serve_page(
    host: str,
    port: int | None,
    token: str | None,
    names: Sequence[str],
    folder: Path | None,
    tell: Callable[[str], object],
) -> None:
    """Serve the page until the program is interrupted, and tell its address first."""
    chosen = default_folder() if folder is None else folder
    make_private_folder(chosen)
    server = PageServer(chosen, host, port, Access.to(host, token, names))
    tell(server.url)
    try:
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()


class PageServer:
    """Serves the page in a thread, until it is closed."""

    def __init__(self, folder: Path, host: str, port: int | None, access: Access) -> None:
        try:
            import uvicorn

            from thalweg.dashboard.server import make_app
            from thalweg.dashboard.store import EventStore
        except ImportError as error:
            raise NoServerError(f'the page needs {error.name}: run pip install "thalweg[dashboard]"') from None
        listening = _listen(host, port)
        address, number = listening.getsockname()[:2]
        name = socket.gethostname() if is_unspecified(address) else address
        shown = f"[{name}]" if ":" in name else name
        query = f"?{PARAMETER}={access.token}" if access.token else ""
        self.url = f"http://{shown}:{number}/{query}"
        self._app = make_app(EventStore(folder), access)
        config = uvicorn.Config(
            self._app,
            log_level="warning",
            access_log=False,  # it would write tokens
            timeout_graceful_shutdown=CLOSE_SECONDS,
            server_header=False,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="thalweg-page", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise NoServerError(f"the page cannot be served at {self.url}: see the log")
            time.sleep(0.01)

    def wait(self) -> None:
        """Serve until the program is interrupted."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop serving."""
        if self._thread.is_alive():
            self._app.state.broadcast.close()
        self._server.should_exit = True
        self._thread.join()


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket at the address, or at the next free port if the user named none."""
    ports = range(PORT, PORT + OTHER_PORTS) if port is None else (port,)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reason: OSError | None = None
    for number in ports:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            listening.listen()
        except OSError as error:
            listening.close()
            reason = error
            continue
        return listening
    raise NoServerError(f"the page cannot be served at {host}:{ports[0]}: {reason}; choose another port")


def _keys_of(shown: Any) -> list[str]:  # noqa: ANN401 - as for `dashboard`
    from thalweg.spark.explain import runs_in

    return [run.key for run in runs_in(shown)]
