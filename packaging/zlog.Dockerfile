# The command zlog with librados, for clients, sequencers, exporters, consoles and HTTP servers in containers:
#   docker build -f packaging/zlog.Dockerfile -t zlog .
# It has no ceph.conf and no keyring, so mount them. BASE determines the release of librados: clients
# whose keys have the type AES256K need 19.2.6, 20.2.4 or 21.2.0.
ARG BASE=debian:bookworm

FROM ${BASE} AS build
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates g++ liblmdb-dev liblz4-dev libzstd-dev python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt LICENSE README.md pyproject.toml /source/
COPY cls_zlog /source/cls_zlog
COPY zlog /source/zlog
COPY seqr /source/seqr
COPY cli /source/cli
COPY pyspark_zlog /source/pyspark_zlog
COPY zlog_command /source/zlog_command
COPY tools/codes.py tools/messages_cython.py tools/stubs.py tools/sync_facade.py /source/tools/
RUN python3 -m venv /opt/zlog \
    && /opt/zlog/bin/pip install --no-cache-dir '/source[console,http,metrics,otlp,seqr]'

FROM ${BASE}
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        liblmdb0 liblz4-1 librados2 libzstd1 python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 7460 --no-create-home zlog
COPY --from=build /opt/zlog /opt/zlog
ENV PATH=/opt/zlog/bin:$PATH
# Cephadm gives its files to this user, and Kubernetes only trusts a number not to be root.
USER 7460:7460
ENTRYPOINT ["zlog"]
