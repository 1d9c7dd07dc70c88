"""Makes a clustering set like MewsC-16 from dumps of Wikinews (EASE, appendix E and table 13).

    python scripts/mewsc.py DUMP... --categories TABLE --output FOLDER [--least 10]

TABLE has lines of language, tab, title of a topic category; the folder of the published set does too (its labels are
such titles). FOLDER can be evaluated: isoglot evaluate MODEL --tasks mewsc-16 --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from isoglot.errors import IsoglotError
from isoglot.wikipedia.news import build_news, read_categories


def main() -> None:
    """Write the set and print the table of texts and topics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="+", help="MediaWiki XML dump of a Wikinews, FILE or CODE=FILE")
    parser.add_argument("--categories", type=Path, required=True, help="table of topic categories, or a published set")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--least", type=int, default=10, help="pages that a topic must have")
    words = parser.parse_args()
    try:
        made = build_news(
            words.dumps, read_categories(words.categories), words.output, least=words.least,
            report=lambda message: print(message, file=sys.stderr),
        )  # fmt: skip
    except IsoglotError as error:
        sys.exit(f"error: {error}")
    for language, topics in made.items():
        print(f"{language}: {topics.total():,} texts, {len(topics)} topics")


if __name__ == "__main__":
    main()
