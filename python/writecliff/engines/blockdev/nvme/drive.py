"""NVMe controller commands sent through nvme-cli, with binary results.

Commands are sent to the controller node (`/dev/nvme0`), with the NSID if the command requires one.
A namespace node adds its NSID, which controller-wide commands reject (for example, Set Features 06h
fails with "Feature Not Namespace Specific"). A write run also holds the namespace node exclusively.

Properties of nvme-cli, from the source of versions 2.3 and 2.16: If `--raw-binary` is given,
`id-ctrl`, `id-ns`, `get-log` and `admin-passthru` print only the data on standard output. The
`sanitize-log` JSON output differs between 2.3, 2.8 and 2.16, and the other logs' JSON encodes
128-bit counters as numbers or as text. `get-feature` prints its result only as text, in the same
format in both versions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from writecliff.engines.blockdev.nvme import pages
from writecliff.engines.blockdev.nvme.topology import controllers_of, namespace_id
from writecliff.engines.blockdev.tools import ToolResult
from writecliff.engines.blockdev.topology import BlockDevice, System

_ALL_NAMESPACES = 0xFFFFFFFF
_FEATURE = re.compile(r"value:\s*(?:0x)?([0-9a-fA-F]+)")
# An NVMe status printed by nvme-cli, and its Do Not Retry bit (Base 2.1, 4.2.3).
_STATUS = re.compile(r"NVMe status: .*\(0x([0-9a-fA-F]+)\)")
_DO_NOT_RETRY = 1 << 14
_IDENTIFY_LIST_ACTIVE, _IDENTIFY_LIST_ALLOCATED, _IDENTIFY_UUIDS = 0x02, 0x10, 0x17
_OCP_UUID = bytes.fromhex("c194d55be0944794a21d29998f56be6f")


class Refused(Exception):
    """A failed command, whose text is the message from nvme-cli or the drive."""

    def __init__(self, answer: ToolResult) -> None:
        """Store nvme-cli's output."""
        super().__init__(answer.message)
        self.answer = answer
        self.absent = answer.absent

    @property
    def is_final(self) -> bool:
        """True if the drive set Do Not Retry, which means that it always rejects the command."""
        status = _STATUS.search(self.answer.message)
        return status is not None and bool(int(status[1], 16) & _DO_NOT_RETRY)


class NvmeDrive:
    """A namespace and the controller that leads to it; methods raise `Refused`.

    Properties that cannot change during a measurement are read once. These properties are the
    identify data (for the namespace, until a format) and the absence of logs.
    """

    def __init__(self, system: System, disk: BlockDevice) -> None:
        """Select the namespace's first live controller."""
        self.system, self.disk = system, disk
        self.controllers = controllers_of(disk)
        self.node = str(system.dev / self.controllers[0].name)
        self.nsid = namespace_id(disk) or 1
        self._controller: pages.Controller | None = None
        self._namespace: pages.Namespace | None = None
        self._ocp_index: int | None = None
        self._has_streams: bool | None = None
        self._absent_logs: dict[tuple[str, ...], ToolResult] = {}

    def command(self, *words: str, timeout_s: float = 30.0) -> ToolResult:
        """Run `nvme` with the arguments `words`, and raise `Refused` if it fails."""
        answer = self.system.run(["nvme", *words], timeout_s=timeout_s)
        if not answer.ok:
            raise Refused(answer)
        return answer

    def _data(self, words: Sequence[str], size: int) -> bytes:
        answer = self.command(*words, "--raw-binary")
        if len(answer.data) < size:
            text = f"{words[0]}: {len(answer.data)} bytes instead of {size}"
            raise Refused(ToolResult(1, "", text))
        return answer.data

    def controller(self) -> pages.Controller:
        """Return the Identify Controller data, which are read once."""
        if self._controller is None:
            data = self._data(["id-ctrl", self.node], pages.IDENTIFY_BYTES)
            self._controller = pages.Controller.of(data)
        return self._controller

    def namespace(self, *, again: bool = False) -> pages.Namespace:
        """Return the Identify Namespace data, which are read once, or again on request."""
        if self._namespace is None or again:
            words = ["id-ns", self.node, f"--namespace-id={self.nsid}"]
            self._namespace = pages.Namespace.of(self._data(words, pages.IDENTIFY_BYTES))
        return self._namespace

    def _identify(self, what: int) -> bytes:
        words = ["--opcode=0x06", f"--cdw10={what:#x}", "--data-len=4096", "--read"]
        return self._data(["admin-passthru", self.node, *words], pages.IDENTIFY_BYTES)

    def namespace_list(self, *, allocated: bool) -> tuple[int, ...]:
        """Return the active NSIDs of this controller, or all NSIDs allocated in the subsystem."""
        what = _IDENTIFY_LIST_ALLOCATED if allocated else _IDENTIFY_LIST_ACTIVE
        return pages.namespace_list(self._identify(what))

    def log(
        self, number: int, size: int, *, specific: int = 0, lsp: int = 0, uuid: int = 0
    ) -> bytes:
        """Send Get Log Page, and return `size` bytes.

        `specific` is the Log Specific Identifier, and `uuid` is an index into the UUID list.
        """
        words = [f"--log-id={number:#04x}", f"--log-len={size}"]
        words += [f"--lsi={specific}"] * bool(specific) + [f"--lsp={lsp}"] * bool(lsp)
        words += [f"--uuid-index={uuid}"] * bool(uuid)
        key = tuple(words)
        if key in self._absent_logs:
            raise Refused(self._absent_logs[key])
        try:
            return self._data(["get-log", self.node, *words], size)[:size]
        except Refused as refused:
            if refused.is_final:
                self._absent_logs[key] = refused.answer
            raise

    def smart(self) -> dict[str, int]:
        """Return the SMART log (02h), keyed by nvme-cli's field names."""
        return pages.smart_log(self.log(0x02, pages.SMART_BYTES))

    def has_streams(self) -> bool:
        """Return True if the drive supports the Streams directive or the support is unknown.

        Send Return Parameters of the Identify directive (Base 2.1, 8.1.8.2).
        """
        if self._has_streams is None:
            words = ["--opcode=0x1a", f"--namespace-id={self.nsid}", "--cdw10=0x3ff"]
            words += ["--cdw11=0x1", "--data-len=4096", "--read"]
            try:
                data = self._data(["admin-passthru", self.node, *words], 4096)
            except Refused:
                return True
            self._has_streams = bool(data[0] & 1 << 1)
        return self._has_streams

    def stream_parameters(self) -> dict[str, int]:
        """Send Return Parameters of the Streams directive (Base 2.1, 8.1.8.3.1.1)."""
        words = ["--opcode=0x1a", f"--namespace-id={self.nsid}", "--cdw10=7", "--cdw11=0x101"]
        data = self._data(["admin-passthru", self.node, *words, "--data-len=32", "--read"], 32)
        return pages.stream_parameters(data)

    def open_streams(self) -> tuple[int, ...]:
        """Return the open streams, sorted: Get Status of the Streams directive (8.1.8.3.1.2)."""
        words = ["--opcode=0x1a", f"--namespace-id={self.nsid}", "--cdw10=0x3ff", "--cdw11=0x102"]
        words += ["--data-len=4096", "--read"]
        return pages.open_streams(self._data(["admin-passthru", self.node, *words], 4096))

    def ocp_uuid_index(self) -> int:
        """Return the UUID index that selects OCP logs, or 0 if the drive has none."""
        if self._ocp_index is None:
            try:
                uuids = pages.uuid_list(self._identify(_IDENTIFY_UUIDS))
            except Refused as refused:
                self._ocp_index = 0 if refused.is_final else None
                return 0
            self._ocp_index = uuids.index(_OCP_UUID) + 1 if _OCP_UUID in uuids else 0
        return self._ocp_index

    def feature(self, number: int) -> int:
        """Return a feature's current value (dword 0 in the completion queue entry)."""
        answer = self.command("get-feature", self.node, f"--feature-id={number:#04x}")
        match = _FEATURE.search(answer.stdout)
        if match is None:
            raise Refused(ToolResult(1, answer.stdout, f"get-feature: {answer.message}"))
        return int(match[1], 16)

    def set_feature(self, number: int, value: int) -> None:
        """Send Set Features for the current value only, not the saved value."""
        words = [f"--feature-id={number:#04x}", f"--value={value}"]
        self.command("set-feature", self.node, *words)
