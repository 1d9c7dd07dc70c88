"""Case of `linked`: sentences of three languages, each with one of 20 entities, its last word."""

import json

from cases import Case

LANGUAGES, ENTITIES, SENTENCES = ("deu", "eng", "kor"), 20, 200


def data(folder):
    folder = folder / "wikipedia"
    folder.mkdir()
    (folder / "entities.tsv").write_text("".join(f"Q{row}\t20\tname {row}\n" for row in range(ENTITIES)))
    with (folder / "sentences.jsonl").open("w", encoding="utf-8") as file:
        for code in LANGUAGES:
            for number in range(SENTENCES):
                entity = f"Q{number % ENTITIES}"
                line = {"text": f"{code} {number} {entity}", "lang": code, "entity": entity}
                file.write(json.dumps(line) + "\n")


CASES = {
    "linked": Case(
        data, perfect={"accuracy": 1.0}, chance={"accuracy": (0.05, 0.06)}, languages=("deu", "kor"),
        where="language (deu|eng|kor)",
    )
}  # fmt: skip
