"""Cut the power of a served drive."""

from __future__ import annotations

from writecliff.cli.output import JsonFlag, emit_json


def power_cut(drive: str | None = None, *, json: JsonFlag = False) -> int:
    """Cut the power of a drive that you serve on this machine, and give it back.

    Connections to the drive end without replies, what it had not made durable is lost, and it finds
    its mapping again. The command ends when the drive takes commands, and says what it did.

    Parameters
    ----------
    drive
        What `writecliff serve` printed as its address, such as nvme-tcp://127.0.0.1:4420 or
        nbd+unix:/tmp/drive.sock, or the number of its process; not needed if there is one only.
    """
    from writecliff.cli.serve_view import cut_text, rebuild_text
    from writecliff.serve import PowerCut
    from writecliff.serve.control import find_served, served_drives

    found = find_served(served_drives(), drive)
    answer = found.power_cut()
    if json:
        from writecliff.api.answers.served import PowerCutDone

        emit_json(PowerCutDone(found.target, found.addresses, found.pid, **answer))
        return 0
    number, cut = answer["number"], PowerCut(**answer["cut"])
    print(f"{found.target}: power cut {number}: {cut_text(cut)}")
    if rebuild := rebuild_text(cut):
        print(rebuild)
    return 0
