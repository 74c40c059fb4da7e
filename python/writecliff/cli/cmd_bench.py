"""`writecliff bench`: the speed of the program itself."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from writecliff.cli.output import emit_json, table, talk

app = App(name="bench", help="Measure the speed of the simulator itself.")


@app.command(name="sim", help="What fixed simulations cost this machine.")
def sim(
    *,
    case: str | None = None,
    device: str = "nvme-tlc-960",
    scale: float = 1.0,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """What fixed simulations cost this machine, in CPU time. The whole suite takes some minutes.

    Parameters
    ----------
    case
        Cases to run, a comma-separated list (default: all).
    device
        The simulated drive (growth-60 and growth-3840 derive theirs from it).
    scale
        Shortens (or stretches) what is measured, not the preconditioning.
    json
        Print {"schema", "device", "scale", "rows": [{"case", "host_ios", "cpu_s",
        "ios_per_cpu_s", "ns_per_host_io", "ns_per_page_program", "peak_rss_mib", ...}]}.
    """
    from writecliff.bench.sim import chosen, run

    rows = []
    for row in run(chosen(case), device=device, scale=scale):
        rows.append(row)
        talk(f"{row['case']}: {row['cpu_s']:.1f} s of CPU time")
    if json:
        document = {"schema": "writecliff/bench-sim/1", "device": device, "scale": scale}
        emit_json(document | {"rows": rows})
        return 0
    header = ("case", "I/Os", "CPU", "M IO per CPU s", "ns an I/O", "ns a page", "peak memory")
    print(
        table(
            header,
            [
                (
                    str(row["case"]),
                    f"{row['host_ios']:,}",
                    f"{row['cpu_s']:.1f} s",
                    _millions(row["ios_per_cpu_s"]),
                    _number(row["ns_per_host_io"]),
                    _number(row["ns_per_page_program"]),
                    f"{row['peak_rss_mib']:,.0f} MiB",
                )
                for row in rows
            ],
        )
    )
    return 0


def _number(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, int | float) else "-"


def _millions(value: object) -> str:
    return f"{value / 1e6:.2f}" if isinstance(value, int | float) and value else "-"
