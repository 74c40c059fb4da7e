"""Guest drives for the tests in this folder, which run in the guest (`make test-drives`).

Outside the guest, the tests are skipped with a reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guest.qmp import Qmp
from tests.support import tcmu
from tests.support.guest_drives import Drive, drives_by_serial, hot_plug
from tests.support.scsi_drive import ScsiDrive

SAS_BYTES = 8 << 20  # The drive is small because Python handles its commands on an emulated CPU.
IN_GUEST = os.environ.get("WRITECLIFF_GUEST") == "1"


@pytest.fixture(scope="session", autouse=True)
def _in_the_guest() -> None:
    if not IN_GUEST:
        pytest.skip("drive tests run in the guest: make test-drives")


@pytest.fixture(scope="session")
def _drives(_in_the_guest: None) -> dict[str, Drive]:
    return drives_by_serial()


@pytest.fixture(scope="session")
def nvme(_drives: dict[str, Drive]) -> Drive:
    """Return an NVMe drive with a volatile cache and several LBA formats."""
    return _drives["QPLAIN01"]


@pytest.fixture(scope="session")
def nvme_fdp(_drives: dict[str, Drive]) -> Drive:
    """Return an NVMe drive with flexible data placement and eight handles."""
    return _drives["QFDP0001"]


@pytest.fixture(scope="session")
def nvme_pair(_drives: dict[str, Drive]) -> Drive:
    """Return an NVMe drive whose second namespace is attached to no controller."""
    return _drives["QPAIR001"]


@pytest.fixture(scope="session")
def sata(_drives: dict[str, Drive]) -> Drive:
    """Return a SATA drive behind AHCI."""
    return _drives["QSATA001"]


@pytest.fixture(scope="session")
def scsi(_drives: dict[str, Drive]) -> Drive:
    """Return a SCSI drive with five permanent streams, from the module scsi_debug."""
    return next(drive for drive in _drives.values() if drive.kind == "scsi")


@pytest.fixture(scope="session")
def sas(_in_the_guest: None) -> Iterator[Drive]:
    """Return a SAS drive with SANITIZE; this process executes its commands."""
    if why := tcmu.available():
        pytest.skip(why)
    with tcmu.attached(ScsiDrive(size_bytes=SAS_BYTES), "sas", SAS_BYTES):
        yield drives_by_serial()[ScsiDrive.serial]


@pytest.fixture(scope="session", params=["nvme", "nvme_fdp", "sata", "scsi"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """Return each of the four drives in turn."""
    drive: Drive = request.getfixturevalue(request.param)
    return drive


@pytest.fixture
def qmp(_in_the_guest: None) -> Iterator[Qmp]:
    """Connect to the monitor of the QEMU process that runs this guest."""
    with Qmp.of_guest() as opened:
        yield opened


@pytest.fixture
def plug(qmp: Qmp) -> Iterator[Callable[..., Drive]]:
    """Yield `plug("SERIAL", size_bytes=..., **properties)`, which hot-plugs an NVMe drive."""
    with hot_plug(qmp) as make:
        yield make


# Other tests find the older tools in PATH. The unit tests contain recorded output from both
# generations.
@pytest.fixture(params=[pytest.param("older", marks=pytest.mark.long), "newer"])
def generation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test twice: with nvme-cli 2.3 and fio 3.33 in PATH, and with 2.16 and 3.41."""
    use_tools(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that puts a generation ("newer") first in PATH for the rest of the test."""
    return lambda generation: use_tools(generation, monkeypatch)


def use_tools(generation: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the tools of a generation, `older` or `newer`, first in PATH and return their folder."""
    folder = os.environ[f"TOOLS_{generation.upper()}"]
    monkeypatch.setenv("PATH", folder + os.pathsep + os.environ["PATH"])
    return Path(folder)
