"""A plain FastAPI endpoint around the torch model, as FastAPI's documentation shows it: one model call per request."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def main(run: str, port: str) -> None:
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    from tenor.bench.peers.predicting import TorchModel

    model, app = TorchModel(Path(run)), FastAPI()
    model.predict(["good", "bad"])  # nothing is compiled while it is measured

    class Body(BaseModel):
        texts: list[str]

    def predict(body: Body) -> dict[str, Any]:
        return {"predictions": model.predict(body.texts)}

    predict.__annotations__["body"] = Body  # a local class, which its name does not find
    app.post("/predict")(predict)
    app.get("/healthz")(lambda: {"status": "ok"})
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
