"""The requests and answers of the service, as its OpenAPI description shows them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from tenor.serving.replies import BadRequest
from tenor.serving.settings import ServeSettings


class ExplainedWords(BaseModel):
    """Some words of a text."""

    start: int = Field(description="Where the words begin in the text, in characters (Unicode code points).")
    end: int = Field(description="Where the words end.")
    text: str = Field(description="The words.")
    contribution: float = Field(
        description="How much the words raise (above 0) or lower (below 0) the log-odds of the predicted label."
    )


class LabelledText(BaseModel):
    """The prediction for one text."""

    label: str = Field(description="The most likely class.")
    probability: float = Field(ge=0, le=1, description="The probability of that class.")
    probabilities: dict[str, float] | None = Field(None, description="The probability of each class, if asked for.")
    explanation: list[ExplainedWords] | None = Field(None, description="What each word contributes, if asked for.")


class PredictAnswer(BaseModel):
    """Predictions in the order of the texts."""

    predictions: list[LabelledText]
    model: str = Field(description="Version of the model; it changes when the service loads another model.")


class ErrorAnswer(BaseModel):
    """Why a request was refused."""

    error: str = Field(description="What happened, and what to do.")


class StatusAnswer(BaseModel):
    """Whether the service runs or takes requests."""

    status: str


class ModelAnswer(BaseModel):
    """The model in use."""

    model_config = ConfigDict(protected_namespaces=())

    labels: list[str]
    model: str
    card: str | None = Field(description="The model card in Markdown.")
    metrics: dict[str, Any] | None = Field(description="Metrics of the test or validation split.")
    behaviour: dict[str, Any] | None = Field(description="Passed and total cases of each kind of behaviour test.")
    limits: dict[str, int] = Field(description="Limits of a request.")


class PredictBody(BaseModel):
    """What a request to /predict may contain; `body_model` adds the limits."""

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: Any
    explain: bool = Field(False, description="Whether to say what each word contributes.")
    probabilities: bool = Field(False, description="Whether to give the probability of each class.")

    def as_list(self) -> list[str]:
        return [self.texts] if isinstance(self.texts, str) else self.texts


def body_model(settings: ServeSettings) -> type[PredictBody]:
    """The body of /predict with the limits of a service."""
    text = Annotated[str, Field(max_length=settings.max_text_length)]
    texts = Annotated[
        text | Annotated[list[text], Field(min_length=1, max_length=settings.max_texts)],
        Field(description="One text, or a list of texts."),
    ]
    # A rule between two fields, for readers of the description; `check_body` applies it.
    few: list[Any] = [
        {"properties": {"explain": {"const": False}}},
        {"properties": {"texts": {"maxItems": settings.max_explained}}},
    ]
    config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"anyOf": few})
    base = type("PredictRequest", (PredictBody,), {"model_config": config, "__module__": __name__})
    model: type[PredictBody] = create_model("PredictRequest", __base__=base, texts=(texts, ...))
    return model


def check_body(model: type[PredictBody], raw: bytes, settings: ServeSettings) -> PredictBody:
    """Parse and check the body of /predict.

    Raises:
        BadRequest: With the place and the reason.
    """
    try:
        body = model.model_validate_json(raw)
    except ValidationError as error:
        raise BadRequest(422, _reason(error)) from None
    if body.explain and len(body.as_list()) > settings.max_explained:
        most = settings.max_explained
        raise BadRequest(422, f"texts: explanations are limited to {most} texts per request; send fewer texts")
    return body


def _reason(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)[-1]
    place = ".".join(str(part) for part in found["loc"] if not str(part).startswith(("constrained", "list[")))
    remedy = 'send {"texts": ["…"], "explain": false, "probabilities": false}'
    return f"{place or 'body'}: {found['msg'].removesuffix('.')}; {remedy}"
