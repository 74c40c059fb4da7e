"""Access to the dashboard, and the content policies of its responses."""

from __future__ import annotations

import pytest

from tests.support.dashboard import Served
from writecliff.errors import ConfigError
from writecliff.ui.access import Access

PATHS = ("/", "/run?name=runs%2Ffirst", "/report?name=runs%2Ffirst", "/overlay?name=runs%2Ffirst",
         "/sets", "/set?name=x", "/api/series?name=runs%2Ffirst", "/api/status?name=runs%2Ffirst",
         "/api/overlay?name=runs%2Ffirst", "/api/set?name=x", "/static/ui.css",
         "/static/bokeh.min.js", "/tags", "/delete?name=runs%2Ffirst", "/nothing")  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_answered_without_the_token(served: Served, path: str) -> None:
    wrong = f"writecliff-ui-{served.port}={'x' * 32}"
    for cookie in ({}, {"Cookie": wrong}, {"Cookie": "writecliff-ui-1=" + served.token}):
        answer = served.ask(path, cookie=None, **cookie)
        assert answer.status == 403
        assert "The request contains no token" in answer.text and "open the address" in answer.text
        assert b"first" not in answer.body
    sign = "&" if "?" in path else "?"
    assert served.ask(f"{path}{sign}token={'x' * 32}", cookie=None).status == 403


def test_the_first_visit_puts_the_token_into_a_cookie(served: Served) -> None:
    answer = served.ask(f"/run?name=runs%2Ffirst&token={served.token}", cookie=None)
    assert (answer.status, answer.headers["Location"]) == (303, "/run?name=runs%2Ffirst")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"writecliff-ui-{served.port}={served.token};")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    answer = served.ask(f"//elsewhere.example/?token={served.token}", cookie=None)
    assert not answer.headers.get("Location", "/").startswith("//")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200), ("localhost:9", 200), ("[::1]:80", 200), ("192.168.1.7:8642", 200),
        ("evil.example", 403), ("evil.example:8642", 403), ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403), ("", 403), ("127.0.0.1@evil.example", 400),
    ],
)  # fmt: skip
def test_names_of_others_are_refused(served: Served, host: str, status: int) -> None:
    assert served.ask("/", Host=host).status == status


def test_every_answer_says_what_a_page_may_do(served: Served) -> None:
    for path in PATHS:
        answer = served.ask(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "base-uri 'none'" in policy, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        if not path.startswith("/report"):
            assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    report = served.ask("/report?name=runs%2Ffirst")
    assert report.headers["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in report.headers["Content-Security-Policy"]
    assert "connect-src" not in report.headers["Content-Security-Policy"]


def test_nonces_are_new_each_time(served: Served) -> None:
    policies = {served.ask("/").headers["Content-Security-Policy"] for _ in range(3)}
    assert len(policies) == 3


@pytest.mark.parametrize(
    "token", ["short", "x" * 15, "with space and more of it", "ümlaut" * 5, ""]
)
def test_tokens_that_could_be_guessed_are_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="at least 16"):
        Access(token)


def test_tokens_are_random() -> None:
    assert len({Access().token for _ in range(5)}) == 5
    assert all(len(Access().token) >= 32 for _ in range(3))


# -- changes ----------------------------------------------------------------------------------


def test_nothing_can_be_changed_unless_that_is_allowed(served: Served) -> None:
    for path, fields in (("/tags", {"add": "new"}), ("/delete", {})):
        answer = served.form(path, {"name": "runs/first", **fields})
        assert answer.status == 403
        assert "--allow-changes" in answer.text
    page = served.of("/run", "runs/first").text
    assert "new" not in page and "/delete" not in page and "<form" not in page


def test_tags_are_edited(editable: Served) -> None:
    run = {"name": "runs/first"}
    answer = editable.form("/tags", {**run, "add": "good, better "})
    assert (answer.status, answer.headers["Location"]) == (303, "/run?name=runs%2Ffirst#tags")
    page = editable.of("/run", "runs/first").text
    assert ">good</a>" in page and ">better</a>" in page
    editable.form("/tags", {**run, "remove": "good"})
    page = editable.of("/run", "runs/first").text
    assert ">good</a>" not in page and ">better</a>" in page
    assert editable.form("/tags", {**run, "add": "+no"}).status == 400
    assert editable.form("/tags", {"name": "runs/../..", "add": "x"}).status == 404


def test_runs_are_deleted(editable: Served) -> None:
    assert "Delete this run?" in editable.of("/delete", "runs/second").text
    assert editable.form("/delete", {"name": "runs/second"}).status == 303
    assert editable.of("/run", "runs/second").status == 404
    assert editable.form("/delete", {"name": "runs/second"}).status == 404
    assert "runs/second" not in editable.ask("/").text


def test_forms_of_other_pages_are_refused(editable: Served) -> None:
    fields = {"name": "runs/first", "add": "theirs"}
    assert editable.ask("/tags", method="POST", body="name=runs/first&add=theirs").status == 403
    assert editable.form("/tags", fields, Origin="http://evil.example").status == 403
    assert editable.form("/tags", fields, Origin="null").status == 403
    origin = f"http://127.0.0.1:{editable.port}"
    assert editable.form("/tags", {**fields, "add": "ours"}, Origin=origin).status == 303
    page = editable.of("/run", "runs/first").text
    assert "theirs" not in page and "ours" in page
