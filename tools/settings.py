"""The book's settings, read from _config.yml: above all the one public address everything links to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "chapters" / "src"
LANGUAGES = ("zh", "en")


def load_config(path: Path = ROOT / "_config.yml") -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def pages(toc: Path = ROOT / "_toc.yml") -> list[str]:
    """The names of the book's pages, in the order of the table of contents."""
    contents = yaml.safe_load(toc.read_text(encoding="utf-8"))
    return [contents["root"], *(page["file"] for part in contents["parts"] for page in part["chapters"])]


@dataclass(frozen=True)
class Address:
    """Where the repository lives in public: `repository.url` and `repository.branch` of _config.yml."""

    url: str  # https://github.com/OWNER/NAME
    branch: str

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Address":
        return cls(config["repository"]["url"].rstrip("/"), config["repository"]["branch"])

    @property
    def slug(self) -> str:
        """OWNER/NAME"""
        return "/".join(self.url.split("/")[-2:])

    @property
    def site(self) -> str:
        """The book's address on GitHub Pages, with a slash at the end."""
        owner, name = self.slug.split("/")
        return f"https://{owner.lower()}.github.io/{name}/"

    @property
    def pip(self) -> str:
        """What pip installs the lab from."""
        return f"git+{self.url}@{self.branch}"

    def file(self, path: str) -> str:
        """A file or folder of the repository, to look at ("" is the repository itself)."""
        return f"{self.url}/blob/{self.branch}/{path}" if path else self.url

    def colab(self, path: str) -> str:
        """A notebook of the repository, to open on Colab."""
        return f"https://colab.research.google.com/github/{self.slug}/blob/{self.branch}/{path}"
