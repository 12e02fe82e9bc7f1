"""Shows a trace in a browser: Perfetto's page fetches it from this machine, once."""

from __future__ import annotations

import http.server
from pathlib import Path

PORT = 9001  # the one that Perfetto's page may fetch from
PAGE = "https://ui.perfetto.dev"


def show(path: Path) -> None:
    """Print the address of Perfetto's page for a file, and wait until the file has been fetched. OSError if the port
    is taken.
    """
    content = path.read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.server.fetched = True  # type: ignore[attr-defined]
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", PAGE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", PORT), Handler) as server:
        server.fetched = False  # type: ignore[attr-defined]
        print(f"Open URL in browser: {PAGE}/#!/?url=http://127.0.0.1:{PORT}/{path.name}", flush=True)
        while not server.fetched:  # type: ignore[attr-defined]
            server.handle_request()


__all__ = ["show"]
