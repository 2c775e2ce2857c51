"""The S3 gateway: its process, its data pool, and its user with a bucket."""

from __future__ import annotations

import base64
import hmac
import json
import time
from contextlib import closing
from dataclasses import dataclass
from email.utils import formatdate
from http.client import HTTPConnection
from subprocess import DEVNULL, Popen

from . import ClusterError
from .daemon import Daemon, State, program, run
from .monitor import Monitor
from .ports import is_free

_BUCKET = "zlog"
_DATA_POOL = "default.rgw.buckets.data"
_TIMEOUT = 60.0  # seconds until the gateway must serve, and answer a request
_POLL = 0.02


@dataclass(frozen=True)
class Gateway(Daemon):
    """The process of radosgw, which serves S3 at `address` and `port`."""

    address: str
    port: int

    @property
    def _begin(self) -> list[str]:
        return ["radosgw", "-n", self.name, "-c", str(self.folder.conf)]

    def start(self) -> None:
        """Start the gateway unless it runs, and wait until it accepts connections."""
        if self.state() is not State.STOPPED:
            return
        if not is_free(self.address, self.port):
            raise ClusterError(f"another program uses {self.name}'s port {self.port}: end it")
        command = self.command("-f")  # it would fork long before it serves or fails
        with self.folder.log(self.name).open("ab") as log:
            process = Popen(command, stdin=DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.folder.pid(self.name).write_text(str(process.pid))
        deadline = time.monotonic() + _TIMEOUT
        while is_free(self.address, self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ClusterError(f"start of {self.name} failed\n{self.log_tail()}")
            time.sleep(_POLL)

    def set_up(self, monitor: Monitor, osds: int) -> None:
        """Start the gateway. Create its data pool, user and bucket unless they exist."""
        if not self.folder.s3.exists():
            # The gateway creates its other pools itself.
            kind = {}
            if osds >= 3:
                profile = ["k=2", "m=1", "crush-failure-domain=osd"]
                monitor.command("osd erasure-code-profile set", name="rgw", profile=profile)
                kind = {"pool_type": "erasure", "erasure_code_profile": "rgw"}
            monitor.command("osd pool create", pool=_DATA_POOL, pg_num=8, **kind)
            monitor.command("osd pool application enable", pool=_DATA_POOL, app="rgw")
            self._make_user()
        monitor.touch_every_pg(_DATA_POOL)
        self.start()
        self._make_bucket()

    def _make_user(self) -> None:
        words = ["-c", str(self.folder.conf), "--uid", "zlog", "--display-name", "zlog"]
        reply = run([program("radosgw-admin"), "user", "create", *words], "radosgw-admin")
        key = json.loads(reply)["keys"][0]
        variables = {
            "AWS_ENDPOINT_URL": f"http://{self.address}:{self.port}",
            "AWS_ACCESS_KEY_ID": key["access_key"],
            "AWS_SECRET_ACCESS_KEY": key["secret_key"],
            # Ceph 16 refuses the trailing checksums that new clients send by default.
            "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
            "S3_BUCKET": _BUCKET,
        }
        temporary = self.folder.s3.with_suffix(".new")
        temporary.touch(mode=0o600)
        temporary.write_text("".join(f"export {k}={v}\n" for k, v in variables.items()))
        temporary.replace(self.folder.s3)

    def _make_bucket(self) -> None:
        s3, date = self.folder.read_s3(), formatdate(usegmt=True)
        # A signature of version 2, which needs less code than version 4.
        text = f"PUT\n\n\n{date}\n/{_BUCKET}".encode()
        digest = hmac.digest(s3["AWS_SECRET_ACCESS_KEY"].encode(), text, "sha1")
        signature = f"AWS {s3['AWS_ACCESS_KEY_ID']}:{base64.b64encode(digest).decode()}"
        with closing(HTTPConnection(self.address, self.port, timeout=_TIMEOUT)) as connection:
            headers = {"Date": date, "Authorization": signature}
            connection.request("PUT", f"/{_BUCKET}", headers=headers)
            status = connection.getresponse().status
        if status != 200:
            raise ClusterError(f"{self.name} refuses a bucket ({status})\n{self.log_tail()}")
