"""A small GPU exporter on loopback with made-up readings in the formats of real exporters."""

import contextlib
import http.server
import threading
import time
import urllib.parse


def line(name, value, at=None, **labels):
    inner = ",".join(f'{label}="{text}"' for label, text in labels.items())
    stamp = "" if at is None else f" {round(at * 1000)}"
    return f"{name}{{{inner}}} {value}{stamp}\n"


def dcgm(host="v1", gpus=2, spelling="Hostname", model="Tesla V100-SXM2-16GB", at=None):
    """NVIDIA's dcgm-exporter: MiB, percent, degrees, watts."""
    values = {
        "DCGM_FI_DEV_GPU_UTIL": 84, "DCGM_FI_PROF_DRAM_ACTIVE": 0.5,
        "DCGM_FI_DEV_MEM_COPY_UTIL": 61, "DCGM_FI_DEV_GPU_TEMP": 68,
        "DCGM_FI_DEV_POWER_USAGE": 218.75, "DCGM_FI_DEV_FB_USED": 10908,
        "DCGM_FI_DEV_FB_FREE": 5252, "DCGM_FI_DEV_XID_ERRORS": 0,
    }  # fmt: skip
    page = ""
    for name, value in values.items():
        page += f"# HELP {name} made up\n# TYPE {name} gauge\n"
        for gpu in range(gpus):
            labels = {
                "gpu": gpu, "UUID": f"GPU-{host}-{gpu}", "pci_bus_id": f"00000000:0{gpu}:00.0",
                "device": f"nvidia{gpu}", "modelName": model, spelling: host,
                "DCGM_FI_DRIVER_VERSION": "550.90.07",
            }  # fmt: skip
            page += line(name, value, at, **labels)
    return page


def rocm(host="r1", gpus=2, prefix=""):
    """ROCm's device-metrics-exporter: MB, percent, degrees, watts."""
    values = {
        "gpu_gfx_activity": 61, "gpu_umc_activity": 20, "gpu_edge_temperature": 37,
        "gpu_used_vram": 1793, "gpu_total_vram": 32752, "gpu_average_package_power": 51,
        "gpu_ecc_uncorrect_total": 3,
    }  # fmt: skip
    page = ""
    for name, value in values.items():
        page += f"# TYPE {prefix}{name} gauge\n"
        for gpu in range(gpus):
            labels = {
                "card_model": "0xc34", "card_series": "AMD INSTINCT MI100", "gpu_id": gpu,
                "gpu_compute_partition_type": "none", "gpu_partition_id": "0", "hostname": host,
                "job_id": "", "serial_number": f"{host}{gpu}",
            }  # fmt: skip
            page += line(prefix + name, value, **labels)
    return page


def amd_smi(gpus=2):
    """AMD's older exporter: thousandths of a degree, millionths of a watt, no host, no memory."""
    values = {
        "gpu_use_percent": 40, "gpu_memory_use_percent": 10,
        "gpu_current_temperature": 54000, "gpu_power": 150500000,
    }  # fmt: skip
    page = '# TYPE amd_num_gpus gauge\namd_num_gpus{num_gpus=""} 2\n'
    for name, value in values.items():
        for gpu in range(gpus):
            page += line("amd_" + name, value, **{name: gpu, "productname": "AMD INSTINCT MI100"})
    return page


class Server:
    """An HTTP server on loopback that serves any page until stopped; it can restart on its port."""

    def __init__(self, page=""):
        self.page = page.encode() if isinstance(page, str) else page
        self.status, self.kind, self.headers = 200, "text/plain; version=0.0.4", {}
        self.wait_s = 0.0  # before the answer
        self.drip_s = 0.0  # between its bytes
        self.pages = []  # one after the other before the page
        self.asked = []
        self.forms = []  # of questions that came with one
        self.accepted = []  # what each question would like to get
        self._server, self._thread, self.port = None, None, 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.answer(self)

            def do_POST(self):
                form = self.rfile.read(int(self.headers["Content-Length"]))
                owner.forms.append(dict(urllib.parse.parse_qsl(form.decode())))
                owner.answer(self)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass  # the client has disconnected

        self._server = Quiet(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def answer(self, handler):
        self.asked.append(handler.path)
        self.accepted.append(handler.headers.get("Accept", ""))
        time.sleep(self.wait_s)
        handler.send_response(self.status)
        handler.send_header("Content-Type", self.kind)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        page = self.pages.pop(0) if self.pages else self.page
        step = 1 if self.drip_s else len(page) or 1
        for start in range(0, len(page), step):
            handler.wfile.write(page[start : start + step])
            time.sleep(self.drip_s)

    def stop(self):
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None


@contextlib.contextmanager
def serving(page=""):
    server = Server(page)
    server.start()
    try:
        yield server
    finally:
        server.stop()
