# The service, built from the versions in constraints.txt. See docs/guides/operate.md.
ARG PYTHON=3.11.14-slim-bookworm

FROM python:${PYTHON} AS build
ENV PIP_CONSTRAINT=/src/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m venv /opt/aftereffect && /opt/aftereffect/bin/pip install '.[postgres]'

FROM python:${PYTHON}
# A SQLite store, backups, and code compiled for this machine's processor; volumes keep what is in them.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin aftereffect \
    && install -d -o aftereffect -g aftereffect -m 700 \
    /var/lib/aftereffect /var/backups/aftereffect /var/cache/aftereffect
COPY --from=build /opt/aftereffect /opt/aftereffect
COPY --chmod=755 deploy/backup.sh /opt/aftereffect/bin/aftereffect-backup
ENV PATH=/opt/aftereffect/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp \
    AFTEREFFECT_HOST=0.0.0.0 AFTEREFFECT_STORE=/var/lib/aftereffect/aftereffect.db \
    AFTEREFFECT_CACHE_DIR=/var/cache/aftereffect
WORKDIR /var/lib/aftereffect
USER 10001:10001
EXPOSE 8000
# The first start compiles for up to a minute on a slow machine.
HEALTHCHECK --interval=10s --timeout=5s --start-period=90s --retries=3 \
    CMD ["python", "-c", "from urllib.request import *; build_opener(ProxyHandler({})).open('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["aftereffect"]
CMD ["serve"]
