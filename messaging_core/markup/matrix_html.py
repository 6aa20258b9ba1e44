"""Matrix: ``body`` as plain text, ``formatted_body`` in the HTML that clients must know.

Tables are aligned text: clients that know no tables run the cells together.
https://spec.matrix.org/latest/client-server-api/#mroommessage-msgtypes Mentions stay as typed: ``m.mentions`` is the
switch.
"""

from messaging_core.markup import html
from messaging_core.markup.addresses import scheme
from messaging_core.markup.links import web


def hides(label: str, url: str) -> bool:
    """Clients take links away whose scheme is another."""
    return web(label, url) or scheme(url) in ("ftp", "mailto", "magnet")


MATRIX_HTML = html.dialect("matrix-html", html.Page(hides, tables=False))
