"""An ATA drive with security and sanitize, which no emulated drive has, seen through hdparm 9.65.

Texts and exit codes are those of hdparm's source (`hdparm.c`, `identify.c`, `sgio.c`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from writecliff.engines.blockdev.tools import ToolResult

IDENTITY = """
/dev/sda:

ATA device, with non-removable media
\tModel Number:       SAMSUNG MZ7LM480HCHP-00003
Commands/features:
\tEnabled\tSupported:
\t   *\tSMART feature set
\t    \tSecurity Mode feature set
\t   *\tWrite cache
"""
SECURITY = """Security:
\tMaster password revision code = 65534
\t\tsupported
\tnot\tenabled
\tnot\tlocked
\tnot\tfrozen
\tnot\texpired: security count
\t\tsupported: enhanced erase
\t2min for SECURITY ERASE UNIT. 8min for ENHANCED SECURITY ERASE UNIT.
"""
BAD_SENSE = "SG_IO: bad/missing sense data, sb[]:  70 00 05 00 00 00 00 0a 00 00 00 00 20 00 00 00"
IO_ERROR = 5  # EIO, which is hdparm's exit code for a command that the drive aborted.


@dataclass
class HdparmDrive:
    """A runner of hdparm; its fields are the drive's state and the options it rejects."""

    features: tuple[str, ...] = ()  # Capabilities in word 59: "BLOCK_ERASE_EXT command", ...
    security: bool = True
    frozen: bool = False
    password: str | None = None
    locked: bool = False
    enhanced: bool = True
    refuses: tuple[str, ...] = ()  # Options whose command the drive aborts.
    state: str = "SD0 Sanitize Idle"
    polls: int = 3  # Number of status queries that report a sanitize in progress.
    fails: bool = False  # `True` if the sanitize fails.
    silent: bool = False  # `True` if the drive reports no status after the sanitize.
    bridged: bool = False  # `True` if a bridge drops the sense data.
    erased: list[str] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        self.calls.append(list(argv))
        options = [word for word in argv if word.startswith("-")]
        if "-I" in options:
            return ToolResult(0, self._identity())
        if "--sanitize-status" in options:
            return self._status()
        if "--yes-i-know-what-i-am-doing" in options:
            return self._sanitize(options[-1])
        return self._security(options[-1], argv[-2])

    @property
    def used(self) -> list[str]:
        """Options used so far, except those that only query."""
        asked = ("-I", "--sanitize-status")
        return [
            word
            for argv in self.calls
            for word in argv
            if word.startswith("--s") and word not in asked
        ]

    def _identity(self) -> str:
        text = IDENTITY + "".join(f"\t   *\t{name}\n" for name in self.features)
        if self.features:
            text += "\t   *\tSANITIZE feature set\n"
        security = SECURITY
        for word, is_set in (
            ("enabled", self.password is not None),
            ("locked", self.locked),
            ("frozen", self.frozen),
        ):
            if is_set:
                security = security.replace(f"not\t{word}", f"\t{word}")
        if not self.enhanced:
            security = security.replace("\t\tsupported: enh", "\tnot\tsupported: enh")
        return text + security if self.security else text

    def _status(self) -> ToolResult:
        if self.state.startswith("SD3"):
            reason = "Last Sanitize Command completed unsuccessfully"
            return ToolResult(
                IO_ERROR,
                "Issuing SANITIZE_STATUS command\n",
                "SANITIZE failed: Input/output error\n"
                f"SANITIZE device error reason: {reason}\nDrive in {self.state} state\n",
            )
        shown = "SD0 Sanitize Idle" if self.state.startswith("SD4") else self.state
        text = f"Issuing SANITIZE_STATUS command\nSanitize status:\n    State:    {shown}\n"
        if self.state.startswith("SD2"):
            text += "    Progress: 0x4000 (25%)\n"
            self.polls -= 1
            if self.polls <= 0:
                ended = "SD0 Sanitize Idle" if self.silent else "SD4 Sanitize Operation succeeded"
                self.state = "SD3 Sanitize Operation Failed" if self.fails else ended
        if self.state.startswith("SD4") and shown == "SD0 Sanitize Idle":
            text += "    Last Sanitize Operation Completed Without Error\n"
        return ToolResult(0, text, f"{BAD_SENSE}\n" if self.bridged else "")

    def _sanitize(self, option: str) -> ToolResult:
        if option in self.refuses:
            words = "SANITIZE failed: Input/output error\nSANITIZE device error reason: Unsupported"
            return ToolResult(IO_ERROR, "", f"{words} command\n")
        self.state = "SD2 Sanitize operation In Process"
        self.erased.append(option)
        return ToolResult(0, "Operation started in background\n")

    def _security(self, option: str, password: str) -> ToolResult:
        command = option.removeprefix("--security-").replace("-", "_").upper()
        error = ToolResult(IO_ERROR, "", f"SECURITY_{command}: Input/output error\n")
        if option in self.refuses or self.frozen:
            return error
        if option == "--security-set-pass":
            self.password = password
        elif password != self.password:
            return error
        elif option != "--security-unlock":
            self.password = None
            if "erase" in option:
                self.erased.append(option)
        return ToolResult(0, f' Issuing SECURITY_{command} command, password="{password}"\n')
