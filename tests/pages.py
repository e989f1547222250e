"""What tests of pages share: links of a page, and a small screen."""

import contextlib
from html.parser import HTMLParser

TAGS = "a script link img iframe source object embed video audio".split()


class Links(HTMLParser):
    """Names that a page defines; what it links to, and what a browser fetches to show it."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names |= {values[key] for key in ("id", "name") if values.get(key)}
        address = values.get("href") or values.get("src") or values.get("data")
        if address and tag in TAGS:
            (self.links if tag == "a" else self.fetched).append(address)


@contextlib.contextmanager
def on_a_phone(browser, width=390):
    """The browser with a small screen, or one of another width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
