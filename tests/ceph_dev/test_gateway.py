"""The S3 gateway, as S3 clients use it."""

from __future__ import annotations

import os

import pytest
from pyarrow import fs

from ..support.ceph import CephCluster, ceph
from .conftest import open_pool

DATA = os.urandom(12 << 20)  # more than one part of an upload


def test_gateway_serves_erasure_coded_objects(s3_cluster: CephCluster) -> None:
    s3, pool = s3_cluster.s3, "default.rgw.buckets.data"
    files = fs.S3FileSystem(
        access_key=s3.access_key,
        secret_key=s3.secret_key,
        endpoint_override=s3.endpoint,
        scheme="http",
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )
    path = f"{s3.bucket}/gateway-test/file"
    with files.open_output_stream(path) as output:
        output.write(DATA)
    assert "rgw" in ceph(s3_cluster, "osd", "pool", "get", pool, "erasure_code_profile")
    with open_pool(s3_cluster.conf, pool) as ioctx:
        names = [each.key for each in ioctx.list_objects() if "gateway-test" in each.key]
        assert sum(ioctx.stat(name)[0] for name in names) == len(DATA)

    s3_cluster.gateway("kill")
    with pytest.raises(OSError, match="connect"):
        files.get_file_info(path)
    s3_cluster.gateway("start")
    files.create_dir("gateway-test")  # does not wait for the gateway that was killed
    s3_cluster.gateway("freeze")
    assert s3_cluster.status()["daemons"][-1]["state"] == "frozen"
    s3_cluster.gateway("thaw")
    by_environment, _ = fs.FileSystem.from_uri(f"s3://{path}")
    with by_environment.open_input_stream(path) as stream:
        assert stream.read() == DATA
    for folder in ("gateway-test", f"{s3.bucket}/gateway-test"):
        files.delete_dir(folder)
