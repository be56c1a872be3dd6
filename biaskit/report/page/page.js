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
      if (value === null || value === undefined || value === false) continue;
      made.setAttribute(key, value === true ? "" : String(value));
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const count = (n) => n.toLocaleString("en");
  const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

  function field(label, input) {
    return element("label", {}, label, input);
  }

  function choice(label, levels, onChange) {
    const select = element("select", {}, element("option", { value: "" }, "all"));
    levels.forEach((level, i) => select.append(element("option", { value: i }, level)));
    select.addEventListener("change", () => onChange(select.value === "" ? null : Number(select.value)));
    return field(label, select);
  }

  function search(label, onChange) {
    const input = element("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => onChange(input.value.trim().toLowerCase()), 120);
    });
    return field(label, input);
  }

  function arrange(tools, choices, status) {
    tools.append(...choices.slice(0, OPEN_CHOICES), status);
    if (choices.length <= OPEN_CHOICES) return;
    const rest = element("div", {}, ...choices.slice(OPEN_CHOICES));
    tools.append(element("details", { class: "filters" }, element("summary", {}, "More filters"), rest));
  }

  function button(text, onClick) {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", onClick);
    return made;
  }

  const distinct = (values) => [...new Set(values.filter((v) => v !== null && v !== ""))];

  // --- tables -----------------------------------------------------------------------------------

  function numberText(value, whole) {
    if (whole) return String(value).replace("-", "−");
    if (value === 0) return "0";
    return value.toPrecision(4).replace("e+", "e").replaceAll("-", "−");
  }

  class Table {
    constructor(mount, table) {
      this.table = table;
      this.columns = table.columns.map((column) => this.#readable(column));
      this.chosen = new Map();
      this.words = "";
      this.sorted = null; // {column, direction}
      this.limit = PAGE_ROWS;
      this.#build(mount);
      this.update();
    }

    #readable(column) {
      if (column.kind === "text") {
        const value = (i) => (column.codes[i] < 0 ? null : column.levels[column.codes[i]]);
        return { ...column, value, shown: (i) => value(i) ?? UNDEFINED };
      }
      const value = (i) => column.values[i];
      const whole = column.kind === "integer";
      return { ...column, value, shown: (i) => (value(i) === null ? UNDEFINED : numberText(value(i), whole)) };
    }

    #build(mount) {
      const { table } = this;
      this.status = element("p", { class: "count", role: "status" });
      if (table.n > 1) mount.append(this.#tools());
      this.#remarks().forEach((remark) => mount.append(remark));
      this.head = element("tr");
      this.body = element("tbody");
      this.heads = this.columns.map((column, i) => this.#heading(column, i));
      this.head.append(...this.heads);
      const rows = table.n < table.stored
        ? `${count(table.n)} of ${count(table.stored)} rows` : plural(table.n, "row", "rows");
      const from = table.file ? ` of ${table.file}` : "";
      const caption = element("caption", {}, element("span", {}, `${table.title}: ${rows}${from}`));
      const label = `${table.title}, table that scrolls`;
      mount.append(
        element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
          element("table", {}, caption, element("thead", {}, this.head), this.body)),
      );
      this.more = element("p", { class: "more" });
      const save = element("p", { class: "save" }, button("Download as CSV", () => this.#download()));
      mount.append(this.more, save, this.#glossary());
    }

    #tools() {
      const tools = element("div", { class: "tools" });
      const worth = ({ kind, name, levels }) => kind === "text" && name !== "reason" &&
        levels.length > 1 && levels.length <= MOST_CHOICES && 2 * levels.length <= this.table.n;
      const rank = ({ name }) => (FIRST_CHOICES.indexOf(name) + 99) % 99;
      const columns = this.columns.filter(worth).sort((a, b) => rank(a) - rank(b));
      const choices = columns.map((column) => this.#choice(column));
      tools.append(search("Search in this table", (words) => { this.words = words; this.#again(); }));
      arrange(tools, choices, this.status);
      return tools;
    }

    #choice(column) {
      const { levels, label } = column;
      const order = levels.map((_, i) => i).sort((a, b) => collator.compare(levels[a], levels[b]));
      return choice(label, order.map((i) => levels[i]), (i) => {
        if (i === null) this.chosen.delete(column); else this.chosen.set(column, order[i]);
        this.#again();
      });
    }

    #remarks() {
      const { same, empty } = this.table;
      const made = [];
      if (same.length) {
        const said = same.map(([label, value]) => `${label}: ${value}`).join(" · ");
        made.push(element("p", { class: "measured same" }, element("span", {}, "The same in every row"), " ",
          element("bdi", {}, said)));
      }
      if (empty.length) {
        made.push(element("p", { class: "measured same" }, element("span", {}, "Empty in every row"), " ",
          element("bdi", {}, empty.join(", "))));
      }
      return made;
    }

    #heading(column, i) {
      const arrow = element("i", { "aria-hidden": "true" }, "↕");
      const made = button(column.label, () => this.#sort(i));
      made.append(arrow);
      const number = column.kind !== "text";
      return element("th", { scope: "col", class: number ? "number" : null, title: column.name }, made);
    }

    #glossary() {
      const list = element("dl");
      for (const column of this.columns) {
        list.append(
          element("dt", {}, column.label),
          element("dd", {}, element("code", {}, column.name), column.explained ? ` ${column.explained}` : ""),
        );
      }
      return element("details", { class: "glossary" }, element("summary", {}, "What the columns are"), list);
    }

    #sort(i) {
      const column = this.columns[i];
      const first = column.kind === "text" ? 1 : -1; // large numbers first
      const now = this.sorted && this.sorted.column === column ? this.sorted.direction : 0;
      if (now === -first) this.sorted = null;
      else this.sorted = { column, direction: now === first ? -first : first };
      this.heads.forEach((head, j) => {
        const direction = this.sorted && j === i ? this.sorted.direction : 0;
        if (direction) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
        head.querySelector("i").textContent = direction > 0 ? "↑" : direction < 0 ? "↓" : "↕";
      });
      this.update();
    }

    #again() {
      this.limit = PAGE_ROWS;
      this.update();
    }

    #rows() {
      const texts = this.columns.filter((column) => column.kind === "text");
      const found = [];
      for (let i = 0; i < this.table.n; i++) {
        let fits = true;
        for (const [column, code] of this.chosen) fits &&= column.codes[i] === code;
        if (fits && this.words) {
          fits = texts.some((column) => (column.value(i) ?? "").toLowerCase().includes(this.words));
        }
        if (fits) found.push(i);
      }
      if (this.sorted) {
        const { column, direction } = this.sorted;
        const compare = column.kind === "text" ? collator.compare : (a, b) => a - b;
        found.sort((a, b) => {
          const x = column.value(a);
          const y = column.value(b);
          if (x === null || y === null) return (x === null) - (y === null) || a - b; // undefined: always last
          return direction * compare(x, y) || a - b;
        });
      }
      return found;
    }

    update() {
      const rows = this.#rows();
      const end = Math.min(this.limit, rows.length);
      this.body.replaceChildren(...rows.slice(0, end).map((i) => this.#row(i)));
      if (!rows.length) {
        const none = element("td", { colspan: this.columns.length || 1 }, "No row fits.");
        this.body.append(element("tr", {}, none));
      }
      this.status.textContent = `${count(rows.length)} of ${plural(this.table.n, "row", "rows")}`;
      this.more.replaceChildren();
      const rest = rows.length - end;
      if (rest > 0) {
        const some = Math.min(MORE_ROWS, rest);
        const said = element("span", { class: "count" }, `Rows 1 to ${count(end)} of ${count(rows.length)}.`);
        const enlarge = button(some === rest ? `Show the other ${count(rest)}` : `Show ${count(some)} more`, () => {
          this.limit = end + some;
          this.update();
        });
        this.more.append(enlarge, said);
      }
    }

    // The rows that are chosen, in their order, with every digit that the page holds.
    #download() {
      const { same, id } = this.table;
      // A spreadsheet would run a text that begins like a formula.
      const text = (value) => (/^[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) ? `'${value}` : value);
      const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
      const shown = (column, i) => (column.kind === "text" ? text(column.value(i) ?? "") : String(column.value(i) ?? ""));
      const fixed = same.map(([, value]) => text(value));
      const lines = [[...this.columns.map((column) => column.name), ...same.map(([label]) => label)]];
      for (const i of this.#rows()) lines.push([...this.columns.map((column) => shown(column, i)), ...fixed]);
      const csv = lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
      const address = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
      element("a", { href: address, download: `${id}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
    }

    #row(i) {
      const cells = this.columns.map((column, j) => {
        const number = column.kind !== "text";
        const text = column.shown(i);
        const length = text.length > 60 ? "long" : text.length < 24 ? "short" : null;
        const kind = number ? "number" : column.name === "reason" ? "reason" : length;
        const attributes = { class: kind, dir: number ? null : "auto" };
        return j === 0
          ? element("th", { ...attributes, scope: "row" }, text)
          : element("td", attributes, text);
      });
      return element("tr", {}, ...cells);
    }
  }

  // --- lists of cards: prompts and texts -----------------------------------------------------------

  // A list that is chosen from by some of its fields; `card` makes one entry.
  function cards(mount, entries, fields, what, card) {
    const chosen = new Map();
    let words = "";
    let limit = CARDS;
    const list = element("div");
    const more = element("p", { class: "more" });
    const status = element("p", { class: "count", role: "status" });
    const tools = element("div", { class: "tools" });
    const show = () => {
      const found = entries.filter((entry) => {
        for (const [key, value] of chosen) if (entry[key] !== value) return false;
        return !words || entry.haystack.includes(words);
      });
      list.replaceChildren(...found.slice(0, limit).map(card));
      status.textContent = `${count(found.length)} of ${plural(entries.length, what, what + "s")}`;
      more.replaceChildren();
      const rest = found.length - limit;
      if (rest > 0) {
        more.append(button(`Show ${count(Math.min(rest, 4 * CARDS))} more`, () => { limit += 4 * CARDS; show(); }));
      }
    };
    const again = () => { limit = CARDS; show(); };
    const choices = [];
    for (const [key, label] of fields) {
      const levels = distinct(entries.map((entry) => entry[key])).sort(collator.compare);
      if (levels.length < 2) continue;
      choices.push(choice(label, levels, (i) => {
        if (i === null) chosen.delete(key); else chosen.set(key, levels[i]);
        again();
      }));
    }
    tools.append(search(`Search in these ${what}s`, (text) => { words = text; again(); }));
    arrange(tools, choices, status);
    if (entries.length > 1) mount.append(tools);
    mount.append(list, more);
    show();
  }

  function prompts(mount) {
    const { engine } = mount.dataset;
    const entries = data.prompts.filter((one) => !engine || one.engine === engine).map((one) => ({
      ...one,
      haystack: `${one.what} ${one.model} ${one.prompt} ${one.system ?? ""}`.toLowerCase(),
    }));
    const fields = [["model", "model"], ["kind", "asked"], ["study", "study"], ["form", "prompt form"]];
    cards(mount, entries, fields, "prompt", (one) => {
      const body = element("div", { class: "body" });
      if (one.system !== null) {
        body.append(element("p", { class: "who" }, "System"), element("pre", { class: "code", dir: "auto" }, one.system));
      }
      const said = one.form ? `Prompt, form ${one.form}` : "Prompt";
      body.append(element("p", { class: "who" }, said), element("pre", { class: "code", dir: "auto" }, one.prompt));
      const summary = element("summary", {}, element("bdi", {}, one.what), " ",
        element("span", { class: "meta" }, "· ", element("bdi", {}, one.model)));
      return element("details", { class: "prompt" }, summary, body);
    });
  }

  const CLASSES = { female: "W", male: "M", neutral: "T", nonbinary: "NB" };
  const COUNTED = { female: "women's", male: "men's", neutral: "neutral", nonbinary: "non-binary" };

  function marked(text, kind) {
    const label = element("span", { class: "hidden" }, ` (${COUNTED[kind]} word)`);
    return element("mark", { class: kind }, text, element("sup", { "aria-hidden": "true" }, CLASSES[kind]), label);
  }

  function textCard(one) {
    const asked = one.asked ? `asked for ${one.asked}` : "gender not in the prompt";
    const gender = one.gender ? `counted as a text about ${one.gender}` : "counted as no gender's";
    const rule = one.rule ? `rule “${one.rule}”${one.why ? ": " + one.why : ""}` : "no rule fits";
    const counts = one.counts.map(([kind, n]) => `${n} ${COUNTED[kind]}`).join(", ") || "none";
    const label = `Text: ${one.occupation}, ${one.model}`;
    const text = element("p", { class: "foreign", dir: "auto", tabindex: "0", role: "region", "aria-label": label });
    for (const [piece, kind] of one.pieces) text.append(kind ? marked(piece, kind) : piece);
    if (!one.pieces.length) text.append("(an empty text)");
    if (one.cut) text.append(" … (cut here)");
    const instruction = one.instruction ? `, instruction ${one.instruction}` : "";
    return element("article", { class: "card" },
      element("h3", {}, element("bdi", {}, one.occupation), ", ", element("bdi", {}, one.model)),
      element("p", { class: "meta" }, `${asked}${instruction}${one.outcome ? ` · ${one.outcome}` : ""} · ${gender} · ${rule} · words counted: ${counts}`),
      text);
  }

  function texts(mount) {
    const entries = data.texts.map((one) => ({
      ...one,
      about: one.gender ?? "no gender",
      instructed: one.instruction === null ? null : String(one.instruction),
      haystack: one.pieces.map(([piece]) => piece).join("").toLowerCase(),
    }));
    const fields = [["model", "model"], ["occupation", "occupation"], ["about", "counted as"],
      ["outcome", "comes to"], ["origin", "gender in the prompt?"], ["asked", "asked for"],
      ["rule", "rule"], ["instructed", "instruction"]];
    cards(mount, entries, fields, "text", textCard);
  }

  // --- marked words ----------------------------------------------------------------------------------

  const lettersOf = (token) => token.toLowerCase().replace(/\\u[0-9a-f]{4}|\\x[0-9a-f]{2}/g, "").replace(/[^a-z]/g, "");

  function highlighted(sentence, word) {
    const line = element("li", { dir: "auto" });
    for (const token of sentence.split(/(\s+)/)) {
      line.append(lettersOf(token) === word ? element("mark", {}, token) : token);
    }
    return line;
  }

  function words(mount) {
    const { lists, sentences } = data.words;
    const fields = [["model", "model"], ["occupation", "occupation"], ["origin", "gender in the prompt?"], ["gender", "words of"]];
    const now = { ...lists[0] };
    const tools = element("div", { class: "tools" });
    const selects = fields.map(([key, label]) => {
      const select = element("select");
      select.addEventListener("change", () => { now[key] = select.value; narrow(key); });
      tools.append(field(label, select));
      return [key, select];
    });
    const title = element("p", { class: "count", role: "status" });
    const buttons = element("ul", { class: "words" });
    const opened = element("ul", { class: "sentences", "aria-live": "polite" });
    mount.append(tools, title, buttons, opened);

    // Every choice leaves only lists that exist: a field offers what goes with the fields before it.
    function narrow(changed) {
      let fitting = lists;
      let after = changed === null;
      for (const [key, select] of selects) {
        const values = distinct(fitting.map((list) => list[key])).sort(collator.compare);
        if (!values.includes(now[key])) now[key] = values[0];
        select.replaceChildren(...values.map((value) => element("option", { value, selected: value === now[key] }, value)));
        select.value = now[key];
        fitting = fitting.filter((list) => list[key] === now[key]);
        after ||= key === changed;
      }
      open(fitting[0]);
    }

    function open(list) {
      opened.replaceChildren();
      title.textContent = `${plural(list.words.length, "word", "words")}; the number is the z score`;
      const made = list.words.map(([word, z, places]) => {
        const one = button(word, () => {
          made.forEach((other) => other.setAttribute("aria-pressed", String(other === one)));
          const found = places.map((place) => highlighted(sentences[place], word));
          opened.replaceChildren(...(found.length ? found : [element("li", {}, `No sentence with “${word}” is stored here.`)]));
        });
        one.setAttribute("aria-pressed", "false");
        one.append(element("small", {}, z.toFixed(1).replace("-", "−")));
        return one;
      });
      buttons.replaceChildren(...made.map((one) => element("li", {}, one)));
    }
    narrow(null);
  }

  // --- figures -----------------------------------------------------------------------------------------

  // The Python side checked it already; a page is a file, and files get edited.
  function safe(svg) {
    const all = [svg, ...svg.querySelectorAll("*")];
    return all.every((one) =>
      !["script", "foreignObject", "iframe", "a", "animate", "set", "handler"].includes(one.localName) &&
      [...one.attributes].every((attribute) =>
        !attribute.localName.toLowerCase().startsWith("on") &&
        (attribute.localName !== "href" || /^(#|data:image\/(png|jpeg);base64,)/.test(attribute.value))));
  }

  function figure(mount) {
    const source = data.figures[Number(mount.dataset.figure)];
    if (!source) return;
    const parsed = new DOMParser().parseFromString(source, "image/svg+xml");
    const svg = parsed.documentElement;
    if (svg.localName !== "svg" || parsed.querySelector("parsererror") || !safe(svg)) return;
    const alt = mount.querySelector(".alt").textContent;
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", alt);
    mount.replaceChildren(document.importNode(svg, true));
    explain(mount);
  }

  // A mark says its job, share, interval and n: to the pointer by its title, to a tap and the arrow keys below.
  function explain(drawing) {
    const tip = drawing.parentElement.querySelector(".tip");
    const marks = () => [...drawing.querySelectorAll("title")].map((title) => title.parentNode)
      .filter((mark) => mark.getClientRects().length);
    let at = -1;
    const say = (mark) => {
      drawing.querySelectorAll("[data-now]").forEach((one) => { delete one.dataset.now; });
      if (mark) mark.dataset.now = "";
      tip.textContent = mark ? mark.querySelector("title").textContent : "";
    };
    drawing.addEventListener("click", (event) => say(marks().find((mark) => mark.contains(event.target))));
    drawing.addEventListener("keydown", (event) => {
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
    if (!fill) return;
    builders.delete(mount);
    fill(mount);
  }

  const inside = (place) => [...builders.keys()].filter((mount) => place.contains(mount));
  const buildAll = () => [...builders.keys()].forEach(build);

  function idle() {
    const next = builders.keys().next();
    if (next.done) return;
    build(next.value);
    later(idle);
  }
  const later = (task) => ("requestIdleCallback" in window ? requestIdleCallback(task) : setTimeout(task, 50));

  function reveal(hash) {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(hash.slice(1))); } catch { return; }
    if (!target) return;
    for (let place = target; place; place = place.parentElement) if (place.localName === "details") place.open = true;
    inside(target).forEach(build);
    target.scrollIntoView();
  }

  function plan() {
    const tables = new Map(data.tables.map((table) => [table.id, table]));
    const lists = { prompts, texts, words };
    document.querySelectorAll(".mount, .drawing[data-figure]").forEach((mount) => {
      const { table, list } = mount.dataset;
      if (table !== undefined) builders.set(mount, () => new Table(mount, tables.get(table)));
      else if (list !== undefined) builders.set(mount, lists[list]);
      else builders.set(mount, figure);
    });
    const watcher = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) { watcher.unobserve(target); build(target); }
    }, { rootMargin: "600px" });
    builders.forEach((_, mount) => watcher.observe(mount));
    document.querySelectorAll("details").forEach((one) => {
      one.addEventListener("toggle", () => { if (one.open) inside(one).forEach(build); });
    });
  }

  window.addEventListener("beforeprint", () => document.querySelectorAll(".drawing").forEach(build));
  window.addEventListener("hashchange", () => reveal(location.hash));

  // The section that is read now is the last one that begins in the upper quarter of the window.
  function follow() {
    const links = [...document.querySelectorAll("nav a")];
    const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
    let waiting = false;
    const mark = () => {
      waiting = false;
      const line = window.innerHeight / 4;
      const above = sections.filter((section) => section.getBoundingClientRect().top < line);
      const now = sections.indexOf(above.at(-1));
      if (links[now]?.hasAttribute("aria-current")) return;
      links.forEach((link, i) => {
        if (i === now) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
      });
      const strip = document.querySelector("nav ul"); // on a phone it scrolls sideways
      strip.scrollLeft = now < 1 ? 0 : links[now].offsetLeft - 40;
    };
    window.addEventListener("scroll", () => {
      if (!waiting) requestAnimationFrame(mark);
      waiting = true;
    }, { passive: true });
    mark();
  }

  // --- unpacking ---------------------------------------------------------------------------------------

  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  async function start() {
    follow();
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
    if (location.hash) reveal(location.hash);
    later(idle);
    document.documentElement.dataset.state = "ready";
  }

  start();
})();
