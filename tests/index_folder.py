"""An index of a few sentences in many scripts, made by the verb itself, for the tests of `search` and `serve`."""

from command_line import as_function

from isoglot.cli.index import index as index_verb

index = as_function(index_verb)

LINES = {
    "eng": ["The cat sits on the mat.", "A dog runs through the park.", "<script>alert(1)</script> & <b>bold</b>"],
    "deu": ["Die Katze sitzt auf der Matte.", "Ein Hund rennt durch den Park."],
    "ara": ["القطة تجلس على السجادة", "الكلب يركض في الحديقة"],
    "tha": ["แมวนั่งอยู่บนเสื่อ"],
}


def make_index(folder, encoder):
    """`folder`/model and `folder`/index; the index."""
    encoder.save(folder / "model")
    sources = []
    for code, lines in LINES.items():
        (folder / f"{code}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        sources.append(f"{code}={folder / code}.txt")
    index([str(folder / "model"), *sources], folder / "index")
    return folder / "index"
