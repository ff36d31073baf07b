"""A web server for the tests of the package, which is a bridge, too: `/tcp/PORT` passes bytes between a WebSocket and
a port of this machine. `/garbage`, `/text`, `/silent`, `/refuse` and `/vanish` are bad peers.
"""

import base64
import hashlib
import http.server
import os
import pathlib
import socket
import socketserver
import struct
import threading
import urllib.parse

KINDS = {".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".csv": "text/csv"}


class Connection:
    """The server's side of a WebSocket (RFC 6455), without extensions."""

    def __init__(self, read, write):
        self.read, self.write = read, write
        self.lock = threading.Lock()
        self.closed = False

    def send(self, data, kind=2):
        length = len(data)
        if length < 126:
            head = struct.pack("!BB", 0x80 | kind, length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 127, length)
        with self.lock:
            self.write(head + data)

    def close(self, code, reason=""):
        with self.lock:
            if self.closed:
                return
            self.closed = True
        try:
            self.send(struct.pack("!H", code) + reason.encode(), 8)
        except OSError:
            pass

    def receive(self):
        """The bytes of the next frame; None at the end."""
        first, second = self.read(2)
        length = second & 127
        if length == 126:
            (length,) = struct.unpack("!H", self.read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.read(8))
        assert second & 128 and length <= 1 << 16, "a message is masked and has at most 64 KiB"
        mask = self.read(4)
        data = self.read(length)
        mask = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
        data = (int.from_bytes(data, "big") ^ mask).to_bytes(length, "big")
        return None if first & 15 == 8 else data


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self.close_connection = True
            self.upgrade(path)
            return
        for prefix, folder in self.server.folders.items():
            file = folder / path.removeprefix(prefix) if path.startswith(prefix) else None
            if file and ".." not in path and file.is_file():
                break
        else:
            self.send_error(404)
            return
        data = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", KINDS.get(file.suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(data)))
        if not path.startswith("/plain"):
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.end_headers()
        self.wfile.write(data)

    def upgrade(self, path):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        offered = [one.strip() for one in self.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        self.server.offered.append(offered)
        assert "volery.1" in offered
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", "volery.1")
        self.end_headers()

        def read(count):
            data = self.rfile.read(count)
            if len(data) < count:
                raise ConnectionError
            return data

        web = Connection(read, self.wfile.write)
        try:
            getattr(self, "web_" + path.split("/")[1])(web, path)
        except (ConnectionError, ValueError):
            pass

    def web_tcp(self, web, path):
        peer = socket.create_connection(("127.0.0.1", int(path.split("/")[2])))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def down():
            try:
                while data := peer.recv(1 << 18):
                    web.send(data)
                web.close(1000)
            except OSError:
                web.close(1000)

        thread = threading.Thread(target=down, daemon=True)
        thread.start()
        try:
            while (data := web.receive()) is not None:
                peer.sendall(data)
            web.close(1000)
        finally:
            peer.shutdown(socket.SHUT_RDWR)
            peer.close()
            thread.join(5)

    def web_garbage(self, web, _):
        web.send(os.urandom(1 << 16))
        web.receive()

    def web_text(self, web, _):
        web.send(b"hello", 1)
        web.receive()

    def web_silent(self, web, _):
        while web.receive() is not None:
            pass

    def web_refuse(self, web, _):
        web.close(4001, "the token is not known:\nask the operator for one")
        web.receive()

    def web_beats(self, web, _):
        """Tells what comes behind the first message."""
        web.receive()
        web.close(4001, web.receive().hex())
        web.receive()

    def web_absent(self, web, _):
        web.close(4000, "the native party is not there")
        web.receive()

    def web_vanish(self, web, _):
        web.receive()
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folders):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folders = {prefix: pathlib.Path(folder) for prefix, folder in folders.items()}
        self.offered = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def origin(self):
        return f"http://localhost:{self.server_port}"

    def bridge(self, path):
        return f"ws://localhost:{self.server_port}/{path}"
