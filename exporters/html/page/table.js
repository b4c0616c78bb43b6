"use strict";
/* The table: sorts, filters ("eagle speedup>1"), pins; inputs are typed in place; a result shows where it comes from. */
const Rows = (() => {
  const CHUNK = 100;
  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value === true) node.setAttribute(key, "");
      else if (value !== false && value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children.filter((c) => c !== null && c !== undefined));
    return node;
  };

  /* Numbers as people read them: four digits by magnitude, thousands separated, blank as nothing. */
  function show(value, field, data) {
    if (Engine.isBlank(value)) return "";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value !== "number") return value;
    if (field?.limit && value >= data.unlimited) return "unlimited";
    const size = Math.abs(value);
    if (value === Math.trunc(value) && size < 1e12) return value.toLocaleString("en-US");
    if (size >= 1e12 || size < 1e-4) return value.toExponential(3);
    return size >= 1e4 ? value.toLocaleString("en-US", { maximumFractionDigits: 0 }) : String(+value.toPrecision(4));
  }
  const words = (name) => name.replaceAll("_", " ");

  class View {
    constructor(model, app) {
      this.model = model;
      this.app = app;
      this.host = document.getElementById("table");
      this.sorts = model.data.sort.map(([name, down]) => ({ name, down }));
      this.pins = new Set();
      this.text = "";
      this.most = CHUNK;
      const given = model.data.fields.filter((f) => f.input !== undefined && f.name !== "id");
      const used = given.filter((f) => ["model", "gpu", "method", "batch"].includes(f.input) || (model.data.rows.inputs[f.name] || []).some((v) => v !== null));
      this.inputs = used;
      this.columns = [...used.map((f) => f.name), ...model.data.main.filter((n) => !used.some((f) => f.name === n))];
      this.where = model.book.test(model.data.where);
      document.getElementById("find").addEventListener("input", (event) => {
        this.text = event.target.value;
        this.most = CHUNK;
        this.draw();
      });
      this.chooser();
      this.host.addEventListener("keydown", (event) => this.key(event));
    }
    value(name, i) {
      return this.model.book.rows.columns.get(name).values[i];
    }
    /* Words must stand in some text of the row; name>number compares. */
    matches(i) {
      return this.text.trim().split(/\s+/).every((word) => {
        const test = /^([a-z_0-9]+)(<=|>=|<|>|=)(-?[\d.]+)$/i.exec(word);
        if (test && this.model.book.rows.columns.has(test[1])) {
          const [v, n] = [this.value(test[1], i), Number(test[3])];
          return { "<": v < n, "<=": v <= n, ">": v > n, ">=": v >= n, "=": v === n }[test[2]];
        }
        const low = word.toLowerCase();
        return ["id", "model", "gpu", "method", "status"].some((n) => this.model.book.rows.columns.has(n) && String(this.value(n, i)).toLowerCase().includes(low));
      });
    }
    /* The rows that hold `where` and the filters, in order. */
    visible() {
      const found = [];
      for (let i = 0; i < this.model.ids.length; i++) if (this.where(i) === true && this.app.passes(i) && (!this.text.trim() || this.matches(i))) found.push(i);
      const order = (a, b) => {
        for (const { name, down } of this.sorts) {
          const [x, y] = [this.value(name, a), this.value(name, b)];
          if (Engine.isBlank(x) !== Engine.isBlank(y)) return Engine.isBlank(x) ? 1 : -1;
          if (x !== y && !Engine.isBlank(x)) return (x < y ? -1 : 1) * (down ? -1 : 1);
        }
        return a - b;
      };
      found.sort(order);
      return [...found.filter((i) => this.pins.has(i)), ...found.filter((i) => !this.pins.has(i))];
    }
    chooser() {
      const box = document.getElementById("columns");
      for (const f of this.model.data.public.filter((n) => n !== "id").map((n) => this.model.fields.get(n))) {
        const input = el("input", { type: "checkbox", checked: this.columns.includes(f.name), onchange: () => {
          this.columns = input.checked ? [...this.columns, f.name] : this.columns.filter((n) => n !== f.name);
          this.draw();
        } });
        box.append(el("label", {}, input, ` ${words(f.name)}`));
      }
    }
    head() {
      const cells = ["id", ...this.columns].map((name) => {
        const f = this.model.fields.get(name);
        const now = this.sorts[0]?.name === name ? (this.sorts[0].down ? "descending" : "ascending") : "none";
        const button = el("button", { type: "button", tabindex: "-1", title: f.doc || "", onclick: () => {
          this.sorts = [{ name, down: this.sorts[0]?.name === name && !this.sorts[0].down }];
          this.draw();
        } }, name === "id" ? "scenario" : words(f.input || name), now === "none" ? "" : now === "ascending" ? " ▲" : " ▼");
        return el("th", { scope: "col", "aria-sort": now, tabindex: "-1", class: f.kind === "number" ? "number" : "" }, button, el("small", {}, f.unit || ""));
      });
      return el("thead", {}, el("tr", {}, ...cells));
    }
    cell(name, i) {
      const f = this.model.fields.get(name);
      const id = this.model.ids[i];
      if (name === "id") {
        const pinned = this.pins.has(i);
        const pin = el("button", { type: "button", class: "pin", tabindex: "-1", "aria-pressed": String(pinned), "aria-label": `pin ${id}`, onclick: () => {
          this.pins[pinned ? "delete" : "add"](i);
          this.draw();
        } }, pinned ? "★" : "☆");
        return el("th", { scope: "row", tabindex: "-1", title: id }, pin, el("span", {}, id));
      }
      if (f.input !== undefined) return el("td", { class: `input ${f.kind}`, tabindex: "-1", "data-label": words(f.input) }, this.app.input(["r", id, name], f, `${f.input} of ${id}`, true));
      const open = el("button", { type: "button", class: "cell", tabindex: "-1", onclick: () => this.app.explain(name, i) }, show(this.value(name, i), f, this.model.data) || "–");
      return el("td", { class: f.kind, tabindex: "-1", "data-label": words(name) + (f.unit ? `, ${f.unit}` : "") }, open);
    }
    draw() {
      const rows = this.visible();
      const body = el("tbody", {}, ...rows.slice(0, this.most).map((i) => el("tr", { "data-row": i, class: this.pins.has(i) ? "pinned" : "" }, this.cell("id", i), ...this.columns.map((n) => this.cell(n, i)))));
      this.host.replaceChildren(this.head(), body);
      this.drawn = this.columns.join() + "|" + rows.slice(0, this.most).join();
      const first = this.host.querySelector("tbody td, tbody th");
      if (first) first.tabIndex = 0;
      const more = document.getElementById("more");
      more.hidden = rows.length <= this.most;
      more.textContent = `show ${Math.min(rows.length - this.most, 5 * CHUNK)} more rows`;
      document.getElementById("count").textContent = `${rows.length.toLocaleString("en-US")} of ${this.model.ids.length.toLocaleString("en-US")} rows`;
    }
    /* After an edit: new texts in the cells that stand there, unless other rows stand there now. */
    refresh() {
      const rows = this.visible();
      if (this.drawn !== this.columns.join() + "|" + rows.slice(0, this.most).join()) return this.keepFocus(() => this.draw());
      for (const tr of this.host.tBodies[0].rows) {
        const i = Number(tr.dataset.row);
        this.columns.forEach((name, k) => {
          const button = tr.cells[k + 1].querySelector("button.cell");
          if (button) {
            const text = show(this.value(name, i), this.model.fields.get(name), this.model.data) || "–";
            if (button.textContent !== text) button.textContent = text;
          } else this.app.sync(tr.cells[k + 1].firstChild);
        });
      }
    }
    keepFocus(work) {
      const label = document.activeElement?.getAttribute("aria-label");
      work();
      if (label && this.host) for (const node of this.host.querySelectorAll("input, select")) if (node.getAttribute("aria-label") === label) return node.focus();
    }
    /* One cell of the grid has the focus; arrows move it, Enter goes inside, Escape comes out. */
    key(event) {
      const cell = event.target.closest("td, th");
      if (!cell) return;
      if (event.key === "Escape") return cell.focus();
      if (event.target !== cell) return;
      const inner = cell.querySelector("input, select, button");
      if (event.key === "Enter" && inner) {
        event.preventDefault();
        return inner.matches("button") ? inner.click() : inner.focus();
      }
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = this.host.rows[cell.parentElement.rowIndex + step[0]]?.cells[cell.cellIndex + step[1]];
      if (next) {
        cell.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    }
  }
  return { View, show, words, el, CHUNK };
})();
