"""A fake machine for block device tests: /sys, /proc and /dev in a directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from writecliff.engines.blockdev.scsi_commands import ScsiAnswer
from writecliff.engines.blockdev.tools import ABSENT, ToolResult
from writecliff.engines.blockdev.topology import Node, System

MIB = 1 << 20


class Machine:
    """A fake machine with disks, partitions and mounts; `system` is passed to the code under test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sys, self.proc, self.dev = root / "sys", root / "proc", root / "dev"
        for directory in (self.sys / "block", self.sys / "dev/block", self.dev):
            directory.mkdir(parents=True)
        self.nodes: dict[Path, Node] = {}
        self.answers: dict[tuple[str, ...], ToolResult] = {}
        self.calls: list[list[str]] = []
        self.scsi_answers: dict[bytes, ScsiAnswer] = {}
        for process in ("self", "1"):
            (self.proc / process / "ns").mkdir(parents=True)
            (self.proc / process / "ns/mnt").symlink_to(f"mnt:[{process}]")
            (self.proc / process / "mountinfo").write_text("")
        (self.proc / "swaps").write_text("Filename Type Size Used Priority\n")
        self.system = System(
            self.sys, self.proc, self.dev, self.run, self.stat_node, scsi=self.scsi
        )

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        """Return the recorded output whose words match; otherwise, the tool is missing."""
        self.calls.append(list(argv))
        for words, answer in self.answers.items():
            if tuple(argv[: len(words)]) == words:
                return answer
        return ToolResult(ABSENT, "", f"{argv[0]} is not installed")

    def scsi(self, path: Path, command: bytes, length: int) -> ScsiAnswer:
        """Return the recorded response for a matching command block, or an error."""
        for start, answer in self.scsi_answers.items():
            if command.startswith(start):
                return replace(answer, data=answer.data[:length])
        return ScsiAnswer(error=f"{path}: no such device")

    def stat_node(self, path: Path) -> Node | None:
        return self.nodes.get(path)

    def disk(
        self,
        name: str,
        number: tuple[int, int],
        *,
        serial: str | None = None,
        model: str = "Drive",
        bus: str = "",
    ) -> Path:
        """Add a zeroed 1 MiB disk below `bus` in sysfs ("ata1") and return its device node."""
        directory = self.sys / "devices" / bus / name
        (directory / "device").mkdir(parents=True)
        if bus:
            (self.sys / "devices" / name).symlink_to(directory)
        (directory / "device/model").write_text(f"{model}   \n")
        if serial is not None:
            (directory / "device/serial").write_text(f"{serial}\n")
        (self.sys / "block" / name).symlink_to(directory)
        return self._node(name, number, directory)

    def partition(self, disk: str, name: str, number: tuple[int, int], start: int = 2048) -> Path:
        directory = self.sys / "devices" / disk / name
        directory.mkdir()
        (directory / "partition").write_text("1\n")
        (directory / "start").write_text(f"{start}\n")
        return self._node(name, number, directory)

    def _node(self, name: str, number: tuple[int, int], directory: Path) -> Path:
        text = f"{number[0]}:{number[1]}"
        self.write(directory, {"dev": text, "size": str(MIB // 512), "ro": "0"})
        (directory / "holders").mkdir()
        (directory / "slaves").mkdir()
        (self.sys / "dev/block" / text).symlink_to(directory)
        path = self.dev / name
        path.write_bytes(bytes(MIB))
        self.nodes[path] = Node(True, number, "block device")
        return path

    def write(self, directory: Path, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    def attributes(self, disk: str, **files: str) -> None:
        """Write sysfs attributes of a disk; `queue__write_cache` means queue/write_cache."""
        named = {name.replace("__", "/"): text for name, text in files.items()}
        self.write(self.sys / "devices" / disk, named)

    def mount(self, number: str, where: str, source: str, *, process: str = "self") -> None:
        directory = self.proc / process
        if not directory.exists():
            (directory / "ns").mkdir(parents=True)
            (directory / "ns/mnt").symlink_to(f"mnt:[{process}]")
        with (directory / "mountinfo").open("a") as file:
            file.write(f"36 35 {number} / {where} rw,noatime shared:1 - ext4 {source} rw\n")

    def answer(
        self,
        command: str,
        stdout: str = "",
        *,
        returncode: int = 0,
        stderr: str = "",
        data: bytes = b"",
    ) -> None:
        self.answers[tuple(command.split())] = ToolResult(returncode, stdout, stderr, data)
