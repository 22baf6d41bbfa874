# ft on Debian 12, of the packages that `make package` made:
#   docker build -f packaging/docker/deb.Dockerfile -t ft .
FROM debian:12
COPY packaging/install build/package/ft_*.deb /tmp/ft/
RUN /tmp/ft/install /tmp/ft/*.deb && rm -r /tmp/ft
CMD ["bash"]
