"""A page in a browser without a window, as far as there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from patience import PATIENCE

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture
def browse(tmp_path):
    """browse(page, script, size=..., dark=...): what the script, run in the loaded page, returns."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(BROWSERS)})")

    def run(page: str, script: str, size: str = "1300,900", dark: bool = False):
        asks = (
            "<script>(() => { let found; try { found = (() => {" + script + "})(); } catch (e) { found = String(e); }"
            "const out = document.createElement('pre'); out.id = 'answer';"
            "out.textContent = JSON.stringify(found); document.body.append(out); })();</script></body>"
        )
        path = tmp_path / "page.html"
        path.write_text(page.replace("</body>", asks))
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={size}", "--dump-dom",
                 "--virtual-time-budget=2000", f"--user-data-dir={tmp_path / 'profile'}"]  # fmt: skip
        flags += ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
        out = subprocess.run([browser, *flags, path.as_uri()], capture_output=True, text=True, timeout=PATIENCE)
        found = re.search(r'<pre id="answer">(.*?)</pre>', out.stdout, re.DOTALL)
        assert found, out.stderr[-2000:]
        text = found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        return json.loads(text)

    return run
