"""The other end of lab/live/front/live-widget.mjs in a notebook: questions come as messages, the kernel answers."""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import anywidget
from traitlets import Dict, Unicode

from lab.live.registry import answer


def front(name: str) -> str:
    return (files("lab.live") / "front" / name).read_text(encoding="utf-8")


def widget_script() -> str:
    """The script and those that it imports, as one."""
    parts = (front(f"{name}.mjs") for name in ("live", "live-quiz", "live-widget"))
    return re.sub(r'^import .* from "\./.*\n', "", "".join(parts), flags=re.M)


class LiveFigure(anywidget.AnyWidget):
    """A figure, or a quiz, that its reader turns. `settings` are those that differ from the defaults, by figure."""

    _esm = widget_script()
    _css = front("live.css")
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
