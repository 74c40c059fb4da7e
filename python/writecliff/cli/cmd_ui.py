"""Browse the runs in a store with a dashboard."""

from __future__ import annotations

import sys
from pathlib import Path

from writecliff.cli.output import JsonFlag, emit_json, log
from writecliff.errors import ConfigError

GROUP = "tests and suites", 9


def ui(
    store: str | None = None,
    *,
    port: int = 8642,
    listen: str = "127.0.0.1",
    allow_changes: bool = False,
    token: str | None = None,
    json: JsonFlag = False,
) -> int:
    """Serve a dashboard for a run store on this machine until Ctrl-C or SIGTERM.

    The command prints the dashboard's address when the dashboard is ready. The address contains a
    token, which every request must include. The dashboard requires the extra `ui`.

    Parameters
    ----------
    store
        Run store: a folder, or the URL of an object store (default: the store in WRITECLIFF_STORE,
        else the current folder).
    port
        Port to listen on, or 0 for any free port.
    listen
        IP address to listen on. With an address other than 127.0.0.1, anyone with the token has
        access from other machines, and the token is sent unencrypted.
    allow_changes
        Allow users to change tags and delete runs.
    token
        Token of at least 16 letters and digits (default: a new token at each start).
    """
    import asyncio

    from writecliff.runs.location import is_remote, store_location
    from writecliff.ui.access import Access
    from writecliff.ui.server import UiOptions, check_extra, is_open_to_others, serve

    check_extra()
    location = store_location(store)
    if store is not None and not is_remote(location) and not Path(location).exists():
        raise ConfigError(
            f"the store {store} does not exist",
            hint="specify a folder that contains runs, or the URL of an object store",
        )
    options = UiOptions(
        location=location,
        listen=listen,
        port=port,
        allow_changes=allow_changes,
        access=Access(names=frozenset((listen,)))
        if token is None
        else Access(token, frozenset((listen,))),
    )
    if is_open_to_others(options):
        log("warning: other machines can reach the dashboard, and the token is sent unencrypted")

    def ready(address: str) -> None:
        if json:
            from writecliff.api.answers.runs import Dashboard

            emit_json(Dashboard(address, options.location, allow_changes))
        else:
            print(address)
        sys.stdout.flush()

    async def until_ended() -> None:
        import signal

        from writecliff.signals import TERMINATIONS

        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, *TERMINATIONS):
            loop.add_signal_handler(number, stop.set)
        await serve(options, ready, stop, lambda text: log(f"error: {text}"))

    asyncio.run(until_ended())
    return 0
