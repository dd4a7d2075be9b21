"""The ASGI application: routes, and the layers around them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from tenor import __version__
from tenor.errors import WorkerError
from tenor.serving.batches import Batcher, BatchLimits, Overloaded
from tenor.serving.limits import AsgiApp, BodyLimits, LimitBodies, Message, Receive, Scope, Send
from tenor.serving.metrics import CountRequests, ServiceMetrics
from tenor.serving.page.assemble import page_with_policy
from tenor.serving.process.remote import Contribution
from tenor.serving.reload import AnyModel, CurrentModel, watch
from tenor.serving.replies import BadRequest, error_body, refuse, to_json
from tenor.serving.schemas import (
    ErrorAnswer,
    ModelAnswer,
    PredictAnswer,
    PredictBody,
    StatusAnswer,
    body_model,
    check_body,
)
from tenor.serving.settings import ServeSettings
from tenor.serving.token import RequireToken

log = logging.getLogger("tenor.serving")
EXPLAIN_SECONDS = 3.0  # how long an explanation may take, also for those that wait
_EXPLAIN_BATCH = 1  # predictions wait for no more than one explanation
BUSY = "the service is busy; try again in 1 s"
REFUSAL_SECONDS = 0.02  # a refusal waits, so that clients that try again at once do not keep the model from its work
_SECONDS_TO_END = 1.0  # seconds for the model to end, when nobody waits for its answer any more
_JSON = "application/json"
_SAFE_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


class Scored(NamedTuple):
    """The probabilities of one text, and the model that gave them."""

    chances: list[float]
    labels: tuple[str, ...]
    version: str
    threshold: float


class Service:
    """The state of a service: its model, its queues and whether it is stopping."""

    def __init__(self, current: CurrentModel, settings: ServeSettings) -> None:
        self.current, self.settings = current, settings
        self.is_ready, self.is_closing = True, False
        self.num_given_up = 0  # requests that were not done when the time to stop was over
        limits = BatchLimits(
            settings.batch_size, settings.batch_wait_ms / 1e3, settings.max_wait_ms / 1e3, settings.queue_size
        )
        self.metrics = ServiceMetrics(lambda: self.scores.num_waiting)
        self.scores: Batcher[Scored] = Batcher(self._score, limits, on_batch=self.metrics.on_batch)
        slow = BatchLimits(_EXPLAIN_BATCH, 0.0, EXPLAIN_SECONDS, settings.queue_size)
        self.explanations: Batcher[list[Contribution]] = Batcher(self._explain, slow)
        self.metrics.on_model(current.model.version)
        self.metrics.ready.set(1)

    def stop_being_ready(self) -> None:
        """From now on /readyz answers 503, so that no new clients are sent here."""
        self.is_ready = False
        self.metrics.ready.set(0)

    async def predict(self, body: PredictBody) -> dict[str, Any]:
        """Answer one request.

        Raises:
            BadRequest: 503 if too much work waits, or the answer takes too long.
        """
        texts = body.as_list()
        try:
            async with asyncio.timeout(self.settings.request_seconds):
                scores = await self.scores.compute(texts)
                explained = await self.explanations.compute(texts) if body.explain else None
        except Overloaded:
            await asyncio.sleep(REFUSAL_SECONDS)
            raise BadRequest(503, BUSY, {"retry-after": "1"}) from None
        except WorkerError:
            raise BadRequest(503, "the model is being started again; try again in 5 s", {"retry-after": "5"}) from None
        except TimeoutError:
            late = f"no answer within {self.settings.request_seconds:g} s; send fewer texts, or try again later"
            raise BadRequest(503, late, {"retry-after": "1"}) from None
        found = [_prediction(score, body.probabilities) for score in scores]
        for prediction, pieces in zip(found, explained or (), strict=False):
            prediction["explanation"] = [
                {"start": start, "end": end, "text": text, "contribution": value} for start, end, text, value in pieces
            ]
        return {"predictions": found, "model": scores[-1].version}

    def _score(self, texts: list[str]) -> list[Scored]:
        def score(model: AnyModel) -> list[Scored]:
            return [Scored(row, model.labels, model.version, model.threshold) for row in model.predict_proba(texts)]

        return self.current.use(score)

    def _explain(self, texts: list[str]) -> list[list[Contribution]]:
        return self.current.use(lambda model: model.explain(texts))

    async def close(self) -> None:
        """Compute no more. The model goes first, because a batch that never ends would keep its thread."""
        await asyncio.get_running_loop().run_in_executor(None, self.current.model.close, _SECONDS_TO_END)
        await self.scores.close()
        await self.explanations.close()


def _prediction(score: Scored, with_all: bool) -> dict[str, Any]:
    if len(score.chances) == 2:
        best = int(score.chances[1] > score.threshold)
    else:
        best = max(range(len(score.chances)), key=score.chances.__getitem__)
    found: dict[str, Any] = {"label": score.labels[best], "probability": min(1.0, score.chances[best])}
    if with_all:
        found["probabilities"] = dict(zip(score.labels, score.chances, strict=True))
    return found


def build_app(service: Service, token: str | None) -> AsgiApp:
    """The whole application: routes inside, then the limits of bodies, the token, and the counting of requests."""
    settings = service.settings
    api = FastAPI(
        title="Tenor",
        version=__version__,
        summary="Sentiment of reviews",
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
        lifespan=_lifespan(service),
    )
    _add_routes(api, service)
    _add_errors(api)
    paths = frozenset(api.openapi()["paths"]) | {"/"}
    limited = LimitBodies(api, BodyLimits(settings.max_body_kb * 1024, settings.request_seconds))
    guarded = RequireToken(_RefuseWhenBusy(limited, service), token)
    return _WithHeaders(CountRequests(guarded, service.metrics, paths), service)


def _lifespan(service: Service) -> Callable[[FastAPI], contextlib.AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def run(api: FastAPI) -> AsyncIterator[None]:
        service.scores.start()
        service.explanations.start()
        seconds = service.settings.reload_seconds
        watcher = asyncio.create_task(watch(service.current, seconds, service.metrics))
        try:
            yield
        finally:
            watcher.cancel()
            await asyncio.wait([watcher])
            await service.close()

    return run


class _PlainRoute(APIRoute):
    """A route whose function gets the request as it is; FastAPI describes it.

    FastAPI's own way (parameters, dependencies, validation of answers) takes about a quarter of the service's time per
    request, and the functions use none of it.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.methods and scope["method"] in self.methods:
            response = await self.endpoint(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await super().handle(scope, receive, send)  # 405


def _add_routes(api: FastAPI, service: Service) -> None:
    api.router.route_class = _PlainRoute
    model = body_model(service.settings)
    page, policy = page_with_policy()
    schema = {"required": True, "content": {_JSON: {"schema": model.model_json_schema()}}}

    @api.post(
        "/predict",
        summary="Predict the sentiment of one or many texts",
        response_model=PredictAnswer,
        responses=_errors(400, 401, 408, 413, 415, 422, 503),
        openapi_extra={"requestBody": schema},
    )
    async def predict(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON:
            raise BadRequest(415, f"Content-Type must be {_JSON}; send the texts as JSON")
        body = check_body(model, await request.body(), service.settings)
        return Response(to_json(await service.predict(body)), media_type=_JSON)

    @api.get("/model", summary="The model in use", response_model=ModelAnswer, responses=_errors(401))
    async def about(request: Request) -> Response:
        current, settings = service.current, service.settings
        limits = {
            name: asdict(settings)[name] for name in ("max_texts", "max_explained", "max_text_length", "max_body_kb")
        }
        facts = {"labels": current.model.labels, "model": current.model.version, **current.facts, "limits": limits}
        return Response(to_json(facts), media_type=_JSON)

    @api.get("/healthz", summary="Whether the service runs", response_model=StatusAnswer)
    async def healthz(request: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type=_JSON)

    @api.get(
        "/readyz",
        summary="Whether the service takes requests",
        response_model=StatusAnswer,
        responses={
            503: {"model": StatusAnswer, "description": "The service is stopping, or its model is being started again."}
        },
    )
    async def readyz(request: Request) -> Response:
        if service.is_ready and service.current.model.is_alive:
            return Response(b'{"status":"ready"}', media_type=_JSON)
        return Response(b'{"status":"not ready"}', 503, {"retry-after": "1"}, media_type=_JSON)

    @api.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, **_errors(401)},
    )
    async def metrics(request: Request) -> Response:
        return Response(service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @api.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return Response(page, media_type="text/html; charset=utf-8", headers={"content-security-policy": policy})


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorAnswer, "description": _WHY[status]} for status in statuses}


_WHY = {
    400: "The body is damaged.",
    401: "The token is missing or wrong.",
    408: "The body arrived too slowly.",
    413: "The body is too large.",
    415: "The body is not JSON, or compressed in an unknown way.",
    422: "The body does not have the right form.",
    503: "The service is busy; the header Retry-After says when to try again.",
}


def _add_errors(api: FastAPI) -> None:
    """Give every error the same form."""

    @api.exception_handler(BadRequest)
    async def bad(request: Request, error: BadRequest) -> Response:
        return Response(error_body(error.message), error.status, error.headers, media_type=_JSON)

    @api.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        return Response(error_body(f"{error.detail}; see /openapi.json"), error.status_code, headers, media_type=_JSON)

    @api.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> Response:
        return Response(error_body("the request has a wrong form; see /openapi.json"), 422, media_type=_JSON)

    @api.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return Response(error_body("the service failed; its log has the reason"), 500, media_type=_JSON)


class _RefuseWhenBusy:
    """Refuses predictions before anything else is done for them, because refusals must cost little to be of use."""

    def __init__(self, app: AsgiApp, service: Service) -> None:
        self.app, self._service = app, service
        body = error_body(BUSY)
        headers = {"content-type": _JSON, "content-length": str(len(body)), "retry-after": "1"}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._start = {"type": "http.response.start", "status": 503, "headers": raw}
        self._body = {"type": "http.response.body", "body": body}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/predict" or not self._service.scores.is_full():
            await self.app(scope, receive, send)
            return
        await asyncio.sleep(REFUSAL_SECONDS)
        await send(dict(self._start))  # a copy: layers outside add to it
        await send(self._body)


class _WithHeaders:
    """Adds headers to every answer; while the service is closing, also the one that ends the connection.

    A request that is not done when the time to stop is over is answered with 503.
    """

    def __init__(self, app: AsgiApp, service: Service) -> None:
        self.app, self._service = app, service
        self._headers = [(name.encode(), value.encode()) for name, value in _SAFE_HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def add(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                closing = [(b"connection", b"close")] if self._service.is_closing else []
                message["headers"] = [*message.get("headers", ()), *self._headers, *closing]
            await send(message)

        try:
            await self.app(scope, receive, add)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            self._service.num_given_up += 1
            if not has_begun:
                await refuse(add, BadRequest(503, "the service is stopping; try again in 5 s", {"retry-after": "5"}))
