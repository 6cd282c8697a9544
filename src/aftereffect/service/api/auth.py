"""Access control: bearer tokens with scopes, and checks of the Host and Origin headers.

Scopes are ordered: `admin` includes `play`, and `play` includes `read`. On loopback no token is required by default, so
a malicious web page could reach the service through the user's browser: by a host name that resolves to 127.0.0.1 (DNS
rebinding) or by a cross-site form. Therefore Host must be one of the service's own names, and a write from a browser
must come from the service's own pages.
"""

from collections.abc import Mapping
from functools import lru_cache

from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection, Request, cookie_parser

from aftereffect.service.api.limits import ThreadPools
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.messages import SCOPES
from aftereffect.service.store.store import Store

COOKIE = "aftereffect_token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_ADDRESS = frozenset({"0.0.0.0", "::"})
LONGEST_TOKEN = 512

Headers = Mapping[bytes, bytes]


def included(scopes: frozenset[str]) -> frozenset[str]:
    """Return the scopes and all the scopes they include.

    >>> sorted(included(frozenset({"play"})))
    ['play', 'read']
    """
    highest = max((SCOPES.index(scope) for scope in scopes if scope in SCOPES), default=-1)
    return frozenset(SCOPES[: highest + 1])


@lru_cache(maxsize=256)
def host_name(host: str) -> str:
    """Return the host name in a Host header, without the port.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("EXAMPLE.org")
    ('localhost', '::1', 'example.org')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def token_of(headers: Headers) -> str | None:
    """Return the token of a request, from its Authorization header or else from the dashboard's cookie."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
    found = token.strip() if scheme.lower() == "bearer" else cookies.get(COOKIE)
    return found if found and len(found) <= LONGEST_TOKEN and found.isascii() and found.isprintable() else None


class Auth:
    """Checks requests against the configuration and the tokens in the store."""

    def __init__(self, store: Store, config: Config) -> None:
        self.required = config.access_required
        self.store = store
        self._further = frozenset(name.lower() for name in config.allowed_hosts)
        own = LOOPBACK_NAMES | {config.host.strip("[]").lower()} - ANY_ADDRESS
        # The loopback names are always accepted, for commands and health checks on this machine. If the service is not
        # on loopback and no names are configured, any Host is accepted, because tokens are required.
        self._hosts = own | self._further if config.on_loopback or self._further else frozenset[str]()

    def check_site(self, method: str, headers: Headers, any_host: bool) -> None:
        """Refuse a request whose Host is not a name of this service, and a write that comes from another site."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._hosts and not any_host and host_name(host) not in self._hosts:
            raise Refused("forbidden", "Host must be a name of this service; allowed_hosts adds names")
        if method in SAFE_METHODS:
            return
        site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
        if site is not None and site not in (b"same-origin", b"none"):
            raise Refused("forbidden", "a write must come from the service's own pages, but another site sent it")
        if origin is None:
            return
        sender = origin.decode("latin-1").partition("://")[2].lower()
        if not sender or (sender != host and host_name(sender) not in self._further):
            raise Refused("forbidden", "a write must come from the service's own pages, but Origin is another site")


class Scope(SecurityBase):
    """A FastAPI dependency: the request must have a token with this scope, unless none is required."""

    def __init__(self, scope: str) -> None:
        # For the OpenAPI document.
        self.model, self.scheme_name = HTTPBearer(), "bearer"
        self.scope = scope

    async def __call__(self, request: Request) -> None:
        """Refuse a request without the scope."""
        auth: Auth = request.app.state.auth
        if not auth.required:
            return
        token = token_of(dict(request.scope["headers"]))
        if token is None:
            raise Refused("unauthorized", "a token must be sent as `Authorization: Bearer …`, but none was sent")
        scopes = auth.store.recent_scopes_of(token)
        if scopes is None:
            pools: ThreadPools = request.app.state.pools
            scopes = await pools["checks"].run(auth.store.scopes_of, token)
        if scopes is None:
            raise Refused("unauthorized", "the token must be valid, but it is unknown or revoked")
        if self.scope not in included(scopes):
            raise Refused("forbidden", f"the token must have the scope {self.scope!r}, but does not", scope=self.scope)


def scopes_of_request(request: HTTPConnection) -> frozenset[str]:
    """Return the scopes of a request: those of its token, or all if no token is required. May query the store."""
    auth: Auth = request.app.state.auth
    if not auth.required:
        return frozenset(SCOPES)
    token = token_of(dict(request.scope["headers"]))
    return included((token and auth.store.scopes_of(token)) or frozenset())
