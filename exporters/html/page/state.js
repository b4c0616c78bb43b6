"use strict";
/* What was edited, undone and linked. An edit is a path and a value:
   ["s", assumption], ["e", catalog table, entry, field], ["r", row id, input column]. */
const State = (() => {
  const number = (text) => {
    const trimmed = text.trim();
    const plain = /^[-+]?\d{1,3}(,\d{3})+(\.\d*)?$/.test(trimmed) ? trimmed.replaceAll(",", "") : trimmed;
    return plain === "" || !/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? NaN : Number(plain);
  };

  /* What is wrong with a value for an input, or "". */
  function wrong(spec, value) {
    if (value === null) return spec.blank || spec.value === null ? "" : "a value is needed here";
    if (spec.kind === "number") {
      if (typeof value !== "number" || !Number.isFinite(value)) return "a number is needed here";
      if (spec.whole && value !== Math.trunc(value)) return "a whole number is needed here";
      if (spec.above !== undefined && value <= spec.above) return `must be above ${spec.above}`;
      if (spec.low !== undefined && value < spec.low) return `must be at least ${spec.low}`;
      if (spec.high !== undefined && value > spec.high) return `must be at most ${spec.high}`;
      return Math.abs(value) > 1e15 ? "too large" : "";
    }
    if (typeof value !== "string") return "a text is needed here";
    return spec.choices && !spec.choices.includes(value) ? "not one of the choices" : "";
  }

  class Model {
    constructor(data) {
      this.data = data;
      this.book = new Engine.Book(data);
      this.edits = new Map(); // JSON of the path -> value
      this.past = [];
      this.scalars = new Map(data.scalars.map((s) => [s.name, s]));
      this.fields = new Map(data.fields.map((f) => [f.name, f]));
      this.tables = new Map(data.tables.map((t) => [t.name, t]));
      this.ids = data.rows.inputs.id;
      this.place = new Map(this.ids.map((id, i) => [id, i]));
      this.listeners = [];
      this.cells = 0;
      this.took = 0;
    }
    spec([kind, name, , field]) {
      if (kind === "s") return this.scalars.get(name);
      if (kind === "e") return this.tables.get(name)?.fields.find((f) => f.name === field && f.tree === undefined);
      return undefined;
    }
    /* The input that a path means, where it stands, and what it says in the table. */
    target(path) {
      if (!Array.isArray(path)) return null;
      const [kind, name, entry] = path;
      if (kind === "s" && path.length === 2) {
        const spec = this.scalars.get(name);
        return spec && !spec.fixed ? { spec, source: name, first: spec.value, put: (v) => (this.book.scalars.get(name).v = v) } : null;
      }
      if (kind === "e" && path.length === 4) {
        const spec = this.spec(path);
        const at = this.tables.get(name)?.names.indexOf(entry) ?? -1;
        if (!spec || at < 0) return null;
        const column = this.book.tables.get(name).sheet.columns.get(spec.name);
        const first = this.tables.get(name).inputs[spec.name][at];
        return { spec: { ...spec, blank: first === null }, source: `${name}.${spec.name}`, first, put: (v) => (column.values[at] = v) };
      }
      if (kind === "r" && path.length === 3) {
        const [, id, field] = path;
        const spec = this.fields.get(field);
        const at = this.place.get(id);
        if (at === undefined || !spec || spec.input === undefined || field === "id") return null;
        const given = this.data.rows.inputs[field];
        return { spec, source: field, first: given ? given[at] : null, put: (v) => (this.book.rows.columns.get(field).values[at] = v) };
      }
      return null;
    }
    value(path) {
      const key = JSON.stringify(path);
      return this.edits.has(key) ? this.edits.get(key) : (this.target(path)?.first ?? null);
    }
    changed(path) {
      return this.edits.has(JSON.stringify(path));
    }
    /* Make these edits at once; [path, value] each. Gives what is wrong with the first bad one, or "". */
    set(changes, { remember = true, quiet = false } = {}) {
      const found = changes.map(([path, value]) => ({ path, value, target: this.target(path) }));
      for (const { target, value } of found) {
        if (!target) return "there is no such input";
        const fault = wrong(target.spec, value);
        if (fault) return fault;
      }
      const start = performance.now();
      if (remember) this.past.push(found.map(({ path }) => [path, this.value(path)]));
      const sources = new Set();
      for (const { path, value, target } of found) {
        const key = JSON.stringify(path);
        if (value === target.first) this.edits.delete(key);
        else this.edits.set(key, value);
        target.put(value === null ? (target.spec.kind === "number" ? NaN : null) : value);
        sources.add(target.source);
      }
      this.cells = this.book.refresh(sources);
      const refused = this.refused();
      if (refused) {
        for (const { path, target } of found) {
          const before = remember ? this.past.at(-1).find(([p]) => p === path)[1] : target.first;
          const key = JSON.stringify(path);
          if (before === target.first) this.edits.delete(key);
          else this.edits.set(key, before);
          target.put(before === null ? (target.spec.kind === "number" ? NaN : null) : before);
        }
        if (remember) this.past.pop();
        this.book.refresh(sources);
        return refused;
      }
      this.took = performance.now() - start;
      if (!quiet) this.tell();
      return "";
    }
    /* What the engine refuses of a row as a whole: weights stored in under 8 bits are not quantized by a method once more. */
    refused() {
      const [quant, weights] = ["quant_no", "weights"].map((n) => this.book.rows.columns.get(n)?.values);
      const formats = this.tables.get("formats");
      if (!quant || !weights || !formats) return "";
      const bits = new Map(formats.names.map((n, k) => [n, formats.inputs.bits[k]]));
      const at = quant.findIndex((q, i) => q > 1 && (bits.get(weights[i]) < 8 || weights[i] === "published"));
      return at < 0 ? "" : `the weights of ${this.ids[at]} are stored as ${weights[at]} already: its method cannot quantize them again`;
    }
    undo() {
      const last = this.past.pop();
      if (last) this.set(last, { remember: false });
    }
    reset() {
      const back = [...this.edits.keys()].map((key) => JSON.parse(key)).map((path) => [path, this.target(path).first]);
      if (back.length) this.set(back);
    }
    tell() {
      for (const listener of this.listeners) listener();
    }
    /* The edits as text for the address, and back: what does not pass the checks is left out and counted. */
    link() {
      if (!this.edits.size) return "";
      const bytes = new TextEncoder().encode(JSON.stringify([...this.edits].map(([key, value]) => [JSON.parse(key), value])));
      return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    }
    follow(text) {
      let changes;
      try {
        const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
        changes = JSON.parse(new TextDecoder().decode(bytes));
      } catch {
        return -1;
      }
      if (!Array.isArray(changes)) return -1;
      const good = changes.filter((c) => Array.isArray(c) && c.length === 2 && this.target(c[0]) && !wrong(this.target(c[0]).spec, c[1]));
      if (good.length) this.set(good, { quiet: true });
      return changes.length - good.length;
    }
  }
  return { Model, number, wrong };
})();
