"""Mail: a plain text, and a small HTML page with its style inside the tags, as mail clients need it."""

from messaging_core.markup import html
from messaging_core.markup.addresses import scheme
from messaging_core.markup.links import web


def hides(label: str, url: str) -> bool:
    return web(label, url) or scheme(url) in ("ftp", "mailto", "tel")


EMAIL_HTML = html.dialect(
    "email-html",
    html.Page(
        hides,
        tables=True,
        table=' border="1" cellpadding="4" style="border-collapse:collapse"',
        quote=' style="margin:0 0 0 0.5em;padding-left:0.5em;border-left:2px solid #ccc"',
        around=('<!DOCTYPE html><html><head><meta charset="utf-8"></head><body>', "</body></html>"),
    ),
)
