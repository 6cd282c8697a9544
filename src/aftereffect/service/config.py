"""The configuration of the service: a frozen `Config`, from arguments or from environment variables `AFTEREFFECT_…`.

Each field has a variable: `port` is read from AFTEREFFECT_PORT, `allowed_hosts` from AFTEREFFECT_ALLOWED_HOSTS (names
separated by commas). An argument takes precedence over a variable.

>>> config = Config(host="0.0.0.0", store="shop.db")
>>> config.store, config.on_loopback, config.access_required
('shop.db', False, True)
"""

import base64
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from aftereffect.service.protocol import is_loopback

MEBIBYTE = 1 << 20
RATE_ELSEWHERE = 1000.0


class Config(BaseSettings):
    """Address, store, access and limits of the service.

    Attributes:
        host, port: the address to listen on; port 0 takes a free one.
        store: the database: a URL, or the path of a SQLite file.
        access: whether tokens are required: "auto" unless on loopback, "required" always, "off" never (loopback only).
        allowed_hosts: additional host names accepted in Host and Origin headers.
        body_limit, bulk_body_limit: the maximum size of a request body, in bytes.
        body_seconds: the time a client has to send a body.
        rate_limit: sustained requests per second from one address, 0 for no limit; by default no limit on loopback and
            1,000 elsewhere. rate_burst: the size of a burst, as seconds of that rate.
        concurrency: the maximum number of requests processed at a time.
        stop_seconds: how long a shutdown waits for requests in progress.
        webhooks: the addresses that reminders may call, by name: "sales=https://...,ops=https://...".
        webhook_secret: signs the calls; needed if there are webhooks.
        log_level: the lowest level logged. log_requests: log every request, not only failed or slow ones.
    """

    model_config = SettingsConfigDict(env_prefix="AFTEREFFECT_", frozen=True, extra="ignore")

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    # Not in the repr, which may be logged: the URL may contain a password.
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
    # Not in the repr: addresses of chat tools contain a key.
    webhooks: Annotated[dict[str, str], NoDecode, Field(repr=False)] = {}
    webhook_secret: Annotated[str, Field(repr=False)] = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_requests: bool = False

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip().lower() for name in value.split(",") if name.strip())
        return value

    @field_validator("webhooks", mode="before")
    @classmethod
    def _addresses(cls, value: object) -> object:
        if isinstance(value, str):
            pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
            value = {name.strip(): address.strip() for name, _, address in pairs}
        if isinstance(value, dict):
            for name, address in value.items():
                if not name or not str(address).startswith(("https://", "http://")):
                    # Without a name, this is an address, which may hold a key.
                    which = "one" if ":" in name else repr(name)
                    raise ValueError(f"must be names with addresses, sales=https://..., but {which} has none")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.access == "off" and not self.on_loopback:
            rule = "access must not be 'off' unless host is a loopback address like 127.0.0.1"
            raise ValueError(f"{rule}, but got host {self.host!r}")
        if self.webhooks and len(self.webhook_secret) < 16:
            raise ValueError("webhook_secret must have 16 or more characters if there are webhooks, but has fewer")
        if self.webhook_secret.startswith("whsec_"):
            try:
                base64.b64decode(self.webhook_secret.removeprefix("whsec_"), validate=True)
            except ValueError:
                raise ValueError("webhook_secret must be base64 after whsec_, but is not") from None
        return self

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
        """Sustained requests per second from one address; 0 for no limit."""
        if self.rate_limit is not None:
            return self.rate_limit
        return 0.0 if self.on_loopback else RATE_ELSEWHERE
