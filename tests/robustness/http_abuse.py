"""Abuse of the live report: whatever clients do, it answers the others, and ends when it is told to."""

import http.client
import os
import re
import signal
import socket
import threading
import time

import samples
from workbench import Failure

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PRI", "get", "\x00", "G" * 9000)
PATHS = ("/", "/data", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/" + "a" * 9000, "/%00", "/%zz",
         "/?" + "a=b&" * 3000, "*", "http://elsewhere/", "/\x1b[2J", "/data?since=99999999999999999999")
HOSTS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil", "", "[::1", "a" * 5000,
         "evil.example#localhost", "user@localhost", "0x7f.1.evil")
RANGES = ("bytes=0-0" + ",0-0" * 20000, "bytes=0-" + ",0-" * 500, "bytes=-1", "bytes=5-1", "bytes=99999999999999999999-",
          "bytes=0-18446744073709551615", "bytes=" + "1-1," * 300, "lines=1-2", "bytes=--", "bytes=a-b")


class Server:
    """A running `pascaline serve`."""

    def __init__(self, bench):
        self.bench = bench
        self.words = ["serve", "--db", samples.swept_database(bench), "--port", "0"]
        self.process = bench.start(self.words)
        end = time.monotonic() + bench.settings.seconds
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/", bench.content("out") + bench.content("error"))):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failure("serve does not begin: " + bench.content("error").decode("utf-8", "replace"))
            time.sleep(0.02)
        self.port = int(found.group(1))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def say(self, content, seconds=3.0):
        """Sends bytes; returns the beginning of the answer."""
        with self.connect() as connection:
            connection.settimeout(seconds)
            answer = b""
            try:
                connection.sendall(content)
                while len(answer) < 1 << 20:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    answer += piece
                    if len(answer) > 200 and b"\r\n\r\n" in answer:
                        break
            except OSError:
                pass
            return answer

    def peak_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024

    def expect_alive(self):
        if self.process.poll() is not None:
            raise Failure(f"serve ended with {self.process.returncode}: " +
                          self.bench.content("error").decode("utf-8", "replace")[:500])
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            connection.request("GET", "/")
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"a usual request is not answered: {error!r}") from error
        if answer.status != 200 or b"</html>" not in body:
            raise Failure(f"a usual request is answered with {answer.status}")
        if self.peak_mib() > self.bench.settings.memory_mib:
            raise Failure(f"needs {self.peak_mib():.0f} MiB")


def request(method="GET", path="/", host="localhost", headers=()):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogatepass")


def status_of(answer):
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found.group(1)) if found else 0


def methods(server, random):
    method = random.choice(METHODS)
    status = status_of(server.say(request(method, random.choice(PATHS))))
    if method not in ("GET", "HEAD", "OPTIONS") and 200 <= status < 300:
        raise Failure(f"{method[:20]!r} is answered with {status}")


def hosts(server, random):
    host = random.choice(HOSTS)
    answer = server.say(request(host=host))
    if status_of(answer) == 200:
        raise Failure(f"Host {host[:60]!r} is answered with 200")


def paths(server, random):
    answer = server.say(request(path=random.choice(PATHS)))
    if b"root:x:0" in answer:
        raise Failure("it gives away a file")


def ranges(server, random):
    server.say(request(headers=[f"Range: {random.choice(RANGES)}"]))


def many_ranges_at_once(server, random):
    threads = [threading.Thread(target=server.say, args=(request(headers=["Range: bytes=0-" + ",0-" * 1000]), 10))
               for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def headers(server, random):
    kind = random.randrange(4)
    if kind == 0:
        server.say(request(headers=[f"X-{i}: y" for i in range(20000)]))
    elif kind == 1:
        server.say(request(headers=["X: " + "y" * random.choice((10_000, 10_000_000))]))
    elif kind == 2:
        server.say(b"GET / HTTP/1.1\r\n" + random.randbytes(5000) + b"\r\n\r\n")
    else:
        server.say(b"GET / HTTP/1.1\nHost: localhost\nHost: evil\n\n")


def bodies(server, random):
    length = random.choice((0, -1, 1 << 62, 1 << 64, 100))
    server.say(request("POST", headers=[f"Content-Length: {length}", random.choice(("A: b", "Transfer-Encoding: chunked"))]) +
               random.choice((b"", b"FFFFFFFFFFFFFFFF\r\n", b"x" * 100000)))


def noise(server, random):
    server.say(random.randbytes(random.choice((1, 100, 100_000))))


def slow_clients(server, random):
    """Fewer than the requests that are answered at a time: the others must not notice."""
    open_ones = [server.connect() for _ in range(random.randint(5, 40))]
    try:
        for connection in open_ones:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: loc"[:random.randint(0, 25)])
        server.expect_alive()
    finally:
        for connection in open_ones:
            connection.close()


def readers_that_stop(server, random):
    open_ones = [server.connect() for _ in range(random.randint(5, 40))]
    try:
        for connection in open_ones:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(request())
        server.expect_alive()
    finally:
        for connection in open_ones:
            connection.close()


def database_gone(server, random):
    path = server.bench.path("tuned.db")
    os.rename(path, path + ".away")
    server.say(request(path="/"))
    os.rename(path + ".away", path)


ABUSES = (methods, hosts, paths, ranges, many_ranges_at_once, headers, bodies, noise, slow_clients, readers_that_stop,
          database_gone)


class HttpAbuse:
    """A case: a server, ten abuses one after the other, a usual request after each, and its end."""

    name = "http"
    title = "abuse of serve"
    counts = {"short": 3, "long": 200}

    def prepare(self, bench):
        samples.swept_database(bench)

    def case(self, bench, random, tally):
        server = Server(bench)
        for _ in range(10):
            abuse = random.choice(ABUSES)
            try:
                abuse(server, random)
                server.expect_alive()
            except Failure as failure:
                raise Failure(f"{abuse.__name__}: {failure}") from failure
            except OSError as error:
                raise Failure(f"{abuse.__name__}: no connection: {error!r}") from error
            tally(abuse.__name__, 1)
        server.process.send_signal(random.choice((signal.SIGTERM, signal.SIGINT)))
        outcome = bench.finish(server.process, server.words, 30)
        bench.expect_clean(outcome, {0})
        bench.expect_nobody_left()
