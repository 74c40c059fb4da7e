"""Dashboard that shows a run store in a browser, served on this machine.

    server.py      listening, addresses, pages, the JSON of plots, tags and deletion, static files
    access.py      access control: token, cookie, host names, headers of every answer
    handler.py     common to all answers: checks, threads, errors
    library.py     the store: its catalogue, and protection against links out of it
    listing.py     a page of the list
    run_page.py    the page of a run
    plots.py       quantities of the plots, and a view of them
    series.py      the intervals of a run as arrays, cached in memory
    marks.py       reduction of points for a plot
    overlay.py     several runs on one plot
    sets.py        suites and sweeps: a row for each run, parallel coordinates

Pages are rendered on the server and work without scripts, which only draw plots. Tornado serves the
pages, and Bokeh's JavaScript draws the plots; both are installed with the extra `ui`.
"""
