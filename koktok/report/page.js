"use strict";
const root = document.documentElement;
function speak(tongue) {
  root.lang = tongue;
  document.title = document.querySelector("h1").innerText;
  for (const button of document.querySelectorAll("#tongues button")) {
    button.setAttribute("aria-pressed", String(button.dataset.tongue === tongue));
  }
}
for (const button of document.querySelectorAll("#tongues button")) {
  button.addEventListener("click", () => speak(button.dataset.tongue));
}
const asked = location.hash.slice(1);
speak(["ko", "en"].includes(asked) ? asked : (navigator.language || "en").startsWith("ko") ? "ko" : "en");

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const upward = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", upward ? "ascending" : "descending");
    const value = (row) => {
      const cell = row.cells[column];
      if (!cell || (head.classList.contains("figure") && cell.dataset.v === undefined)) return null;
      return cell.dataset.v === undefined ? cell.innerText : Number(cell.dataset.v);
    };
    const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
    // What has no figure stays below, whichever way the others are sorted.
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "ko");
      return upward ? order : -order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
