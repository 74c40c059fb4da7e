"""The dashboard: a run store in a browser, served on this machine.

    server.py      listening, the address, until it is told to end; pages, the JSON of plots, tags
                   and deletion, scripts and styles
    access.py      who may ask: token, cookie, names of the host, headers of every answer
    handler.py     what all answers have: checks, threads, errors
    library.py     the store: its catalogue, and no path out of it
    listing.py     a page of the list
    run_page.py    what the page of a run shows
    plots.py       which quantities are plotted, and a view of them
    series.py      the intervals of a run as arrays, kept in memory
    marks.py       few enough of them for a plot
    overlay.py     several runs on one plot
    sets.py        suites and sweeps: a row for each run, parallel coordinates

Pages are made here and need no script; scripts only draw. Tornado serves, Bokeh's JavaScript draws,
both from the extra `ui`.
"""
