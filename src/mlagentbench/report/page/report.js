"use strict";
// Shows one view at a time (all runs together, or a run), sorts and filters the table, unpacks stories, changes the theme. The page's texts are
// escaped where they are made; the only HTML set here is such a story.
(() => {
  const root = document.documentElement;
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const overview = find("#runs");
  const title = document.title;

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

  // Stories
  const unpack = async (article) => {
    const packed = find(`script[data-run="${CSS.escape(article.id)}"]`);
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const html = await new Response(stream).text();
    if (packed.isConnected) article.innerHTML = html;
    packed.remove();
  };
  const dress = (article) => {
    const fold = find(".unfold", article);
    if (!fold || !fold.hidden) return;
    const steps = all(".step > details", article);
    fold.hidden = !steps.length;
    const closed = () => steps.some((step) => !step.open);
    const label = () => { fold.textContent = closed() ? "Open all" : "Close all"; };
    fold.addEventListener("click", () => { const open = closed(); for (const step of steps) step.open = open; label(); });
    for (const step of steps) step.addEventListener("toggle", label);
  };

  // Views
  let shown = null;
  const neighbours = (article) => {
    const place = find(".siblings", article);
    if (!place) return;
    const order = all("#table tbody tr:not([hidden]) td:first-child a").map((link) => link.getAttribute("href").slice(1));
    const at = order.indexOf(article.id);
    const link = (id, kind, text) => {
      const anchor = document.createElement("a");
      anchor.className = kind;
      anchor.href = `#${id}`;
      anchor.textContent = text;
      return anchor;
    };
    place.replaceChildren();
    if (at > 0) place.append(link(order[at - 1], "previous", "previous run"));
    if (at >= 0 && at + 1 < order.length) place.append(link(order[at + 1], "next", "next run"));
  };
  // The part of the address after `#` is a run, or a run, a slash and a step; anybody may have written it.
  const asked = () => {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  };
  const show = async () => {
    const wanted = asked();
    const article = document.getElementById(wanted.split("/")[0]);
    const target = article && article.matches("article") ? article : overview || find("article");
    await unpack(target);
    if (asked() !== wanted) return;
    dress(target);
    neighbours(target);
    for (const other of all("article.open")) other.classList.remove("open");
    target.classList.add("open");
    if (overview) document.title = target === overview ? title : `${target.dataset.title} · ${title}`;
    const part = target === overview && wanted !== overview.id && document.getElementById(wanted);
    const step = wanted.includes("/") && document.getElementById(wanted);
    if (step) {
      step.open = true;
      step.scrollIntoView({ block: "start" });
      find("summary", step).focus({ preventScroll: true });
    } else if (shown && shown !== target && target === overview && part) {
      part.scrollIntoView({ block: "start" });
    } else if (shown && shown !== target) {
      scrollTo(0, target === overview ? tableScroll : 0);
      target.focus({ preventScroll: true });
    }
    shown = target;
  };
  let tableScroll = 0;
  addEventListener("scroll", () => { if (shown === overview) tableScroll = scrollY; }, { passive: true });
  addEventListener("hashchange", show);
  root.classList.add("js");
  show();

  // The table
  if (!overview) return;
  const body = find("#table tbody");
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
    const kind = heads[column].dataset.kind;
    const sign = direction === "ascending" ? 1 : -1;
    const order = compare(kind, column);
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
