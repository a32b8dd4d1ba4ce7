"""A real Prometheus server on loopback in its own folder; it is always stopped."""

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.request

MISSING = "prometheus is not installed (make prometheus installs Debian's)"


def program():
    return shutil.which("prometheus")


def free_port():
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


def until(claim, seconds=60.0):
    """Wait until a condition holds and return its last value."""
    end = time.monotonic() + seconds
    while not (said := claim()) and time.monotonic() < end:
        time.sleep(0.2)
    return said


def _is_ready(url):
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


@contextlib.contextmanager
def prometheus(folder, ports):
    """Scrape exporters on these ports every second; yields the server's address."""
    port = free_port()
    targets = ", ".join(f"'127.0.0.1:{each}'" for each in ports)
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 900ms}\n"
        "scrape_configs:\n"
        f"- {{job_name: gpus, static_configs: [{{targets: [{targets}]}}]}}\n"
    )
    url = f"http://127.0.0.1:{port}"
    options = {
        "config.file": config, "storage.tsdb.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{port}", "log.level": "error",
    }  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program(), *(f"--{name}={value}" for name, value in options.items())],
            stdout=log,
            stderr=log,
        )
        try:
            until(lambda: process.poll() is not None or _is_ready(url))
            assert _is_ready(url), (folder / "log").read_text()
            yield url
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
