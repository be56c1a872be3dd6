"use strict";
// Builds what the page's data hold. Whatever is foreign becomes text nodes; nothing here parses HTML.
(() => {
  const PAGE_ROWS = 50;
  const MORE_ROWS = 500;
  const MOST_CHOICES = 120;
  const CARDS = 8;
  const OPEN_CHOICES = 3; // filters in the open; the others are one click away
  const FIRST_CHOICES = ["model", "model_a", "bias_type", "gender", "occupation", "job", "quantity", "kind"];
  const UNDEFINED = "–";
  const collator = new Intl.Collator("en", { numeric: true });
  const data = {};
  const builders = new Map(); // mount → what fills it

  // --- elements ---------------------------------------------------------------------------------

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const count = (n) => n.toLocaleString("en");
  const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
  const distinct = (values) => [...new Set(values.filter((v) => v !== null && v !== ""))].sort(collator.compare);
  const options = (values) => values.map((value) => element("option", { value }, value));

  function on(made, event, then) {
    made.addEventListener(event, then);
    return made;
  }

  const button = (text, then, ...more) => on(element("button", { type: "button" }, text, ...more), "click", then);

  // --- what is searched and chosen from -----------------------------------------------------------

  // Entries of a kind: those that fit are drawn, some at first and more when asked. A field is a label, its
  // levels and the level of an entry; `holds` is what is searched in, `order` sorts what fits.
  function chooser(mount, { entries, what, hint, fields, holds, order, draw, some, step }) {
    const chosen = new Map();
    let words = "";
    let limit = some;
    const status = element("p", { class: "count", role: "status" });
    const more = element("p", { class: "more" });
    const fits = (one) => [...chosen].every(([levelOf, level]) => levelOf(one) === level) &&
      (!words || holds(one).includes(words));
    const found = () => (order ? order(entries.filter(fits)) : entries.filter(fits));
    const update = () => {
      const all = found();
      draw(all.slice(0, limit));
      status.textContent = `${count(all.length)} of ${plural(entries.length, what)}`;
      more.replaceChildren();
      const rest = Math.min(step, all.length - limit);
      if (rest <= 0) return;
      more.append(button(`Show ${count(rest)} more`, () => { limit += rest; update(); }),
        element("span", { class: "count" }, `1 to ${count(limit)} of ${count(all.length)}`));
    };
    const again = () => { limit = some; update(); };
    const input = element("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    let waiting = 0;
    on(input, "input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { words = input.value.trim().toLowerCase(); again(); }, 120);
    });
    const choices = fields.filter(([, levels]) => levels.length > 1).map(([label, levels, levelOf]) => {
      const select = element("select", {}, element("option", { value: "" }, "all"), ...options(levels));
      on(select, "change", () => {
        if (select.selectedIndex) chosen.set(levelOf, select.value); else chosen.delete(levelOf);
        again();
      });
      return element("label", {}, label, select);
    });
    if (entries.length > 1) {
      const tools = element("div", { class: "tools" }, element("label", {}, hint, input),
        ...choices.slice(0, OPEN_CHOICES), status);
      if (choices.length > OPEN_CHOICES) {
        tools.append(element("details", { class: "filters" }, element("summary", {}, "More filters"),
          element("div", {}, ...choices.slice(OPEN_CHOICES))));
      }
      mount.append(tools);
    }
    return { update, found, more };
  }

  // --- tables -----------------------------------------------------------------------------------

  function numberText(value, whole) {
    if (value === 0) return "0";
    return (whole ? String(value) : value.toPrecision(4).replace("e+", "e")).replaceAll("-", "−");
  }

  function readable(column) {
    const text = column.kind === "text";
    const value = text ? (i) => column.levels[column.codes[i]] ?? null : (i) => column.values[i];
    const said = (found) => (text ? found : numberText(found, column.kind === "integer"));
    return { ...column, text, value, shown: (i) => (value(i) === null ? UNDEFINED : said(value(i))) };
  }

  function table(mount, about) {
    const columns = about.columns.map(readable);
    const texts = columns.filter(({ text }) => text);
    let sorted = null; // {column, direction}
    const order = (rows) => {
      if (!sorted) return rows;
      const { column, direction } = sorted;
      const compare = column.text ? collator.compare : (a, b) => a - b;
      return rows.sort((a, b) => {
        const [x, y] = [column.value(a), column.value(b)];
        if (x === null || y === null) return (x === null) - (y === null) || a - b; // undefined: always last
        return direction * compare(x, y) || a - b;
      });
    };
    const body = element("tbody");
    const draw = (rows) => {
      const none = element("tr", {}, element("td", { colspan: columns.length || 1 }, "No row fits."));
      body.replaceChildren(...(rows.length ? rows.map((i) => row(columns, i)) : [none]));
    };
    const worth = ({ name, levels }) => name !== "reason" && levels.length <= MOST_CHOICES && 2 * levels.length <= about.n;
    const rank = ({ name }) => (FIRST_CHOICES.indexOf(name) + 99) % 99;
    const fields = texts.filter(worth).sort((a, b) => rank(a) - rank(b))
      .map(({ label, levels, value }) => [label, distinct(levels), value]);
    const list = chooser(mount, {
      entries: [...Array(about.n).keys()], what: "row", hint: "Search in this table", fields, order, draw,
      holds: (i) => texts.map(({ value }) => value(i) ?? "").join("\n").toLowerCase(),
      some: PAGE_ROWS, step: MORE_ROWS,
    });
    const heads = columns.map((column) => heading(column, () => {
      const first = column.text ? 1 : -1; // large numbers first
      const now = sorted?.column === column ? sorted.direction : 0;
      sorted = now === -first ? null : { column, direction: now === first ? -first : first };
      heads.forEach((head, j) => {
        const way = sorted?.column === columns[j] ? sorted.direction : 0;
        head.toggleAttribute("aria-sort", way);
        if (way) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
        head.querySelector("i").textContent = "↓↕↑"[way + 1];
      });
      list.update();
    }));
    for (const [what, said] of [
      ["The same in every row", about.same.map(([label, value]) => `${label}: ${value}`).join(" · ")],
      ["Empty in every row", about.empty.join(", ")],
    ]) {
      if (said) mount.append(element("p", { class: "measured same" }, element("span", {}, what), " ", element("bdi", {}, said)));
    }
    const rows = about.n < about.stored ? `${count(about.n)} of ${count(about.stored)} rows` : plural(about.n, "row");
    const caption = `${about.title}: ${rows}${about.file ? ` of ${about.file}` : ""}`;
    const whole = element("table", {}, element("caption", {}, element("span", {}, caption)),
      element("thead", {}, element("tr", {}, ...heads)), body);
    const label = `${about.title}, table that scrolls`;
    mount.append(element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, whole), list.more,
      element("p", { class: "save" }, button("Download as CSV", () => download(about, columns, list.found()))),
      glossary(columns));
    list.update();
  }

  const heading = ({ label, text, name }, sort) => element("th",
    { scope: "col", class: text ? null : "number", title: name }, button(label, sort, element("i", { "aria-hidden": "true" }, "↕")));

  function row(columns, i) {
    return element("tr", {}, ...columns.map((column, j) => {
      const text = column.shown(i);
      const length = text.length > 60 ? "long" : text.length < 24 ? "short" : null;
      const kind = column.text ? (column.name === "reason" ? "reason" : length) : "number";
      const attributes = { class: kind, dir: column.text ? "auto" : null };
      return element(j ? "td" : "th", j ? attributes : { ...attributes, scope: "row" }, text);
    }));
  }

  function glossary(columns) {
    const list = columns.flatMap(({ label, name, explained }) => [element("dt", {}, label),
      element("dd", {}, element("code", {}, name), explained ? ` ${explained}` : "")]);
    return element("details", { class: "glossary" }, element("summary", {}, "What the columns are"), element("dl", {}, ...list));
  }

  // The rows that are chosen, in their order, with every digit that the page holds.
  function download({ same, id }, columns, rows) {
    // A spreadsheet would run a text that begins like a formula.
    const text = (value) => (/^[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) ? `'${value}` : value);
    const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const said = (column, i) => (column.text ? text(column.value(i) ?? "") : String(column.value(i) ?? ""));
    const fixed = same.map(([, value]) => text(value));
    const lines = [[...columns.map(({ name }) => name), ...same.map(([label]) => label)],
      ...rows.map((i) => [...columns.map((column) => said(column, i)), ...fixed])];
    const csv = lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
    const address = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    element("a", { href: address, download: `${id}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  }

  // --- prompts and texts -----------------------------------------------------------------------------

  // A list that is chosen from by some of its fields; `card` makes one entry, `said` is what is searched in.
  function cards(mount, entries, fields, what, said, card) {
    const list = element("div");
    const chosen = fields.map(([label, of]) => [label, distinct(entries.map(of)), of]);
    const { update, more } = chooser(mount, {
      entries, what, hint: `Search in these ${what}s`, fields: chosen, holds: (one) => said(one).toLowerCase(),
      draw: (some) => list.replaceChildren(...some.map(card)), some: CARDS, step: 4 * CARDS,
    });
    mount.append(list, more);
    update();
  }

  function prompts(mount) {
    const { engine } = mount.dataset;
    const entries = data.prompts.filter((one) => !engine || one.engine === engine);
    const fields = [["model", (one) => one.model], ["asked", (one) => one.kind], ["study", (one) => one.study],
      ["prompt form", (one) => one.form]];
    const said = (one) => `${one.what} ${one.model} ${one.prompt} ${one.system ?? ""}`;
    cards(mount, entries, fields, "prompt", said, (one) => {
      const parts = [["System", one.system], [one.form ? `Prompt, form ${one.form}` : "Prompt", one.prompt]];
      const body = parts.filter(([, text]) => text !== null).flatMap(([who, text]) =>
        [element("p", { class: "who" }, who), element("pre", { class: "code", dir: "auto" }, text)]);
      const summary = element("summary", {}, element("bdi", {}, one.what), " ",
        element("span", { class: "meta" }, "· ", element("bdi", {}, one.model)));
      return element("details", { class: "prompt" }, summary, element("div", { class: "body" }, ...body));
    });
  }

  const CLASSES = { female: "W", male: "M", neutral: "T", nonbinary: "NB" };
  const COUNTED = { female: "women's", male: "men's", neutral: "neutral", nonbinary: "non-binary" };

  function marked(text, kind) {
    const label = element("span", { class: "hidden" }, ` (${COUNTED[kind]} word)`);
    return element("mark", { class: kind }, text, element("sup", { "aria-hidden": "true" }, CLASSES[kind]), label);
  }

  function textCard(one) {
    const instruction = one.instruction ? `, instruction ${one.instruction}` : "";
    const rule = one.rule ? `rule “${one.rule}”${one.why ? ": " + one.why : ""}` : "no rule fits";
    const counts = one.counts.map(([kind, n]) => `${n} ${COUNTED[kind]}`).join(", ") || "none";
    const read = [(one.asked ? `asked for ${one.asked}` : "gender not in the prompt") + instruction, one.outcome,
      one.gender ? `counted as a text about ${one.gender}` : "counted as no gender's", rule, `words counted: ${counts}`];
    const pieces = one.pieces.map(([piece, kind]) => (kind ? marked(piece, kind) : piece));
    const label = `Text: ${one.occupation}, ${one.model}`;
    return element("article", { class: "card" },
      element("h3", {}, element("bdi", {}, one.occupation), ", ", element("bdi", {}, one.model)),
      element("p", { class: "meta" }, read.filter(Boolean).join(" · ")),
      element("p", { class: "foreign", dir: "auto", tabindex: "0", role: "region", "aria-label": label },
        ...(pieces.length ? pieces : ["(an empty text)"]), one.cut ? " … (cut here)" : ""));
  }

  function texts(mount) {
    const fields = [["model", (one) => one.model], ["occupation", (one) => one.occupation],
      ["counted as", (one) => one.gender ?? "no gender"], ["comes to", (one) => one.outcome],
      ["gender in the prompt?", (one) => one.origin], ["asked for", (one) => one.asked], ["rule", (one) => one.rule],
      ["instruction", (one) => (one.instruction === null ? null : String(one.instruction))]];
    cards(mount, data.texts, fields, "text", (one) => one.pieces.map(([piece]) => piece).join(""), textCard);
  }

  // --- marked words ----------------------------------------------------------------------------------

  const lettersOf = (token) => token.toLowerCase().replace(/\\u[0-9a-f]{4}|\\x[0-9a-f]{2}/g, "").replace(/[^a-z]/g, "");

  const highlighted = (sentence, word) => element("li", { dir: "auto" }, ...sentence.split(/(\s+)/)
    .map((token) => (lettersOf(token) === word ? element("mark", {}, token) : token)));

  function words(mount) {
    const { lists, sentences } = data.words;
    const title = element("p", { class: "count", role: "status" });
    const buttons = element("ul", { class: "words" });
    const opened = element("ul", { class: "sentences", "aria-live": "polite" });
    const selects = [["model", "model"], ["occupation", "occupation"], ["origin", "gender in the prompt?"],
      ["gender", "words of"]].map(([key, label]) => [key, label, on(element("select"), "change", narrow)]);
    const shown = selects.map(([key, label, select]) =>
      element("label", { hidden: distinct(lists.map((list) => list[key])).length < 2 }, label, select));
    mount.append(element("div", { class: "tools" }, ...shown), title, buttons, opened);

    // Every choice leaves only lists that exist: a field offers what goes with the fields before it.
    function narrow() {
      let fitting = lists;
      for (const [key, , select] of selects) {
        const now = select.value || lists[0][key];
        const values = distinct(fitting.map((list) => list[key]));
        select.replaceChildren(...options(values));
        select.value = values.includes(now) ? now : values[0];
        fitting = fitting.filter((list) => list[key] === select.value);
      }
      open(fitting[0]);
    }

    function open(list) {
      opened.replaceChildren();
      title.textContent = `${plural(list.words.length, "word")}; the number is the z score`;
      const made = list.words.map(([word, z, places]) => {
        const one = button(word, () => {
          made.forEach((other) => other.setAttribute("aria-pressed", String(other === one)));
          const found = places.map((place) => highlighted(sentences[place], word));
          opened.replaceChildren(...(found.length ? found : [element("li", {}, `No sentence with “${word}” is stored here.`)]));
        }, element("small", {}, z.toFixed(1).replace("-", "−")));
        one.setAttribute("aria-pressed", "false");
        return one;
      });
      buttons.replaceChildren(...made.map((one) => element("li", {}, one)));
    }
    narrow();
  }

  // --- figures -----------------------------------------------------------------------------------------

  // The Python side checked it already; a page is a file, and files get edited.
  const RUNS = ["script", "foreignObject", "iframe", "a", "animate", "set", "handler"];
  const safe = (svg) => svg.localName === "svg" && [svg, ...svg.querySelectorAll("*")].every((one) =>
    !RUNS.includes(one.localName) && [...one.attributes].every(({ localName, value }) =>
      !localName.toLowerCase().startsWith("on") &&
      (localName !== "href" || /^(#|data:image\/(png|jpeg);base64,)/.test(value))));

  // A drawing for a wide window and, where there is one, another for a phone; the style shows one of them.
  function figure(mount) {
    const source = data.figures[Number(mount.dataset.figure)];
    if (!source) return;
    const parsed = new DOMParser().parseFromString(`<g xmlns="http://www.w3.org/2000/svg">${source}</g>`, "image/svg+xml");
    const drawings = [...parsed.documentElement.children];
    if (parsed.querySelector("parsererror") || !drawings.every(safe)) return;
    mount.replaceChildren(...drawings.map((svg, i) =>
      element("div", { class: i ? "column" : "wide" }, document.importNode(svg, true))));
    explain(mount);
  }

  // A mark says its job, share, interval and n: to the pointer by its title, to a tap and the arrow keys below.
  function explain(drawing) {
    const tip = drawing.parentElement.querySelector(".tip");
    const marks = () => [...drawing.querySelectorAll("title")].map((title) => title.parentNode)
      .filter((one) => one.getClientRects().length);
    let at = -1;
    const say = (one) => {
      drawing.querySelectorAll("[data-now]").forEach((other) => { delete other.dataset.now; });
      if (one) one.dataset.now = "";
      tip.textContent = one ? one.querySelector("title").textContent : "";
    };
    on(drawing, "click", (event) => say(marks().find((one) => one.contains(event.target))));
    on(drawing, "keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const all = step ? marks() : [];
      if (!all.length) return;
      event.preventDefault();
      at = (at + step + all.length) % all.length;
      say(all[at]);
    });
  }

  // --- when things are built ---------------------------------------------------------------------------

  function build(mount) {
    const fill = builders.get(mount);
    builders.delete(mount);
    fill?.(mount);
  }

  const inside = (place) => [...builders.keys()].filter((mount) => place.contains(mount));
  const later = (task) => ("requestIdleCallback" in window ? requestIdleCallback(task) : setTimeout(task, 50));

  function idle() {
    const [next] = builders.keys();
    if (!next) return;
    build(next);
    later(idle);
  }

  function reveal() {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    for (let place = target; place; place = place.parentElement) if (place.localName === "details") place.open = true;
    if (!target) return;
    inside(target).forEach(build);
    target.scrollIntoView();
  }

  function plan() {
    const tables = new Map(data.tables.map((one) => [one.id, one]));
    const lists = { prompts, texts, words };
    document.querySelectorAll(".mount, .drawing[data-figure]").forEach((mount) => {
      const { table: id, list } = mount.dataset;
      builders.set(mount, id ? () => table(mount, tables.get(id)) : lists[list] ?? figure);
    });
    const watcher = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) { watcher.unobserve(target); build(target); }
    }, { rootMargin: "600px" });
    builders.forEach((_, mount) => watcher.observe(mount));
    document.querySelectorAll("details").forEach((one) => {
      on(one, "toggle", () => { if (one.open) inside(one).forEach(build); });
    });
  }

  on(window, "beforeprint", () => document.querySelectorAll(".drawing").forEach(build));
  on(window, "hashchange", reveal);

  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  async function start() {
    document.querySelectorAll(".drawing:not([data-figure])").forEach(explain);
    try {
      await Promise.all([...document.querySelectorAll("script[data-part]")].map(async (packed) => {
        data[packed.dataset.part] = await unpack(packed.textContent);
      }));
    } catch (error) {
      const note = document.getElementById("unpacked");
      note.textContent = "This browser cannot unpack the page's data. The numbers lie in tables/*.csv of the run folders.";
      note.hidden = false;
      document.documentElement.dataset.state = "failed";
      console.warn(error);
      return;
    }
    plan();
    if (location.hash) reveal();
    later(idle);
    document.documentElement.dataset.state = "ready";
  }

  start();
})();
