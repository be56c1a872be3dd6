"use strict";
// Tables are sorted by a click on a heading; without this script they keep their order.
(() => {
  const names = new Intl.Collator("en", { numeric: true });
  const text = (row, i) => row.cells[i].textContent;
  const number = (row, i) => parseFloat(text(row, i).replace("−", "-"));

  function sort(table, head, i) {
    const down = head.getAttribute("aria-sort") === "ascending";
    const way = down ? -1 : 1;
    const byNumber = head.classList.contains("number");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const gone = (text(a, i) === "–") - (text(b, i) === "–"); // what is not measured stays last
      return gone || way * (byNumber ? number(a, i) - number(b, i) : names.compare(text(a, i), text(b, i)));
    });
    body.append(...rows);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head, i));
      head.append(button);
    });
  }
})();
