"""Simulated time that a 960 GB drive takes to rebuild its mapping after a power cut."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from writecliff import _native
from writecliff.devices import FOLDER
from writecliff.serve import DriveServer, ServeOptions

SIMULATED_IN_S = 10.0
_MIB = 1 << 20


@pytest.mark.parametrize("protected", [False, True], ids=["no capacitors", "capacitors"])
def test_a_drive_of_960_gb_is_rebuilt_in_its_time(protected: bool, tmp_path: Path) -> None:
    text = (FOLDER / "nvme-tlc-960.toml").read_text()
    setting = "power_loss_protection = true"
    assert setting in text
    path = tmp_path / "drive.toml"
    path.write_text(text.replace(setting, f"power_loss_protection = {str(protected).lower()}"))
    begun = time.process_time()
    server = DriveServer(f"sim:{path}", ServeOptions(slow_down=1.0))
    try:
        assert server.listen_nbd(f"unix:{tmp_path}/drive.sock")
        where = {"protocol": "nbd", "range_bytes": 256 * _MIB, "seed": 1}
        socket = f"unix:{tmp_path}/drive.sock"
        _native.served_load(
            socket, write=True, block_bytes=128 << 10, queue_depth=8, requests=1024, **where
        )
        start = time.monotonic_ns()
        cut = server.power_cut()
        _native.served_load(
            socket, write=False, block_bytes=4096, queue_depth=1, requests=1, **where
        )
        waited_ns = time.monotonic_ns() - start
    finally:
        server.end()
    taken_s = time.process_time() - begun
    assert cut.rebuild_ns is not None
    assert cut.rebuild_parts_ns is not None
    assert server.description.rebuild_ns is not None
    shortest, longest = server.description.rebuild_ns
    assert shortest <= cut.rebuild_ns <= longest
    # The checkpoint has 4 bytes per page of 960 GB, and all channels read it concurrently.
    assert cut.rebuild_parts_ns["checkpoint"] > 100e6
    assert sum(cut.rebuild_parts_ns.values()) == cut.rebuild_ns
    # The journal lists the writes since the checkpoint, and open reclaim units are scanned.
    since = [cut.rebuild_parts_ns[part] for part in ("journal", "scan")]
    assert all(ns == 0 for ns in since) if protected else all(ns > 0 for ns in since)
    assert waited_ns >= cut.rebuild_ns
    assert taken_s <= SIMULATED_IN_S
