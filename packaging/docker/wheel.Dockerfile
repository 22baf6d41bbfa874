# The wheel on Debian 12, with NVIDIA's libraries unless EXTRAS says otherwise; NVIDIA's container toolkit brings the driver:
#   docker build -f packaging/docker/wheel.Dockerfile -t ft-gpu .          (--build-arg EXTRAS= for CPUs alone)
#   docker run --gpus=all ft-gpu ftexec plan.bin --device=cuda ...
FROM debian:12
ARG EXTRAS=cuda
COPY packaging/install build/package/ft-*.whl /tmp/ft/
RUN EXTRAS=$EXTRAS /tmp/ft/install /tmp/ft/*.whl /opt/ft && rm -r /tmp/ft
ENV PATH=/opt/ft/bin:$PATH NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
CMD ["bash"]
