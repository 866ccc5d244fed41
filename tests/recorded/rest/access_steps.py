"""Requests to a worker's HTTP front: CORS, response headers, basic authentication, admin listeners.

Each section is a worker with its properties; `{admin}` is replaced by host:port of its second listener. A step is name,
listener and the whole request.
"""

from __future__ import annotations

import base64

USERS = {"alice": "wonder", "bob": "with=equals and space"}
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"

Step = tuple[str, str, str]
"""Name, listener (main or admin), request."""


def _asked(request: str, *headers: str, body: str = "", listener: str = "main") -> Step:
    lines = [f"{request} HTTP/1.1", "Host: worker", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    name = " ".join([f"{listener}:", request, *(h.replace("Access-Control-Request", "ACR") for h in headers)])
    return name, listener, "\r\n".join([*lines, "Connection: close", "", body])


def _basic(text: str, scheme: str = "Basic") -> str:
    return f"Authorization: {scheme} {base64.b64encode(text.encode()).decode()}"


ALLOWED, OTHER, STRANGER = "Origin: http://one.example", "Origin: https://a.two.example", "Origin: http://evil.example"
_CROSS = [
    _asked("GET /"),
    *(_asked("GET /", origin) for origin in (ALLOWED, OTHER, STRANGER, "Origin: null", "Origin: ")),
    _asked("GET /", "Origin: http://evil.example http://one.example"),
    _asked("GET /nothing", ALLOWED),
    _asked("HEAD /", ALLOWED),
    _asked("DELETE /", ALLOWED),
    _asked("OPTIONS /"),
    _asked("OPTIONS /", ALLOWED),
    _asked("OPTIONS /connectors/x/config", ALLOWED, "Access-Control-Request-Method: PUT"),
    *(_asked("OPTIONS /", origin, "Access-Control-Request-Method: GET") for origin in (ALLOWED, OTHER, STRANGER)),
    _asked("OPTIONS /", ALLOWED, "Access-Control-Request-Method: DELETE"),
    _asked("OPTIONS /", ALLOWED, "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: accept, X-Own"),
    _asked(
        "OPTIONS /",
        ALLOWED,
        "Access-Control-Request-Method: GET",
        "Access-Control-Request-Headers: content-type,Origin",
    ),
    _asked("GET /", ALLOWED, "Access-Control-Request-Method: GET"),
    _asked("GET /", ALLOWED, "Connection: Upgrade", "Upgrade: websocket"),
    _asked("GET /admin/loggers/nothing", ALLOWED),
]
_HEADERS = [_asked("GET /"), _asked("GET /nothing"), _asked("DELETE /"), _asked("OPTIONS /"), _asked("GET /", ALLOWED)]
_SECRETS = [
    _asked("GET /"),
    _asked("GET /", _basic("alice:wonder")),
    _asked("GET /", _basic("bob:with=equals and space")),
    _asked("GET /", _basic("alice:wonder", "basic")),
    _asked("GET /", _basic("alice:wonder", "Bearer")),
    _asked("GET /", _basic("alice:wrong")),
    _asked("GET /", _basic("alice:")),
    _asked("GET /", _basic("nobody:wonder")),
    _asked("GET /", _basic("no colon")),
    _asked("GET /", "Authorization: Basic ***"),
    _asked("GET /", "Authorization: Basic"),
    _asked("GET /", "Authorization: "),
    _asked("GET /nothing"),
    _asked("GET /health"),
    _asked("OPTIONS /"),
    _asked("OPTIONS /", ALLOWED, "Access-Control-Request-Method: GET"),
    _asked("GET /admin/loggers/nothing"),
    _asked("GET /connectors/x/tasks"),
    _asked("POST /connectors/x/tasks", body="[]"),
    _asked("POST /connectors/x/tasks/", body="[]"),
    _asked("POST /connectors/x%2Fy/tasks", body="[]"),
    _asked("PUT /connectors/x/fence"),
    _asked("PUT /connectors/x/fence/"),
    _asked("PUT /connectors/x/fence?forward=false"),
    _asked("PUT /connectors/x/pause"),
    _asked("POST /connectors/x/fence"),
    _asked("PUT /connectors//fence"),
]
_ADMIN = [
    *(_asked("GET /", listener=item) for item in ("main", "admin")),
    *(_asked("GET /connectors/x", listener=item) for item in ("main", "admin")),
    *(_asked("GET /admin/loggers/nothing", listener=item) for item in ("main", "admin")),
    *(_asked("PUT /admin/loggers/nothing", body="{}", listener=item) for item in ("main", "admin")),
    *(_asked("GET /nothing", listener=item) for item in ("main", "admin")),
    *(_asked("GET /health", listener=item) for item in ("main", "admin")),
    _asked("GET /admin/loggers/nothing", ALLOWED, listener="admin"),
    _asked("OPTIONS /admin/loggers", ALLOWED, "Access-Control-Request-Method: GET", listener="admin"),
]
_NONE = [_asked("GET /admin/loggers"), _asked("GET /admin/loggers/nothing"), _asked("GET /")]

SECTIONS: dict[str, tuple[dict[str, str], list[Step]]] = {
    "origins": (
        {
            "access.control.allow.origin": "http://one.example,https://*.two.example",
            "access.control.allow.methods": "GET,PUT",
            "response.http.headers.config": 'add Cache-Control: no-cache, "set X-Two: a, b", setDate Expires: 0',
        },
        [*_CROSS, *_HEADERS],
    ),
    "any origin": ({"access.control.allow.origin": "*"}, _CROSS),
    "closed": (
        {
            "rest.extension.classes": EXTENSION,
            "access.control.allow.origin": "http://one.example",
            "response.http.headers.config": "set X-Frame-Options: DENY",
        },
        [*_SECRETS, *_HEADERS],
    ),
    "admin": (
        {
            "admin.listeners": "http://{admin}",
            "rest.extension.classes": EXTENSION,
            "access.control.allow.origin": "http://one.example",
            "response.http.headers.config": "set X-Frame-Options: DENY",
        },
        _ADMIN,
    ),
    "no admin": ({"admin.listeners": ""}, _NONE),
}
