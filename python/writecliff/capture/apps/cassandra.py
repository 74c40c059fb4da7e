"""A load for Cassandra 5.0 on Java 17: Samsung's experiment, scaled down.

The experiment (Flash Memory Summit 2016) inserts a million records, optionally rewrites some of
them, and then runs reads and writes in equal numbers. A single node writes to a temporary folder.
The client is `Load.java`, compiled on demand with the driver that Cassandra includes. Memtables are
small (16 MiB), so that a gigabyte of writes causes flushes and three tiers of compaction.

The commit log uses direct I/O (`commitlog_disk_access_mode: direct`). The default mode, memory
mapping, cannot be recorded by capturing system calls. If the file system does not support direct
I/O, the commit log is compressed, because Cassandra also writes a compressed log with system calls.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from writecliff.capture.apps.jars import VERSION, jars
from writecliff.capture.apps.process import (
    found_programs,
    free_ports,
    run_client,
    server,
    version_of,
)
from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.capture.apps import Log, Size
    from writecliff.capture.run import Captured, Options

RECORDS = 1_000_000
OPERATIONS = 1_000_000
VALUE_BYTES = 300
JAVA = 17
# Start timeout; long because a start takes minutes on a busy machine, and a failing server exits
# earlier.
_START_TIMEOUT_S = 900.0
_CLIENT = Path(__file__).with_name("Load.java")
_CONFIGURATION = Path(__file__).with_name("cassandra.yaml")
_JVM_OPTIONS = Path(__file__).with_name("cassandra-jvm.options")
_LOGGING = f"-Dlogback.configurationFile={Path(__file__).with_name('cassandra-logback.xml')}"


def run(options: Options, size: Size, folder: Path, log: Log) -> Captured:
    """Run and capture the load.

    Raises:
        TargetError: If Java 17 or Maven is not installed.
    """
    from writecliff.capture.run import session

    node = Node.in_folder(folder, log)
    records, operations = size.records or RECORDS, size.operations or OPERATIONS
    load = (records, size.updates, operations)
    options = replace(options, root=options.root or node.root)
    with session(options) as capture:
        log(f"Cassandra {VERSION}: starting")
        with node.running(capture.environment()):
            updates = f" {size.updates:,} writes," if size.updates else ""
            log(f"load: {records:,} records, then{updates} {operations:,} reads and writes")
            for line in node.load(*load):
                if line.startswith(("insert:", "update:", "mixed:")):
                    log(line)
        size_of_load = {
            "records": records,
            "updates": size.updates,
            "operations": operations,
            "value_bytes": VALUE_BYTES,
        }
        command = node.load_command(*load)
        return capture.finish(command, f"cassandra {VERSION}", 0, load=size_of_load)


@dataclass(frozen=True)
class Node:
    """A Cassandra node and its client. `folder` contains all files except those of the database."""

    folder: Path
    root: Path  # Root folder of the database.
    commit_log: Path
    commit_log_mib: int
    library: Path
    java: str
    port: int

    @classmethod
    def in_folder(
        cls,
        folder: Path,
        log: Log,
        *,
        root: Path | None = None,
        commit_log: Path | None = None,
        commit_log_mib: int = 256,
    ) -> Node:
        """Compile the client, and write the configuration.

        Args:
            folder: Folder of the client and, by default, of the database.
            log: Callback that receives progress messages.
            root: Folder of the database.
            commit_log: Folder of the commit log.
            commit_log_mib: Size of the commit log.

        Raises:
            TargetError: If Java 17 or Maven is not installed.
        """
        java, javac = find_java()
        library = jars(log)
        root = root or folder / "cassandra"
        for made in (folder / "classes", folder / "log", root):
            made.mkdir(exist_ok=True)
        compiling = [javac, "-cp", f"{library}/*", "-d", str(folder / "classes"), str(_CLIENT)]
        run_client(compiling, folder / "log" / "javac.log")
        native, storage = free_ports(2)
        commit_log = commit_log or root / "commitlog"
        made_node = cls(folder, root, commit_log, commit_log_mib, library, java, native)
        made_node._configure(storage)
        return made_node

    @property
    def _path(self) -> str:
        return f"{self.folder / 'classes'}:{self.library}/*"

    @contextmanager
    def running(self, environment: Mapping[str, str]) -> Iterator[None]:
        """Run the node, which is ready inside the block and is shut down afterwards."""
        with server(
            [self.java, *self._options(), "-cp", self._path,
             "org.apache.cassandra.service.CassandraDaemon"],
            self.folder / "log" / "cassandra.log",
            ready=lambda: _answers(self.port),
            timeout_s=_START_TIMEOUT_S,
            stop=signal.SIGTERM,  # Cassandra's shutdown hook flushes the memtables.
            env=_plain(environment),
        ):  # fmt: skip
            yield

    def load(
        self, records: int, updates: int, operations: int, *, seed: int = 1, again: bool = False
    ) -> list[str]:
        """Run the client, and return its output lines. `again` keeps existing records."""
        log = self.folder / "log" / "load.log"
        log.unlink(missing_ok=True)
        more = [str(seed), *(["again"] if again else [])]
        words = [*self.load_command(records, updates, operations), *more]
        command = [self.java, "-Xmx256m", _LOGGING, "-cp", self._path, *words]
        run_client(command, log, env=_plain(os.environ))
        return log.read_text().splitlines()

    def load_command(self, records: int, updates: int, operations: int) -> list[str]:
        """Return the client's class name and arguments."""
        return ["Load", *map(str, (self.port, records, updates, operations, VALUE_BYTES))]

    def _options(self) -> list[str]:
        """Return the JVM options."""
        return [
            f"@{_JVM_OPTIONS}",
            f"-javaagent:{next(self.library.glob('jamm-*.jar'))}",
            f"-Djava.io.tmpdir={self.folder}",
            f"-Dcassandra.config=file://{self.folder / 'cassandra.yaml'}",
            f"-Dcassandra.storagedir={self.root}",
            _LOGGING,
        ]

    def _configure(self, storage: int) -> None:
        """Write a configuration with these ports and folders."""
        direct, packed = (
            "disk_access_mode: direct",
            "compression: [{class_name: LZ4Compressor}]",
        )
        text = Template(_CONFIGURATION.read_text("utf-8")).substitute(
            root=self.root,
            commit_log_folder=self.commit_log,
            commit_log_mib=self.commit_log_mib,
            native=self.port,
            storage=storage,
            commit_log_access=direct if _has_direct_io(self.root) else packed,
        )
        (self.folder / "cassandra.yaml").write_text(text)


def find_java() -> tuple[str, str]:
    """Return the paths of Java 17's `java` and `javac`.

    Raises:
        TargetError: If `java` or `javac` is not installed.
    """
    home = os.environ.get("JAVA_HOME")
    homes = [Path(home)] if home else []
    homes += sorted(Path("/usr/lib/jvm").glob(f"java-{JAVA}-openjdk-*"))
    for paths in found_programs(("java", "javac"), [home / "bin" for home in homes]):
        if version_of(paths["java"], "-version").split(".")[0] == str(JAVA):
            return paths["java"], paths["javac"]
    raise TargetError(
        f"Cassandra {VERSION} requires JDK {JAVA}, which is not installed",
        hint=f"on Debian: apt-get install openjdk-{JAVA}-jdk-headless; JAVA_HOME takes precedence",
    )


def _plain(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that add JVM options."""
    others = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH")
    return {name: value for name, value in environment.items() if name not in others}


def _has_direct_io(folder: Path) -> bool:
    probe = folder / ".direct"
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
