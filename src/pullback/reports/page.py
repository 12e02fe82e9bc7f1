"""The page of a report: a template without anything from elsewhere, and the facts as JSON in it."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("page.html")


def page(facts: dict[str, Any]) -> str:
    """The whole page as text."""
    data = json.dumps(facts, allow_nan=False, default=str).replace("<", "\\u003c")  # no tag ends the script
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.replace("{{name}}", html.escape(facts["name"])).replace("{{facts}}", data)
