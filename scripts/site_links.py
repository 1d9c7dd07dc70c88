"""A hook of mkdocs: links from a page to files outside docs/ lead to the repository, and must exist.

The repository is `extra.repository` of mkdocs.yml; where it is empty the link becomes its text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def link_to_repository(text: str, page: Path, repository: str) -> str:
    """The Markdown `text` of a page, its links to files outside docs/ replaced.

    Raises FileNotFoundError for a link to a file that does not exist.
    """

    def replace(match: re.Match[str]) -> str:
        target = (page.parent / match["target"]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return match[0]
        if not target.exists():
            raise FileNotFoundError(f"{page}: the link to {match['target']} leads to no file")
        if not repository:
            return match["text"]
        address = f"https://github.com/{repository}/blob/main/{target.relative_to(ROOT).as_posix()}"
        return f"[{match['text']}]({address}{match['anchor'] or ''})"

    return LINK.sub(replace, text)


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """Called by mkdocs for each page."""
    return link_to_repository(markdown, Path(page.file.abs_src_path), config.extra["repository"])
