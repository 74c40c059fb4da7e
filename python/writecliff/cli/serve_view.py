"""The live view of a served drive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.output import factor_text, latency_text
from writecliff.serve.figures import difference

_STREAMS_SHOWN = 4

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.serve import DriveServer, Figures, PowerCut, Snapshot


def streams_text(now: Snapshot) -> tuple[str, str] | None:
    """Streams or placement handles in use, and their share of what was written; None for a drive
    that has neither and clients that name none."""
    placement, used = now.data_placement, now.streams
    if placement is None and len(used) < 2:
        return None
    total = sum(one.bytes for one in used)
    most = sorted(used, key=lambda one: -one.bytes)[:_STREAMS_SHOWN]
    shares = [f"{one.number}: {units.percent(one.bytes / total, 0)}" for one in most if total]
    shares += [f"{len(used) - len(most)} more"] if len(used) > len(most) else []
    if placement is None:
        name, count = "streams", f"{len(used)} used"
    elif placement.interface == "nvme-fdp":
        name, count = "handles", f"{len(used)} used, drive has {placement.limit}"
    else:
        name, count = "streams", f"{len(placement.open_streams)} of {placement.limit} open"
    return name, "; ".join([count, *([", ".join(shares)] if shares else [])])


def undone_text(pages: int, undone_as: str) -> str:
    """Return the pages that a power cut has undone, and why NVMe allows it, in words."""
    what = {"unacknowledged": "unacknowledged writes", "unflushed": "writes without a flush"}
    noun = "page" if pages == 1 else "pages"
    return f"{pages:,} {noun} of {what[undone_as]} undone (allowed)"


def cut_text(cut: PowerCut) -> str:
    """What a power cut did, on one line."""
    text = f"after {cut.writes:,} writes, {cut.outstanding:,} requests without a reply, "
    text += undone_text(cut.pages_undone, cut.undone_as)
    text += f" of {cut.pages_open:,} that were not durable"
    if cut.rebuild_ns is not None:
        text += f"; ready again after {units.latency(cut.rebuild_ns)}"
    else:
        text += "; its mapping as if all had been written, because its loss is not modelled"
    return text


def rebuild_text(cut: PowerCut) -> str:
    """What the drive did until it was ready again, on one line; empty if it is not known."""
    if cut.rebuild_parts_ns is None:
        return ""
    done = [f"{name} {units.latency(time)}" for name, time in cut.rebuild_parts_ns.items() if time]
    if cut.hold_up_ns:
        done.insert(0, f"capacitors {units.latency(cut.hold_up_ns)}")
    return f"mapping found again: {', '.join(done)}" if done else ""


class ServeView:
    """Figures of the last moment; `look` takes them, `render` draws them."""

    def __init__(self, server: DriveServer) -> None:
        self._server = server
        self._now = server.first
        self._figures: Figures = difference(server.first, server.first, recent=True)

    def look(self) -> Snapshot:
        """Take the figures since the last look."""
        before, self._now = self._now, self._server.snapshot()
        self._figures = difference(before, self._now, recent=True)
        return self._now

    def render(self) -> RenderableType:
        """A row for each operation, and the state of drive and server below."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        heads = ("", "IOPS", "MB/s", "mean", "50 %", "99 %", "99.9 %")
        table.add_row(*(Text(head, style="dim") for head in heads))
        for name, one in self._figures.operations.items():
            latency = one.latency
            names = ("mean_ns", "p50_ns", "p99_ns", "p99_9_ns")
            table.add_row(
                name,
                units.number(one.iops),
                units.number(one.bytes_per_s / units.MB_S.size, 1),
                *(latency_text(latency[key]) for key in names),
            )
        state = Table.grid(padding=(0, 2))
        for name, value in self._state():
            state.add_row(Text(name, style="dim"), value)
        return Group(table, state)

    def _state(self) -> list[tuple[str, str]]:
        now, lateness = self._now, self._figures.lateness
        shown = [
            (
                "WAF",
                f"{factor_text(self._figures.waf)} now, {factor_text(self._total_waf())} in all",
            ),
            (
                "late",
                f"{latency_text(lateness['p50_ns'])}, 99 % {latency_text(lateness['p99_ns'])}",
            ),
            ("outstanding", f"{now.outstanding:,} of {now.connections:,} connections"),
            ("data", units.size(now.contents_bytes)),
        ]
        if now.free_units is not None:
            shown.append(("free units", f"{now.free_units:,}"))
        if (streams := streams_text(now)) is not None:
            shown.append(streams)
        if now.temperature_c is not None:
            shown.append(("temperature", f"{now.temperature_c:.0f} °C"))
        return shown

    def _total_waf(self) -> float | None:
        return difference(self._server.first, self._now).waf
