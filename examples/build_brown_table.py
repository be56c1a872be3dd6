"""Derives corpora/brown/word-counts.csv from NLTK's Brown corpus.

Run as `python examples/build_brown_table.py [FILE]`; the default is the table of this checkout. NLTK looks
for the corpus where NLTK_DATA points; `python -m nltk.downloader brown` fetches it.
"""

import csv
import hashlib
import io
import sys
from pathlib import Path

from biaskit.common.files import write_atomically
from biaskit.corpora.loaders import english_counts
from biaskit.errors import BiaskitError

TABLE = Path(__file__).resolve().parents[1] / "corpora" / "brown" / "word-counts.csv"


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else TABLE
    try:
        counts = english_counts("nltk")
    except BiaskitError as error:
        sys.exit(str(error))
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("word", "count"))
    writer.writerows(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
    content = table.getvalue().encode("ascii")
    write_atomically(path, content)
    print(f"{path}: {sum(counts.values()):,} tokens, {len(counts):,} types")
    print(f"sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
