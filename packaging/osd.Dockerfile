# An image of Ceph whose OSDs have zlog's object class, for cephadm and Rook. Not tried: see
# docs/operating.md. Its context is a clone of zlog.
#   docker build -f packaging/osd.Dockerfile --build-arg CEPH_IMAGE=… -t … .
# CEPH_IMAGE is the image that the cluster runs (`ceph config get mgr container_image`), an RPM system
# whose repositories have the headers of its release.
ARG CEPH_IMAGE

FROM ${CEPH_IMAGE} AS class
# Of the very release: the class has its C++ names in it.
RUN release=$(rpm -q --queryformat '%{VERSION}' ceph-osd) \
    && dnf install -y --setopt=install_weak_deps=False cmake gcc-c++ make \
        "libradospp-devel-$release" "rados-objclass-devel-$release"
COPY CMakeLists.txt /source/
COPY cls_zlog /source/cls_zlog
RUN cmake -S /source -B /build -DZLOG_WITH_PYTHON=OFF -DZLOG_WITH_OSD_CLASS=ON \
    && cmake --build /build \
    && cmake --install /build --component osd_class --prefix /usr

FROM ${CEPH_IMAGE}
COPY --from=class /usr/lib64/rados-classes/libcls_zlog.so /usr/lib64/rados-classes/
