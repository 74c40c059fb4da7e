"""Benchmark of served drives, which measures server latency per request and maximum rate.

The server is a separate process on one core, and the clients run on another. In untimed mode
(`--fast`), the drive takes no time, so all measured latency is due to the server, socket and
client. Two clients are used: a lean client of this package for NBD and NVMe/TCP, and, if available,
fio's `nbd` engine, which costs about as much per request as the server. The kernel's own target on
a null device shows the cost of NVMe/TCP without writecliff ("kernel target" below). Compare rows
from the same run. If other programs are running, the server's CPU time per request is more reliable
than its rate.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from writecliff import _native
from writecliff.errors import ConfigError, EngineError
from writecliff.native_errors import as_user_errors

RANGE_BYTES = 256 << 20
_BLOCK_BYTES = 4096
_FILL_BYTES = 128 << 10
_PROBE_REQUESTS = 5_000
_SECONDS_MIN = 0.1
_GRACE_S = 60.0
DEPTHS = (32, 1)


@dataclass(frozen=True)
class Row:
    """A load on a server."""

    case: str
    transport: str
    client: str
    iops: float
    latency_p50_us: float | None
    latency_p99_9_us: float | None
    added_p50_us: float | None
    """Median latency in excess of the drive's, which is 0 without timing."""
    server_cpu_us: float | None
    """CPU time of the server per request; None for the kernel, which does not report it."""


@dataclass(frozen=True)
class Address:
    """A server address."""

    protocol: str
    """"nbd" or "nvme-tcp", for `_native.served_load`."""
    socket: str
    """`unix:PATH` or `HOST:PORT`."""
    uri: str


@dataclass(frozen=True)
class Measured:
    """Measurements of a client."""

    requests: int
    seconds: float
    p50_us: float | None
    p999_us: float | None


def run(device: str, *, seconds: float, kernel: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the rows, starting with the kernel's NVMe/TCP target if `kernel` is set.

    Raises:
        ConfigError: If `seconds` is out of range.
        EngineError: If a server or client failed.
    """
    if not _SECONDS_MIN <= seconds <= 3600:
        raise ConfigError(f"--seconds is {seconds:g}; it must be {_SECONDS_MIN:g} to 3600")
    if kernel:
        with kernel_target() as socket:
            at = Address("nvme-tcp", socket, "")
            for depth in DEPTHS:
                yield asdict(_row(depth, "nvmet-tcp", "lean", _lean(at, depth, seconds), None))
    with tempfile.TemporaryDirectory() as folder:
        for transport, option, address in (
            ("nbd-unix", "--nbd", f"unix:{folder}/nbd.sock"),
            ("nbd-tcp", "--nbd", "127.0.0.1:0"),
            ("nvme-tcp", "--listen", "127.0.0.1:0"),
        ):
            with _server(device, option, address) as (at, process):
                _load(at, write=True, block=_FILL_BYTES, depth=8, requests=_fill_requests())
                for depth in DEPTHS:
                    for client, measure in _clients(at):
                        before = _cpu_s(process)
                        seen = measure(at, depth, seconds)
                        cpu_s = _cpu_s(process) - before
                        yield asdict(_row(depth, transport, client, seen, cpu_s))


def _clients(at: Address) -> Iterator[tuple[str, Callable[[Address, int, float], Measured]]]:
    yield "lean", _lean
    if at.protocol == "nbd" and has_fio():
        yield "fio", _fio


def _row(depth: int, transport: str, client: str, seen: Measured, cpu_s: float | None) -> Row:
    return Row(
        case=f"randread-4k-qd{depth}",
        transport=transport,
        client=client,
        iops=seen.requests / seen.seconds,
        latency_p50_us=seen.p50_us,
        latency_p99_9_us=seen.p999_us,
        added_p50_us=seen.p50_us,
        server_cpu_us=None if cpu_s is None else 1e6 * cpu_s / seen.requests,
    )


def has_fio() -> bool:
    """Return `True` if fio and its `nbd` engine are installed."""
    if shutil.which("fio") is None:
        return False
    done = subprocess.run(["fio", "--enghelp"], capture_output=True, text=True, check=False)
    return "nbd" in done.stdout.split()


@contextmanager
def _server(
    device: str, option: str, address: str
) -> Iterator[tuple[Address, subprocess.Popen[str]]]:
    """Run a server on the first available core, and everything else on the other cores."""
    cores = sorted(os.sched_getaffinity(0))
    words = ["serve", device, option, address, "--fast", "--quiet", "--json"]
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[:1])
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "writecliff", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if len(cores) > 1:
            os.sched_setaffinity(0, cores[1:])
        assert process.stderr is not None
        line = process.stderr.readline()
        uri = line.rpartition(" at ")[2].strip()
        if not uri.startswith(("nbd", "nvme")):
            raise EngineError(f"the server did not start: {line}{process.stderr.read()}")
        socket = address if address.startswith("unix:") else uri.split("/")[2]
        yield Address("nbd" if uri.startswith("nbd") else "nvme-tcp", socket, uri), process
    finally:
        os.sched_setaffinity(0, cores)
        process.terminate()
        process.communicate(timeout=_GRACE_S)


def _cpu_s(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _fill_requests() -> int:
    """Number of random writes that leave 2 % of the range unwritten."""
    return 4 * RANGE_BYTES // _FILL_BYTES


def _load(at: Address, *, write: bool, block: int, depth: int, requests: int) -> dict[str, Any]:
    with as_user_errors():
        return _native.served_load(
            at.socket,
            protocol=at.protocol,
            write=write,
            block_bytes=block,
            range_bytes=RANGE_BYTES,
            queue_depth=depth,
            requests=requests,
            seed=1,
        )


def _lean(at: Address, depth: int, seconds: float) -> Measured:
    """Run enough requests to take about `seconds`, estimated from a short load."""

    def measure(requests: int) -> dict[str, Any]:
        return _load(at, write=False, block=_BLOCK_BYTES, depth=depth, requests=requests)

    probe = measure(_PROBE_REQUESTS)
    count = max(_PROBE_REQUESTS, round(_PROBE_REQUESTS * seconds * 1e9 / probe["elapsed_ns"]))
    seen = measure(count)
    latency: _native.Histogram = seen["latency"]
    return Measured(
        requests=count + _PROBE_REQUESTS,
        seconds=(seen["elapsed_ns"] + probe["elapsed_ns"]) / 1e9,
        p50_us=_us(latency.quantile(0.5).value_ns),
        p999_us=_us(latency.quantile(0.999).value_ns),
    )


def _fio(at: Address, depth: int, seconds: float) -> Measured:
    # libnbd messages may precede the JSON output, so the report goes to a file.
    with tempfile.NamedTemporaryFile() as report:
        words = [
            "fio", "--name=load", "--ioengine=nbd", f"--uri={at.uri}", "--rw=randread",
            f"--bs={_BLOCK_BYTES}", f"--size={RANGE_BYTES}", f"--iodepth={depth}", "--norandommap",
            "--time_based", f"--runtime={max(1, round(seconds))}", "--percentile_list=50:99.9",
            "--output-format=json", f"--output={report.name}",
        ]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EngineError(f"fio failed: {done.stderr.strip() or done.stdout.strip()}")
        text = Path(report.name).read_text(encoding="utf-8")
        read = json.loads(text[text.index("{") :])["jobs"][0]["read"]
    percentiles = {float(q): ns for q, ns in read["clat_ns"]["percentile"].items()}
    return Measured(
        requests=read["total_ios"],
        seconds=read["runtime"] / 1e3,
        p50_us=_us(percentiles[50.0]),
        p999_us=_us(percentiles[99.9]),
    )


def _us(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1e3


# -- kernel target ---------------------------------------------------------------------------------

# Benchmark of the kernel's NVMe/TCP target on a null block device, for comparison with a served
# drive.
#
# The null block device completes requests immediately and copies nothing. A client therefore
# measures only the cost of the kernel's target, the socket and the client itself, which is the
# minimum cost of NVMe/TCP on this machine.

NAME = "nqn.2026-01.writecliff:bench-serve"
_MODULES = ("null_blk", "nvmet", "nvmet-tcp")
_CONFIG = Path("/sys/kernel/config")
_SIZE_MIB = 1024


@contextmanager
def kernel_target() -> Iterator[str]:
    """Create the target, yield its `HOST:PORT` on loopback, and remove it at the end.

    Raises:
        EngineError: If the user is not root, or the kernel lacks the modules.
    """
    if os.geteuid() != 0:
        raise EngineError(
            "the kernel's NVMe/TCP target requires root",
            hint="run the command as root, for example with sudo",
        )
    _load_modules()
    with ExitStack() as undo:
        try:
            device = _null_device(undo)
            subsystem = _subsystem(undo, device)
            address = _port(undo, subsystem)
        except OSError as error:
            raise EngineError(f"cannot set up the kernel's NVMe/TCP target: {error}") from None
        yield address


def _load_modules() -> None:
    for module in _MODULES:
        options = ["nr_devices=0"] if module == "null_blk" else []
        if why := _modprobe(module, *options):
            raise EngineError(
                f"the kernel's NVMe/TCP target requires the module {module}: {why}",
                hint="omit --kernel-target, or run it in the drive bench (make drives-shell)",
            )


def _modprobe(*words: str) -> str:
    """Load a module; return the error message, or an empty string."""
    program = shutil.which("modprobe")
    if program is None:
        return "modprobe is not installed"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or f"code {done.returncode}"


def _null_device(undo: ExitStack) -> Path:
    folder = _made(undo, _CONFIG / "nullb" / "writecliff")
    # The null block device completes requests in the submitting thread, without an interrupt or
    # timer.
    for name, value in (("size", _SIZE_MIB), ("blocksize", 4096), ("irqmode", 0)):
        (folder / name).write_text(str(value))
    (folder / "power").write_text("1")
    undo.callback((folder / "power").write_text, "0")
    number = (folder / "index").read_text().strip()
    # Since Linux 6.14, the device is named after its folder; before, it was named after its index.
    names = (Path("/dev/writecliff"), Path(f"/dev/nullb{number}"))
    device = next((path for path in names if path.exists()), None)
    if device is None:
        raise EngineError(f"the null block device is neither {names[0]} nor {names[1]}")
    return device


def _subsystem(undo: ExitStack, device: Path) -> Path:
    subsystem = _made(undo, _CONFIG / "nvmet/subsystems" / NAME)
    (subsystem / "attr_allow_any_host").write_text("1")
    namespace = _made(undo, subsystem / "namespaces/1")
    (namespace / "device_path").write_text(str(device))
    (namespace / "enable").write_text("1")
    undo.callback((namespace / "enable").write_text, "0")
    return subsystem


def _port(undo: ExitStack, subsystem: Path) -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    numbers = {int(path.name) for path in (_CONFIG / "nvmet/ports").iterdir()}
    port = _made(undo, _CONFIG / f"nvmet/ports/{max(numbers, default=0) + 1}")
    wanted = {"trtype": "tcp", "adrfam": "ipv4", "traddr": "127.0.0.1", "trsvcid": str(number)}
    for name, value in wanted.items():
        (port / f"addr_{name}").write_text(value)
    link = port / "subsystems" / NAME
    link.symlink_to(subsystem)
    undo.callback(link.unlink)
    return f"127.0.0.1:{number}"


def _made(undo: ExitStack, folder: Path) -> Path:
    folder.mkdir()
    undo.callback(folder.rmdir)
    return folder
