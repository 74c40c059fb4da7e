"""Dashboard that shows a run store in a browser, served on this machine.

    server.py      HTTP server with pages, plot data, tags, deletion and static files
    access.py      access control by token, cookie and host name, and the response headers
    handler.py     checks, threads and errors that all responses share
    library.py     store with its catalogue, and protection against links to outside the store
    listing.py     a page of the run list
    run_page.py    page of a run
    plots.py       quantities of the plots, and the visible part of their data
    series.py      intervals of a run as arrays, cached in memory
    marks.py       reduction of points for a plot
    overlay.py     several runs on one plot
    sets.py        suites and sweeps, with a row for each run, and parallel coordinates

Pages are rendered on the server and work without scripts, which only draw plots. Tornado serves the
pages, and Bokeh's JavaScript draws the plots; both are installed with the extra `ui`.
"""
