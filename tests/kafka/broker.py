"""A broker of Kafka on loopback: a single node, broker and controller (KRaft), that can be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

START_SECONDS = 120


class Broker:
    """A broker that keeps its topics in a folder; `jars` is the folder of its jars."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        self._log = folder / "broker.log"
        self._port, controller = _free_port(), _free_port()
        self._settings = folder / "server.properties"
        self._settings.write_text(
            f"""
            process.roles=broker,controller
            node.id=1
            controller.quorum.voters=1@127.0.0.1:{controller}
            listeners=PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller}
            controller.listener.names=CONTROLLER
            log.dirs={folder / "topics"}
            num.partitions=2
            offsets.topic.replication.factor=1
            transaction.state.log.replication.factor=1
            transaction.state.log.min.isr=1
            """
        )
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._run("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._settings)).wait(START_SECONDS)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """What `kafka.bootstrap.servers` is set to."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start, and return when clients are answered."""
        self._process = self._run("kafka.Kafka", str(self._settings))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.2)
        raise TimeoutError(self._log.read_text()[-3000:])

    def kill(self) -> None:
        """End at once, as a machine that loses its power does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen([*self._java, *command], stdout=log, stderr=subprocess.STDOUT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
