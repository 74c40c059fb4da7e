"""Show the rated endurance of a simulated drive."""

from __future__ import annotations

from writecliff.cli.output import emit_json

GROUP = "drives", 9


def wear(name: str, *, json: bool = False) -> int:
    """Show the rated endurance of a simulated drive.

    Parameters
    ----------
    name
        A preset, or the path of a device file.
    json
        Print {"device", "rated_tbw_bytes"}.
    """
    from writecliff.devices import show_device

    device = show_device(name)
    if json:
        emit_json({"device": device.name, "rated_tbw_bytes": device.rated_tbw_bytes})
    else:
        print(f"{device.name}: {device.rated_tbw_bytes} bytes")
    return 0
