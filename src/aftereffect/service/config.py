"""How the service is set up: one frozen `Config`, from arguments or from environment variables `AFTEREFFECT_…`.

Each field is a variable: `port` is read from AFTEREFFECT_PORT, `allowed_hosts` from AFTEREFFECT_ALLOWED_HOSTS (names
parted by commas). An argument wins over a variable.

>>> config = Config(host="0.0.0.0", store="shop.db")
>>> config.store, config.on_loopback, config.access_required
('sqlite:///shop.db', False, True)
"""

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

MEBIBYTE = 1 << 20
RATE_ELSEWHERE = 1000.0


def is_loopback(host: str) -> bool:
    """Say whether a server bound to `host` is reached from its own machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Config(BaseSettings):
    """Where the service listens, what it stores in, who may use it, and how much it takes.

    Attributes:
        host, port: where it listens; port 0 takes a free one.
        store: the database: a URL, or the path of an SQLite file.
        access: "auto" asks for tokens unless bound to loopback, "required" always, "off" never (loopback only).
        allowed_hosts: further names under which the service may be addressed (and, in browsers, write to itself).
        body_limit, bulk_body_limit: the largest bodies in bytes.
        body_seconds: how long a client may take to send a body.
        rate_limit: requests a second that one address may send in the long run, 0 for any number; by default any
            number on loopback and 1,000 elsewhere. `rate_burst` seconds' worth of them may come at once.
        concurrency: requests in work at one time.
        stop_seconds: how long a stop waits for requests in work.
        log_level, log_requests: from which level on, and whether each request (not only a failed or slow one).
    """

    model_config = SettingsConfigDict(env_prefix="AFTEREFFECT_", frozen=True, extra="ignore")

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    # A store's URL may hold a password, and a repr ends in logs.
    store: Annotated[str, Field(repr=False, min_length=1)] = "sqlite:///aftereffect.db"
    access: Literal["auto", "required", "off"] = "auto"
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    body_limit: Annotated[int, Field(ge=1024)] = MEBIBYTE
    bulk_body_limit: Annotated[int, Field(ge=1024)] = 8 * MEBIBYTE
    body_seconds: Annotated[float, Field(gt=0)] = 30.0
    rate_limit: Annotated[float | None, Field(ge=0)] = None
    rate_burst: Annotated[float, Field(gt=0)] = 2.0
    concurrency: Annotated[int, Field(ge=1)] = 512
    stop_seconds: Annotated[int, Field(ge=0)] = 10
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_requests: bool = False

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip().lower() for name in value.split(",") if name.strip())
        return value

    @field_validator("store")
    @classmethod
    def _url(cls, value: str) -> str:
        return value if "://" in value else f"sqlite:///{value}"

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def access_required(self) -> bool:
        """Whether a request needs a token."""
        return self.access == "required" or (self.access == "auto" and not self.on_loopback)

    @property
    def requests_per_second(self) -> float:
        """How many requests a second one address may send in the long run; 0 for any number."""
        if self.rate_limit is not None:
            return self.rate_limit
        return 0.0 if self.on_loopback else RATE_ELSEWHERE
