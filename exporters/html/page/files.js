"use strict";
/* Downloads: the table as YAML (all edits) and CSV (rows), as `scenario run` takes them back; charts as pictures. */
const Files = (() => {
  const scalar = (value) => {
    if (value === null || value === undefined) return "null";
    if (typeof value === "boolean") return String(value);
    if (typeof value === "number") {
      const text = String(value);
      return text.includes("e") && !text.includes(".") ? text.replace("e", ".0e") : text;
    }
    return JSON.stringify(value);
  };
  const simple = (value) => value === null || typeof value !== "object";
  const flow = (value) => {
    if (simple(value)) return scalar(value);
    if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
    return `{${Object.entries(value).map(([k, v]) => `${scalar(k)}: ${flow(v)}`).join(", ")}}`;
  };
  /* Block style to two levels, the rest in one line. */
  function yaml(value, indent = "", depth = 0) {
    if (simple(value) || depth > 2 || Object.keys(value).length === 0) return ` ${flow(value)}\n`;
    const lines = Array.isArray(value)
      ? value.map((item) => `${indent}- ${flow(item)}\n`)
      : Object.entries(value).map(([key, item]) => `${indent}${scalar(key)}:${yaml(item, indent + "  ", depth + 1)}`);
    return (depth ? "\n" : "") + lines.join("");
  }
  const put = (root, path, value) => {
    let at = root;
    for (const key of path.slice(0, -1)) {
      if (!Object.hasOwn(at, key) || simple(at[key])) Object.defineProperty(at, key, { value: {}, enumerable: true, writable: true, configurable: true });
      at = at[key];
    }
    Object.defineProperty(at, path.at(-1), { value, enumerable: true, writable: true, configurable: true });
  };

  function table(model) {
    const root = JSON.parse(JSON.stringify(model.data.table));
    delete root.grid;
    for (const [key, value] of model.edits) {
      const path = JSON.parse(key);
      if (path[0] === "s") put(root, model.scalars.get(path[1]).path, value);
      if (path[0] === "e" && path[3] === "usd_per_hour") put(root, ["prices", path[2]], value);
      else if (path[0] === "e") put(root, [path[1], path[2], path[3]], value);
    }
    const inputs = model.data.fields.filter((f) => f.input !== undefined);
    root.rows = model.ids.map((id, i) => {
      const row = { id };
      for (const f of inputs) {
        const value = model.book.rows.columns.get(f.name).values[i];
        if (f.name !== "id" && !Engine.isBlank(value)) row[f.input] = value;
      }
      return row;
    });
    return yaml(root);
  }

  const quoted = (text) => (/^[=+\-@\t\r]/.test(text) ? `"'${text.replaceAll('"', '""')}"` : /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  function csv(model, order) {
    const shown = model.data.public.map((name) => model.fields.get(name));
    const lines = [shown.map((f) => quoted(f.name)).join(",")];
    for (const i of order)
      lines.push(
        shown
          .map((f) => {
            const v = model.book.rows.columns.get(f.name).values[i];
            if (Engine.isBlank(v)) return "";
            if (f.limit && v >= model.data.unlimited) return "unlimited";
            return typeof v === "string" ? quoted(v) : String(v);
          })
          .join(","),
      );
    return lines.join("\n") + "\n";
  }

  function save(name, type, content) {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  return { table, csv, save, yaml };
})();
