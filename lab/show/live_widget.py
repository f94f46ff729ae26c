"""The other end of lab/live/front/live.mjs in a notebook: questions come as messages, the kernel answers them."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import anywidget
from traitlets import Dict, Unicode

from lab.live.registry import answer

FRONT = files("lab.live") / "front"


class LiveFigure(anywidget.AnyWidget):
    """A figure that its reader turns. `settings` are those that differ from its defaults, by knob."""

    _esm = (FRONT / "live.mjs").read_text(encoding="utf-8")
    _css = (FRONT / "live.css").read_text(encoding="utf-8")
    markup = Unicode().tag(sync=True)
    settings = Dict().tag(sync=True)

    def __init__(self, recorded: Mapping[str, str]) -> None:
        """`recorded`, by MIME type, is what viewers without widgets show: text/html, the figure's markup, and text."""
        super().__init__(markup=recorded["text/html"])
        self.recorded = recorded
        self.on_msg(self._reply)

    def _reply(self, widget: "LiveFigure", message: Mapping[str, Any], buffers: object) -> None:
        asked = message["question"]
        reply = answer(asked["figure"], asked["settings"], asked["lang"], asked["width"])
        self.send({"id": message["id"], "answer": reply})

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle: Any = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle
        return {**data, **self.recorded}, metadata
