"""Cassandra 5.0 on the machine's Java 17, with the load of Samsung's experiment in small.

The experiment (Flash Memory Summit 2016): one million records, writes alone for a while if asked
for, then half reads and half writes. One node writes into a temporary folder; the client is
`Load.java`, compiled when it is needed, with the driver that Cassandra brings. Memtables are small
(16 MiB), so that flushes and three tiers of compaction occur within a gigabyte.

The commit log is written directly (`commitlog_disk_access_mode: direct`): by default it goes
through mapped memory, which a capture of calls cannot see. Where the file system has no direct I/O
it is compressed instead, which is written by calls too.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.capture.apps.jars import VERSION, jars
from writecliff.capture.apps.process import free_ports, run_client, server
from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.capture.apps import Log, Size
    from writecliff.capture.run import Captured, Options

RECORDS = 1_000_000
OPERATIONS = 1_000_000
VALUE_BYTES = 300
JAVA = 17
_START_TIMEOUT_S = 180.0
_CLIENT = Path(__file__).with_name("Load.java")
# What Cassandra's own start script opens to it in Java 17 (its conf/jvm17-server.options).
_EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
)
_OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.nio.charset",
    "java.base/java.nio.file.spi",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.concurrent.locks",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/jdk.internal.vm",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.management/com.sun.management.internal",
)


def run(options: Options, size: Size, folder: Path, log: Log) -> Captured:
    """Capture the load. Raises TargetError if Java 17 or Maven is missing."""
    from writecliff.capture.run import Captured, session

    java, javac = _java()
    library = jars(log)
    classes, logs, root = (folder / name for name in ("classes", "log", "cassandra"))
    for made in (classes, logs, root):
        made.mkdir()
    compiling = [javac, "-cp", f"{library}/*", "-d", str(classes), str(_CLIENT)]
    run_client(compiling, logs / "javac.log")
    native, storage = free_ports(2)
    _configure(folder, root, native, storage)
    records, operations = size.records or RECORDS, size.operations or OPERATIONS
    path = f"{classes}:{library}/*"
    load = ["Load", *map(str, (native, records, size.updates, operations, VALUE_BYTES))]
    options = replace(options, root=options.root or root)
    with session(options) as capture:
        log(f"Cassandra {VERSION}: starting")
        with server(
            [java, *_server_options(folder, root, library), "-cp", path,
             "org.apache.cassandra.service.CassandraDaemon"],
            logs / "cassandra.log",
            ready=lambda: _answers(native),
            timeout_s=_START_TIMEOUT_S,
            stop=signal.SIGTERM,  # its shutdown hook drains what is in memory
            env=_plain(capture.environment()),
        ):  # fmt: skip
            updates = f" {size.updates:,} writes," if size.updates else ""
            log(f"load: {records:,} records, then{updates} {operations:,} reads and writes")
            run_client(
                [java, "-Xmx256m", f"-Dlogback.configurationFile={folder / 'logback.xml'}",
                 "-cp", path, *load],
                logs / "load.log",
                env=_plain(os.environ),
            )  # fmt: skip
            for line in (logs / "load.log").read_text().splitlines():
                if line.startswith(("insert:", "update:", "mixed:")):
                    log(line)
        full = capture.finish(
            {
                "command": load,
                "program": f"cassandra {VERSION}",
                "exit_code": 0,
                "load": {
                    "records": records,
                    "updates": size.updates,
                    "operations": operations,
                    "value_bytes": VALUE_BYTES,
                },
            }
        )
    return Captured(options.output, 0, full)


def _java() -> tuple[str, str]:
    """The programs java and javac of Java 17. Raises TargetError without them."""
    home = os.environ.get("JAVA_HOME")
    homes = [Path(home)] if home else []
    homes += sorted(Path("/usr/lib/jvm").glob(f"java-{JAVA}-openjdk-*"))
    places = [*(str(place / "bin") for place in homes), None]
    for place in places:
        java, javac = (shutil.which(name, path=place) for name in ("java", "javac"))
        if java and javac and _java_version(java) == JAVA:
            return java, javac
    raise TargetError(
        f"Cassandra {VERSION} needs a JDK of Java {JAVA}, which is not installed",
        hint=f"on Debian: apt-get install openjdk-{JAVA}-jdk-headless; JAVA_HOME goes first",
    )


def _java_version(java: str) -> int | None:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    parts = said.split('"')
    first = parts[1].split(".")[0] if len(parts) > 1 else ""
    return int(first) if first.isdigit() else None


def _plain(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the variables that make a JVM take up other options."""
    others = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH")
    return {name: value for name, value in environment.items() if name not in others}


def _server_options(folder: Path, root: Path, library: Path) -> list[str]:
    """Options of the JVM."""
    return [
        *(word for name in _EXPORTS for word in ("--add-exports", f"{name}=ALL-UNNAMED")),
        *(word for name in _OPENS for word in ("--add-opens", f"{name}=ALL-UNNAMED")),
        f"-javaagent:{next(library.glob('jamm-*.jar'))}",
        "-Xms512m",
        "-Xmx1g",
        "-XX:-UsePerfData",
        "-Djdk.attach.allowAttachSelf=true",
        "-Djava.net.preferIPv4Stack=true",
        f"-Djava.io.tmpdir={folder}",
        f"-Dcassandra.config=file://{folder / 'cassandra.yaml'}",
        f"-Dcassandra.storagedir={root}",
        f"-Dlogback.configurationFile={folder / 'logback.xml'}",
        "-Dcassandra-foreground=yes",
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        "-Dcassandra.ring_delay_ms=1",
    ]


def _configure(folder: Path, root: Path, native: int, storage: int) -> None:
    direct = _has_direct_io(root)
    log = (
        "commitlog_disk_access_mode: direct"
        if direct
        else "commitlog_compression:\n  - class_name: LZ4Compressor"
    )
    (folder / "cassandra.yaml").write_text(f"""\
cluster_name: writecliff
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:{storage}"
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage}
native_transport_port: {native}
data_file_directories:
  - {root}/data
commitlog_directory: {root}/commitlog
saved_caches_directory: {root}/saved_caches
hints_directory: {root}/hints
cdc_raw_directory: {root}/cdc_raw
commitlog_sync: periodic
commitlog_sync_period: 1000ms
commitlog_segment_size: 16MiB
commitlog_total_space: 256MiB
{log}
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
memtable_allocation_type: heap_buffers
memtable_cleanup_threshold: 0.25
concurrent_compactors: 2
compaction_throughput: 0MiB/s
write_request_timeout: 60s
read_request_timeout: 60s
""")
    (folder / "logback.xml").write_text("""\
<configuration>
  <appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="STDERR"/></root>
</configuration>
""")


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
