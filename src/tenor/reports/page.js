// Adds to each table: sorting by a click on a column's title, and a button that copies the table.
// The page reads well without this script; the content policy of the page allows this script and no other.
(() => {
  "use strict";
  const value = cell => cell === undefined ? "" : cell.dataset.value ?? cell.textContent.trim();
  const kind = text => text === "" || text === "–" ? 2 : Number.isNaN(Number(text)) ? 1 : 0;
  // Numbers by size, then words by alphabet; cells without a value come last, in either direction.
  const compare = (a, b, sign) => kind(a) - kind(b) || sign * (kind(a) === 0 ? a - b : a.localeCompare(b));
  const sort = (table, title) => {
    const column = title.cellIndex;
    const isUp = title.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    title.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(value(a.cells[column]), value(b.cells[column]), isUp ? 1 : -1));
    table.tBodies[0].append(...rows);
  };
  const text = table => [...table.rows]
    .map(row => [...row.cells].map(cell => cell.textContent.trim().replace(/\s+/g, " ")).join("\t")).join("\n");
  const copy = async (table, button) => {
    const content = text(table);
    try {
      await navigator.clipboard.writeText(content);
    } catch {  // an old browser, or a page without permission
      const area = document.createElement("textarea");
      area.value = content;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy table"; }, 1500);
  };
  for (const table of document.querySelectorAll("table")) {
    for (const title of table.tHead?.rows[0].cells ?? []) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...title.childNodes);
      button.addEventListener("click", () => sort(table, title));
      title.append(button);
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy table";
    button.addEventListener("click", () => copy(table, button));
    table.parentElement.after(button);
  }
})();
