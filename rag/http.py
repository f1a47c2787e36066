"""What a client of any endpoint needs: who may see a request, when to try again, what to quote."""

from __future__ import annotations

import ipaddress
import re
import time
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

EXCERPT_CHARACTERS = 300
# Longest wait between two tries, whatever a server asks for: somebody sits and waits.
LONGEST_PAUSE_SECONDS = 30.0

_KEY_LIKE = re.compile(r"\b(sk|pk|hf|gsk)[-_][\w*.-]{4,}")


def is_this_machine(url: str) -> bool:
    """Whether a URL's host is this machine, so that no proxy may see the request."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def is_sendable(secret: str) -> bool:
    """Whether a key can stand in a header; a line break in it could add headers of its own."""
    return secret.isascii() and secret.isprintable()


def retry_after(header: str) -> float | None:
    """Seconds that a `Retry-After` header asks for (RFC 9110, 10.2.3), as a number or a date."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None


def excerpt(text: str, secret: str | None) -> str:
    """A server's words, fit to be shown: printable, short, without the key or anything like one."""
    if secret:
        text = text.replace(secret, "[key]")
    text = _KEY_LIKE.sub("[key]", text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= EXCERPT_CHARACTERS else text[:EXCERPT_CHARACTERS] + "..."
