"use strict";
// Changes the theme, opens steps, sorts and filters the table of runs. It sets no HTML: the page's texts are escaped where they are made.
(() => {
  const root = document.documentElement;
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Theme: the system's until the reader chooses. A page opened from a file may have no storage.
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("mlab-theme");
      localStorage.setItem("mlab-theme", value);
    } catch { /* then the choice lasts as long as the page */ }
    return null;
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = find("#theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; button.title = `Switch to the ${dark() ? "light" : "dark"} theme`; };
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; stored(root.dataset.theme); name(); });
  system.addEventListener("change", name);
  button.hidden = false;
  name();

  // Steps
  const fold = find(".unfold");
  const steps = all(".step > details");
  if (fold && steps.length) {
    const closed = () => steps.some((step) => !step.open);
    const label = () => { fold.textContent = closed() ? "Open all" : "Close all"; };
    fold.hidden = false;
    fold.addEventListener("click", () => { const open = closed(); for (const step of steps) step.open = open; label(); });
    for (const step of steps) step.addEventListener("toggle", label);
    const asked = () => {
      const step = steps.find((each) => `#${each.id}` === location.hash);
      if (!step) return;
      step.open = true;
      step.scrollIntoView({ block: "start" });
      find("summary", step).focus({ preventScroll: true });
    };
    addEventListener("hashchange", asked);
    asked();
  }

  // A folded part opens when a link leads to it, and everything opens for print.
  const unfold = () => { const part = location.hash.length > 1 && document.getElementById(location.hash.slice(1))?.closest("details.part"); if (part) part.open = true; };
  addEventListener("hashchange", unfold);
  unfold();
  addEventListener("beforeprint", () => { for (const part of all("details.part")) part.open = true; });

  // The table of runs
  const body = find("#table tbody");
  if (!body) return;
  const rows = all("tr", body).map((row) => ({
    row,
    text: row.textContent.toLowerCase(),
    keys: all("td", row).map((cell) => cell.dataset.sort),
  }));
  const heads = all("#table th");
  const compare = (kind, column) => (one, other) => {
    const [a, b] = [one.keys[column], other.keys[column]];
    return kind === "number" ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });
  };
  const missing = (entry, column) => entry.keys[column] === "" || entry.keys[column] === "nan";
  const sort = (column, direction) => {
    const sign = direction === "ascending" ? 1 : -1;
    const order = compare(heads[column].dataset.kind, column);
    const known = rows.filter((entry) => !missing(entry, column)).sort((a, b) => sign * order(a, b));
    // What has no value comes last either way.
    body.append(...known.map((entry) => entry.row), ...rows.filter((entry) => missing(entry, column)).map((entry) => entry.row));
    heads.forEach((head, index) => (index === column ? head.setAttribute("aria-sort", direction) : head.removeAttribute("aria-sort")));
  };
  heads.forEach((head, column) => {
    const control = document.createElement("button");
    control.type = "button";
    control.textContent = head.textContent;
    head.replaceChildren(control);
    control.addEventListener("click", () => {
      const first = head.dataset.kind === "number" && column ? "descending" : "ascending";
      const turned = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      sort(column, head.hasAttribute("aria-sort") ? turned : first);
    });
  });
  heads[0].setAttribute("aria-sort", "ascending");

  const form = find(".filters");
  const box = find("#filter");
  const choices = all("select", form);
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { row, text } of rows) {
      const chosen = choices.every((choice) => !choice.value || row.dataset[choice.dataset.column] === choice.value);
      row.hidden = !(chosen && words.every((word) => text.includes(word)));
      count += !row.hidden;
    }
    find("#shown").textContent = count === rows.length ? "" : `${count} of ${rows.length} runs`;
    find(".nothing").hidden = count > 0 || !rows.length;
  };
  form.hidden = rows.length < 2;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  find("#clear").addEventListener("click", () => { form.reset(); filter(); box.focus(); });
  filter();
})();
