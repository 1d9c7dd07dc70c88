"""Cases of `retrieval/questions`: a relevant paragraph for each question, in the set's layout and in that of MTEB."""

import json

from cases import Case
from folders import write

COUNT = 400


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


def own_layout(codes):
    def data(folder):
        for code in codes:
            questions = [{"id": f"q{i}", "text": f"{code} question {i}", "gold": [f"p{i}"]} for i in range(COUNT)]
            paragraphs = [{"id": f"p{i}", "text": f"{code} paragraph {i}"} for i in reversed(range(COUNT))]
            write(folder / "qa-retrieval" / f"{code}.questions.jsonl.xz", lines(*questions))
            write(folder / "qa-retrieval" / f"{code}.paragraphs.jsonl", lines(*paragraphs))

    return data


def mteb_layout(folder):
    for code in ("deu", "swh-eng"):
        place = folder / "questions" / code
        write(place / "queries.jsonl", lines(*({"_id": i, "text": f"{code} question {i}"} for i in range(COUNT))))
        corpus = ({"_id": f"d{i}", "title": "paragraph", "text": f"{code} {i}"} for i in range(COUNT))
        write(place / "corpus.jsonl.gz", lines(*corpus))
        rows = "".join(f"{i}\td{i}\t1\n" for i in range(COUNT))
        write(place / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{rows}")


def case(data, codes, where):
    chance = {"ndcg@10": 4.5436, "recall@1": 1.0, "recall@10": 10.0, "mrr@10": 2.9290}
    return Case(
        data,
        perfect=dict.fromkeys(chance, 1.0),
        chance={metric: (value / COUNT, 4 * value / COUNT) for metric, value in chance.items()},
        languages=codes,
        where=where,
    )


CASES = {
    "retrieval/questions": case(own_layout(("deu", "swh-eng")), ("deu", "swh"), "deu, query"),
    "retrieval/questions-dev": case(own_layout(("fra", "ind")), ("fra", "ind"), "fra, query"),
    "retrieval/questions-own": case(mteb_layout, ("deu", "swh"), "deu, query"),
}
