"""The figures in Firefox, where one is installed: another engine, the same answers."""

import json

from lab.live.registry import answer
from tests.live.firefox import FIREFOX, Page, in_firefox

FIGURE = "document.querySelector('.live[data-figure=gantt]')"
BUTTON = f"{FIGURE}.querySelector('.live-run')"
SLIDER = f"{FIGURE}.querySelector('[name=budget]')"
TEXT = f"{FIGURE}.querySelector('.live-text').textContent"
END = "\ue010"  # WebDriver's name of the key


def test_a_figure_runs_in_firefox(address, tmp_path, missing):
    if FIREFOX is None:
        missing("no Firefox on this machine (apt-get install firefox-esr)")
    recorded, turned = (json.loads(answer("gantt", values, "zh", 680)) for values in ("{}", '{"budget": 8192}'))

    async def turn_a_slider(page: Page) -> list[str]:
        await page.open(f"{address}/zh/page.html")
        assert await page.ask(TEXT) == recorded["text"]
        await page.wait(f"!{BUTTON}.hidden")
        await page.ask(f"{BUTTON}.click()")
        await page.wait(f"{SLIDER}.matches(':enabled')")
        await page.ask(f"{SLIDER}.focus()")
        await page.press(END)
        await page.wait(f"{TEXT} === {json.dumps(turned['text'])}")
        assert await page.ask(f"{SLIDER}.getAttribute('aria-valuetext')") == "8192"
        # The parser writes attributes and entities its own way: let it read both.
        read = "new DOMParser().parseFromString({}, 'text/html').body.innerHTML"
        shown = await page.ask(f"{FIGURE}.querySelector('.live-picture').innerHTML")
        assert shown == await page.ask(read.format(json.dumps(turned["svg"])))
        return page.trouble

    assert in_firefox(tmp_path, turn_a_slider) == []
