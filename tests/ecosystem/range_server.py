"""A server of static files that supports Range requests, as web hosts do."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class _Handler(SimpleHTTPRequestHandler):
    """Serves files, whole or in part, and reports the status of each part."""

    parts: list[str]

    def __init__(self, *arguments: object, parts: list[str], **options: object) -> None:
        self.parts = parts
        super().__init__(*arguments, **options)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        match = _RANGE.fullmatch(self.headers.get("Range", ""))
        if match is None or not path.is_file():
            super().do_GET()
            return
        content = path.read_bytes()
        first, last = match.groups()
        # "-N" is the last N bytes.
        start = int(first) if first else max(len(content) - int(last), 0)
        end = min(int(last), len(content) - 1) if first and last else len(content) - 1
        self.parts.append(path.name)
        self.send_response(206)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        self.send_header("Content-Length", str(end + 1 - start))
        self.end_headers()
        self.wfile.write(content[start : end + 1])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_folder(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder on 127.0.0.1; yield the address, and the files requested in part so far."""
    parts: list[str] = []
    handler = partial(_Handler, directory=str(folder), parts=parts)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", parts
        finally:
            server.shutdown()
            thread.join()
