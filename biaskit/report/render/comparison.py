"""A comparison as a document: models in rows, both engines in columns, then what differs.

See docs/methods.md#both-engines.
"""

from __future__ import annotations

from collections.abc import Sequence

from biaskit.report.content import Content
from biaskit.report.render.contrasts import contrast_table, relation_table
from biaskit.report.render.document import Document
from biaskit.report.render.side_by_side import (
    change_table,
    instruction_table,
    labour_table,
    overview,
    share_tables,
    srb_table,
)


def comparison_document(content: Content, notes: Sequence[str], signature: str) -> Document:
    """Every table that these runs give; one that nothing was measured for is not there."""
    tests = content.between.get("tests", ())
    made = [
        overview(content.parts),
        *share_tables(content.parts),
        instruction_table(content.parts),
        labour_table(content.parts),
        srb_table(content.parts),
        change_table(content.between.get("srb_change", ())),
        contrast_table(tests),
        relation_table(tests),
    ]
    return Document(tuple(table for table in made if table is not None), tuple(notes), signature)
