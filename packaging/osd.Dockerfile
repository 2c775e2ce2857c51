# An image of Ceph whose OSDs have zlog's object class, for cephadm and Rook. Its context is a clone
# of zlog. It was tested with Debian's packages, but not with an RPM system.
#   docker build -f packaging/osd.Dockerfile --build-arg CEPH_IMAGE=… -t … .
# CEPH_IMAGE is the image that the cluster runs (`ceph config get mgr container_image`). Its
# repositories must have the headers of its release.
ARG CEPH_IMAGE

FROM ${CEPH_IMAGE} AS class
# The class contains C++ names of the release, so the headers must be of the same release.
RUN if command -v dnf; then \
        release=$(rpm -q --queryformat '%{VERSION}' ceph-osd) \
        && dnf install -y --setopt=install_weak_deps=False cmake gcc-c++ make \
            "libradospp-devel-$release" "rados-objclass-devel-$release"; \
    else \
        release=$(dpkg-query --show --showformat='${Version}' ceph-osd) \
        && apt-get update && apt-get install -y --no-install-recommends cmake g++ make \
            "libradospp-dev=$release" "rados-objclass-dev=$release"; \
    fi
COPY CMakeLists.txt /source/
COPY cls_zlog /source/cls_zlog
RUN cmake -S /source -B /build -DCMAKE_INSTALL_PREFIX=/usr -DZLOG_WITH_PYTHON=OFF \
        -DZLOG_WITH_OSD_CLASS=ON \
    && cmake --build /build \
    && DESTDIR=/install cmake --install /build --component osd_class

FROM ${CEPH_IMAGE}
COPY --from=class /install /
