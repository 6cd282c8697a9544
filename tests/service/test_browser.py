"""The dashboard in a real Chromium: charts under the strict policy, work without scripts, names that hold scripts."""

import pytest
from playwright.sync_api import expect
from tests.service.browser import window
from tests.service.server import server

from aftereffect.service.client import Client
from aftereffect.service.store.store import Store

CHARTS = ("timeline", "totals", "lags", "outcome")
FOLLOW = "http://elsewhere.example/"

# Names that run a script wherever one is taken for markup: in a page, in an attribute, in a chart's label.
SCRIPTS = [
    "<script>window.ran=1;alert(1)</script>",
    "<img src=x onerror=window.ran=2>",
    "\"><svg onload=window.ran=3>",
    "'-alert(4)-'",
    "<a href=\"javascript:window.ran=5\">five</a>",
    "{{7*7}}<b>bold</b>",
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with server(f"sqlite:///{tmp_path_factory.mktemp('browser') / 'store.db'}") as found:
        yield found


def played(address: str, rounds: int = 60, token: str | None = None, **changes) -> str:
    """Play rounds of a new experiment, leave one open, and return the path of its page."""
    settings = {"name": "Mailings", "arms": ["letter", "email", "leaflet"], "high": 9, "max_delay": 1, "seed": 3}
    with Client(address, token) as client:
        made = client.create(**{**settings, **changes})
        for number in range(1, rounds + 1):
            client.ask(made.id)
            for place, unit in enumerate(made.units):
                client.tell(made.id, number, float((number + place) % 7), unit)
        if made.state == "running":
            client.ask(made.id)
    return f"/experiments/{made.id}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_under_the_policy_and_nothing_comes_from_elsewhere(browser, address, scheme):
    path = played(address, units=["north", "south"], start_date="2026-01-01")
    with window(browser, address, color_scheme=scheme) as seen:
        policy = seen.page.goto(address + path).headers["content-security-policy"]
        assert "unsafe" not in policy
        page = seen.drawn()
        for chart in CHARTS:
            assert page.locator(f"#chart-{chart} svg.main-svg").count() > 0
            assert page.locator(f"#chart-{chart}").get_attribute("aria-label")
        assert page.locator("#chart-timeline .barlayer path").count() > 5
        assert page.locator("#chart-totals .scatterlayer .point").count() == 60
        # Rounds with dates of their own have dates on the axes of all charts but that of rounds since the action.
        assert page.locator("#chart-lags .xtick text").all_text_contents()[:3] == ["0", "1", "2"]
        for chart in ("timeline", "totals", "outcome"):
            ticks = page.locator(f"#chart-{chart} .xtick text").all_text_contents()
            assert ticks[0] == "1 Jan2026", chart
            assert len(ticks) > 2, chart
            assert not any(tick.isdigit() for tick in ticks), chart
        page.locator("#chart-totals").hover()
        page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_timeout(300)
        assert seen.faults() == []


@pytest.mark.parametrize("rows", [20_000, 41])
def test_the_charts_agree_with_the_rounds_and_with_what_was_learned(browser, address, rows):
    path = played(address, 50, units=["north", "south"], out_of_range="clip", direction="minimize")
    own = path.rpartition("/")[2]
    with window(browser, address) as seen, Client(address) as client:
        client.amend(own, 50, 1e9, "north")
        view, known, record = client.experiment(own), client.learned(own), client.rounds(own, limit=1000).items

        def shorter(route):
            html = route.fetch().text().replace('data-rows="4000"', f'data-rows="{rows}"')
            route.fulfill(body=html, content_type="text/html")

        seen.page.route(f"**{path}?unit=south", shorter)
        seen.go(f"{path}?unit=south")
        read = "name => document.getElementById(`chart-${name}`).data.map(({x, y, base, name}) => ({x, y, base, name}))"
        drawn = {name: seen.drawn().evaluate(read, name) for name in CHARTS}
        names = seen.page.evaluate("document.getElementById('chart-timeline').layout.yaxis.ticktext")
    shown = record[-rows:]
    parts = ["wash-in", "played", "measured"]
    bars = {
        int(first + 0.5) + i: (names[lane], part)
        for part, trace in zip(parts, drawn["timeline"], strict=False)
        for lane, first, length in zip(trace["y"], trace["base"], trace["x"], strict=True)
        for i in range(length)
    }
    assert bars == {row.round: (row.arm, "measured") for row in shown if row.unit == "south"}
    assert drawn["timeline"][3]["x"] == []
    told = {(trace["name"], x, y) for trace in drawn["totals"][1:] for x, y in zip(trace["x"], trace["y"], strict=True)}
    assert told == {(row.arm, row.round, row.total) for row in shown if row.unit == "south" and row.status != "open"}
    lags = {trace["name"]: trace["y"] for trace in drawn["lags"] if trace["name"]}
    assert lags == {each.arm: [value for value, _, _ in each.by_lag] for each in known.arms}
    band, equal, mine = drawn["outcome"]
    counted = [min(row.total, 18.0) if row.status != "open" else 0.0 for row in record]
    sums = {number: sum(counted[: 2 * number]) for number in range(1, 51)}
    assert mine["y"] == pytest.approx([sums[number] for number in mine["x"]])
    assert mine["x"] == list(range(shown[0].round, 51))
    assert mine["y"][-1] == pytest.approx(view.sum_of_totals)
    # The open round, which has no total yet, plays one arm in each unit.
    apart = {arm: n - sum(view.plays.values()) / 3 for arm, n in view.plays.items()}
    last = {row.arm: [r.arm for r in record[-2:]].count(row.arm) for row in record[-2:]}
    apart = {arm: n - last.get(arm, 0) + sum(last.values()) / 3 for arm, n in apart.items()}
    more = sum(apart[each.arm] * each.effect[0] for each in known.arms)
    margin = sum(abs(apart[each.arm]) * (each.effect[2] - each.effect[1]) / 2.0 for each in known.arms)
    assert equal["y"][-1] == pytest.approx(view.sum_of_totals - more)
    assert (band["y"][len(mine["x"])], band["y"][len(mine["x"]) - 1]) == pytest.approx(
        (view.sum_of_totals - more - margin, view.sum_of_totals - more + margin)
    )


def test_the_watch_hears_a_broken_policy_and_a_script_that_runs(browser, address):
    with window(browser, address) as seen:
        page = seen.go("/")
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.ran=1>')")
        page.evaluate("document.head.append(document.createElement('style'))")
        page.evaluate("document.querySelector('style').textContent = 'b { color: red }'")
        page.wait_for_function("['script-src', 'style-src'].every(w => window.broken.some(b => b.startsWith(w)))")
        assert any("script-src" in fault for fault in seen.faults())
        assert any("style-src" in fault for fault in seen.faults())
        page.set_content("<img src=x onerror=window.ran=1>")
        page.goto("data:text/html,<img src=x onerror=window.ran=1>")
        page.wait_for_function("window.ran === 1")


def test_a_script_in_any_name_never_runs(browser, address):
    path = played(address, 40, name=SCRIPTS[0], arms=SCRIPTS, units=[f"{text} u" for text in SCRIPTS[:3]], max_delay=0)
    with window(browser, address) as seen:
        for place in ("/", path, f"{path}?correct=3&unit={SCRIPTS[1]}#correct", f"{path}?done={SCRIPTS[0]}"):
            page = seen.go(place)
            if place != "/":
                seen.drawn()
                for point in page.locator("#chart-totals .point").all()[:6]:
                    point.hover(force=True)
                assert SCRIPTS[0] in page.title()
            assert SCRIPTS[0] in page.locator("main").inner_text()
            assert page.locator("main img, main b:text('bold'), main script, main a[href^=javascript]").count() == 0
            assert page.evaluate("window.ran") is None
        page = seen.go("/experiments/new")
        for field in ("name", "arms", "units", "length"):
            page.locator(f"#field-{field}").evaluate("(field, text) => { field.value = text; }", SCRIPTS[1])
        with page.expect_navigation():
            page.get_by_role("button", name="Create and start").click()
        assert page.evaluate("window.ran") is None
        assert [fault for fault in seen.faults() if "422" not in fault] == []


def test_an_experiment_is_planned_made_and_reported_without_javascript(browser, address):
    with window(browser, address, java_script_enabled=False) as seen:
        page = seen.go("/experiments/new")
        page.get_by_label("Name", exact=True).fill("Windows")
        page.get_by_label("Arms").fill("red\nblue")
        page.get_by_label("Length").fill("2 days")
        page.get_by_label("Largest effect of one action").fill("1")
        page.get_by_role("button", name="Show the plan").click()
        plan = page.get_by_role("region", name="Plan").inner_text()
        assert "3 rounds" in plan
        assert "attribution window" in plan
        assert page.get_by_label("Name", exact=True).input_value() == "Windows"
        page.get_by_role("button", name="Create and start").click()
        page.get_by_role("button", name="Open round 1").click()
        page.get_by_label("Total of round 1").fill("0.75")
        page.get_by_role("button", name="Report", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Round 1: 0.75 is recorded for")
        page.get_by_label("Total of round 2").wait_for()
        page.get_by_role("button", name="There is no total for this round").click()
        rows = page.get_by_role("region", name="Rounds").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("open")
        expect(rows.nth(2)).to_contain_text("missing")
        expect(rows.nth(3)).to_contain_text("0.75")
        assert page.locator("#charts").is_hidden()


def test_days_are_reported_from_a_file_and_a_day_ahead_asks_first(browser, address, tmp_path):
    path = played(address, 2, max_delay=8, start_date="2026-01-01")
    file = tmp_path / "totals.csv"
    file.write_text("\ufeffdate;total\n2026-01-03;1,5\n2026-01-04;2,5\n", encoding="utf-8")
    windows = tmp_path / "windows.csv"
    windows.write_text("date;total;arm\n2026-01-03;1,5;Käse\n", encoding="windows-1252")
    with window(browser, address) as seen:
        page = seen.go(path)
        page.get_by_text("Report several days").click()
        page.get_by_label("or a CSV file").set_input_files(file)
        expect(page.locator("#field-lines")).to_have_value("date;total\n2026-01-03;1,5\n2026-01-04;2,5\n")
        page.get_by_label("or a CSV file").set_input_files(windows)
        expect(page.locator("#field-lines")).to_have_value("date;total;arm\n2026-01-03;1,5;Käse\n")
        page.get_by_label("or a CSV file").set_input_files(file)
        expect(page.locator("#field-lines")).to_have_value("date;total\n2026-01-03;1,5\n2026-01-04;2,5\n")
        page.get_by_role("button", name="Report all").click()
        said = page.get_by_role("status")
        expect(said).to_contain_text("2 reports of rounds 3 to 4 are recorded. Round 5 (2026-01-05): play")
        page = seen.go(played(address, 0, start_date="2999-01-01"))
        page.get_by_label("Total of round 1").fill("1,5")
        page.get_by_role("button", name="Report", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("Round 1 has the date 2999-01-01")
        page.get_by_role("button", name="Report it anyway").click()
        expect(page.get_by_role("status")).to_contain_text("Round 1: 1.5 is recorded for")
        assert [fault for fault in seen.faults() if "409" not in fault] == []


def test_the_plan_follows_the_form(browser, address):
    with window(browser, address) as seen:
        page = seen.go("/experiments/new")
        page.get_by_label("Arms").fill("red\nblue\ngreen")
        page.get_by_label("Length").fill("3")
        page.get_by_label("Largest effect of one action").fill("1")
        page.get_by_text("4 rounds").first.wait_for()
        assert page.url.endswith("/experiments/new")
        assert [fault for fault in seen.faults() if "422" not in fault] == []


def test_reporting_works_by_keyboard_alone(browser, address):
    path = played(address, 2)
    with window(browser, address) as seen:
        page = seen.go(path)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        page.keyboard.press("Enter")
        for _ in range(3):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "field-total":
                break
        assert page.evaluate("document.activeElement.id") == "field-total"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.type("2.5")
        page.keyboard.press("Enter")
        page.get_by_role("status").filter(has_text="Round 3: 2.5 is recorded").wait_for()
        page.get_by_label("Total of round 4").fill("many")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        page.wait_for_function("document.activeElement.id === 'problem'")


def test_a_second_click_makes_no_second_experiment(browser, address):
    with window(browser, address) as seen, Client(address) as client:
        before = len(client.experiments(limit=1000).items)
        page = seen.go("/experiments/new")
        page.get_by_label("Name", exact=True).fill("Once")
        page.get_by_label("Arms").fill("red\nblue")
        page.get_by_label("Length").fill("2")
        page.get_by_label("Largest effect of one action").fill("1")
        page.get_by_role("button", name="Create and start").dblclick()
        page.get_by_role("button", name="Open round 1").wait_for()
        assert len(client.experiments(limit=1000).items) == before + 1


def test_a_form_on_another_site_changes_nothing(browser, address):
    path = played(address, 1)
    body = f"<form method=post action={address}{path}/missing><input name=round value=2></form>"
    with window(browser, address) as seen:
        seen.page.route(FOLLOW, lambda route: route.fulfill(body=body, content_type="text/html"))
        seen.page.goto(FOLLOW)
        with seen.page.expect_navigation() as arrived:
            seen.page.evaluate("document.forms[0].submit()")
        assert arrived.value.status == 403
        with Client(address) as client:
            assert client.experiment(path.rsplit("/", 1)[-1]).open_round == 2


def test_a_login_is_kept_where_scripts_cannot_read_it(browser, tmp_path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(store) as opened:
        token = opened.create_token("owner", ["admin"])
    with server(store, access="required") as address, window(browser, address) as seen:
        path = played(address, 30, token)
        page = seen.go(path)
        assert page.url.startswith(f"{address}/login")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(address + path)
        seen.drawn()
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert page.evaluate("document.cookie") == ""
        with page.expect_download() as download:
            page.get_by_role("link", name="Export as CSV").click()
        assert download.value.failure() is None
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").wait_for()
        assert page.context.cookies() == []
        assert seen.faults() == []
