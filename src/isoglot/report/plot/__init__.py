"""Maps: sentences as points of a plane, coloured by language or label, those of equal meaning joined.

Read in this order: `sentences.py` (which sentences are shown), `layouts.py` (vectors to a plane), `marks.py` (colours
and shapes), `picture.py` (PNG and SVG), `interactive.py` with `map.js` and `map.css` (one HTML file).
"""

from isoglot.report.plot.interactive import document
from isoglot.report.plot.layouts import LAYOUTS, lay_out
from isoglot.report.plot.picture import write_picture
from isoglot.report.plot.sentences import LIMIT, Chosen, Sentence, choose
from isoglot.report.plot.writing import ENDINGS, write_map

__all__ = [
    "ENDINGS",
    "LAYOUTS",
    "LIMIT",
    "Chosen",
    "Sentence",
    "choose",
    "document",
    "lay_out",
    "write_map",
    "write_picture",
]
