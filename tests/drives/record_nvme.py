"""Record the output of nvme-cli versions for the guest's NVMe drives, for unit tests to replay.

Run this program in the guest: `python tests/drives/record_nvme.py FOLDER VERSION=PATH...`, where
PATH is a folder with that version's `nvme`. The program writes FOLDER/nvme-cli-VERSION.json (see
tests/support/ nvme_drives.py). It writes to the drives and formats them. Host names and times are
not recorded.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

SIZE = ["--data-len=4096", "--read"]
LISTS = ("0x2", "0x10", "0x17")
FEATURE = "--feature-id=0x06"
FORMAT = ["--ms=0", "--pi=0", "--pil=0", "--ses=1", "--timeout=21600000", "--force"]
EVENTS = "--event-types=0,1,2,3,128,129"


def commands(drive: str, namespace: str) -> list[tuple[str, list[str]]]:
    """Return (drive state, command) pairs in the order of execution."""
    asked = [
        ["id-ctrl", drive],
        ["id-ns", drive, "--namespace-id=1"],
        *(["admin-passthru", drive, "--opcode=0x06", f"--cdw10={n}", *SIZE] for n in LISTS),
        ["fdp", "status", namespace],
        ["get-log", drive, "--log-id=0x02", "--log-len=512"],
        ["get-log", drive, "--log-id=0x09", "--log-len=512", "--lsi=1"],
        ["get-log", drive, "--log-id=0x22", "--log-len=64", "--lsi=1"],
        ["get-log", drive, "--log-id=0x23", "--log-len=4096", "--lsi=1", "--lsp=1"],
        ["get-log", drive, "--log-id=0x23", "--log-len=4096", "--lsi=1"],
        ["get-log", drive, "--log-id=0x81", "--log-len=512"],
        ["get-log", drive, "--log-id=0xc0", "--log-len=512"],
    ]
    changes = [
        ["get-feature", drive, FEATURE],
        ["sanitize", drive, "--sanact=2", "--ause"],
        ["format", drive, "--namespace-id=1", "--lbaf=0", *FORMAT],
        ["ns-rescan", drive],
    ]
    return [
        ("", ["set-feature", drive, FEATURE, "--value=1"]),
        ("cache on: ", ["get-feature", drive, FEATURE]),
        ("", ["set-feature", drive, FEATURE, "--value=0"]),
        ("", ["set-feature", namespace, FEATURE, "--value=0"]),
        ("", ["fdp", "set-events", namespace, "--placement-handle=1", "--enable", EVENTS]),
        *(("", [*words, "--raw-binary"]) for words in asked),
        *(("", words) for words in changes),
    ]


def record(folder: str, drive: str) -> dict[str, object]:
    namespace = f"/dev/{drive}n1"
    environment = {**os.environ, "LC_ALL": "C", "PATH": f"{folder}:{os.environ['PATH']}"}
    answers: dict[str, object] = {}
    for moment, words in commands(f"/dev/{drive}", namespace):
        done = subprocess.run(["nvme", *words], capture_output=True, env=environment, check=False)
        answer: dict[str, object] = {"returncode": done.returncode}
        if "--raw-binary" in words and done.returncode == 0:
            answer["data"] = base64.b64encode(zlib.compress(done.stdout, 9)).decode()
        else:
            answer["stdout"] = done.stdout.decode(errors="replace")
        if done.stderr:
            answer["stderr"] = done.stderr.decode(errors="replace")
        key = f"{moment}nvme {' '.join(words)}"
        answers[key.replace(f"/dev/{drive}", "/dev/nvme0")] = answer
    return answers


def main(folder: str, *versions: str) -> None:
    drives = {
        (controller / "serial").read_text().strip(): controller.name
        for controller in sorted(Path("/sys/class/nvme").glob("nvme*"))
    }
    for version, path in (text.split("=", 1) for text in versions):
        records = {}
        for serial, drive in drives.items():
            records[serial] = {"before": record(path, drive)}
            with open(f"/dev/{drive}n1", "r+b", buffering=0) as node:
                node.write(bytes(20 << 20))
                os.fsync(node.fileno())
            records[serial]["after 20 MiB were written"] = record(path, drive)
        target = Path(folder) / f"nvme-cli-{version}.json"
        target.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
