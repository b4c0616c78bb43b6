"use strict";
/* Puts the page together: assumptions at the side, figures and charts, the table, what a number comes from, the status. */
(() => {
  const { el, show, words } = Rows;
  const data = JSON.parse(document.getElementById("data").textContent);
  const model = new State.Model(data);
  const book = model.book;
  const $ = (id) => document.getElementById(id);
  const column = (name) => book.rows.columns.get(name)?.values;
  const has = (name) => book.rows.columns.has(name);
  const stem = (data.file || "costs").replace(/^.*[\\/]/, "").replace(/\.\w+$/, "") || "costs";
  let timer = 0;

  // -- rows that look alike but for the batch are one series --------------------------------------------
  const shape = data.fields.filter((f) => f.input !== undefined && !["id", "batch"].includes(f.input));
  const hidden = new Set();
  const chosen = { model: "", gpu: "" };
  const batchInput = data.fields.find((f) => f.input === "batch").name;
  const passes = (i) => ["model", "gpu"].every((n) => !chosen[n] || column(n)[i] === chosen[n]);
  function series() {
    const varied = shape.filter((f) => new Set(column(f.name)).size > 1);
    const found = new Map();
    for (let i = 0; i < model.ids.length; i++) {
      if (view.where(i) !== true) continue;
      const key = shape.map((f) => column(f.name)[i]).join("\u0000");
      if (!found.has(key)) {
        const parts = varied.filter((f) => !Engine.isBlank(column(f.name)[i])).map((f) => (["model", "gpu", "method"].includes(f.input) ? column(f.name)[i] : `${f.input} ${show(column(f.name)[i], f, data)}`));
        found.set(key, { key, label: parts.join(" · ") || column("method")[i], rows: [], k: found.size });
      }
      found.get(key).rows.push(i);
    }
    return [...found.values()];
  }
  const shownSeries = () => series().filter((s) => !hidden.has(s.key) && passes(s.rows[0]));

  /* Whole batches spread evenly over the table's, for smooth curves. */
  function batches() {
    const all = [...column("batch")].filter(Number.isFinite);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const count = 56;
    const out = new Set(all.filter((b) => b >= low && b <= high));
    for (let k = 0; k <= count; k++) out.add(Math.round(low * (high / low) ** (k / count)));
    return [...out].sort((a, b) => a - b);
  }

  // -- inputs ----------------------------------------------------------------------------------------------
  function sync(node) {
    if (!node?.path || document.activeElement === node) return;
    const value = model.value(node.path);
    if (node.tagName === "SELECT") {
      if (![...node.options].some((o) => o.value === (value ?? ""))) node.append(el("option", { value: value ?? "" }, value ?? "default"));
      node.value = value ?? "";
    } else node.value = value === null ? "" : String(value);
    node.classList.toggle("changed", model.changed(node.path));
  }
  function commit(node, value, label) {
    const fault = model.set([[node.path, value]]);
    node.setAttribute("aria-invalid", String(Boolean(fault)));
    say(fault ? `${label}: ${fault}` : "");
    if (fault) node.title = fault;
  }
  function input(path, spec, label, lazy = false) {
    const choices = spec.choices;
    let node;
    if (choices) {
      node = el("select", { "aria-label": label, tabindex: lazy ? "-1" : undefined, onchange: () => commit(node, node.value === "" ? null : node.value, label) });
      const fill = () => {
        if (node.filled) return;
        node.filled = true;
        const now = node.value;
        node.replaceChildren(...(spec.blank || spec.value === null ? [el("option", { value: "" }, "default")] : []), ...choices.map((c) => el("option", { value: c }, c)));
        if ([...node.options].every((o) => o.value !== now)) node.append(el("option", { value: now }, now));
        node.value = now;
      };
      node.addEventListener("focus", fill);
      node.addEventListener("pointerdown", fill);
      if (!lazy) node.unfilled = fill;
    } else {
      node = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": label, tabindex: lazy ? "-1" : undefined, placeholder: spec.blank ? "default" : "", onchange: () => {
        const text = node.value.trim();
        commit(node, text === "" ? null : spec.kind === "number" ? State.number(text) : text, label);
      } });
    }
    node.path = path;
    sync(node);
    return node;
  }
  function slider(path, spec, label) {
    const value = model.value(path) ?? spec.value;
    if (spec.kind !== "number" || spec.choices || typeof value !== "number") return null;
    const low = spec.low ?? spec.above ?? 0;
    const high = spec.high !== undefined && spec.high <= 1 ? spec.high : Math.min(spec.high ?? Infinity, Math.max(4 * value, low + 1, 4));
    const step = spec.whole ? 1 : (high - low) / 200;
    const node = el("input", { type: "range", min: low, max: high, step, "aria-label": `${label}, slider`, oninput: () => {
      const v = Number(node.value);
      if (spec.above === undefined || v > spec.above) commit(node, v, label);
    } });
    node.path = path;
    node.value = String(value);
    return node;
  }
  function side() {
    const groups = new Map();
    const put = (group, path, spec, label, unit) => {
      if (!groups.has(group)) groups.set(group, el("details", { open: ["General", "Batch"].includes(group) }, el("summary", {}, group)));
      const box = input(path, spec, `${label} (${group})`);
      groups.get(group).append(el("div", { class: "assumption", title: [spec.doc, spec.source].filter(Boolean).join(" — ") }, el("label", {}, words(label), el("small", {}, ` ${unit || ""}`)), box, slider(path, spec, `${label} (${group})`)));
    };
    const methods = new Set([...column("method")].flatMap((m) => m.split("+")));
    for (const s of data.scalars) if (!s.fixed && (s.group === "General" || methods.has(s.group) || data.models.includes(s.group))) put(s.group, ["s", s.name], s, s.label, s.unit);
    const gpus = model.tables.get("gpus");
    for (const gpu of new Set(column("gpu")))
      for (const f of gpus?.fields.filter((f) => f.tree === undefined && f.kind === "number") || []) {
        const first = gpus.inputs[f.name][gpus.names.indexOf(gpu)];
        put(gpus.titles[gpus.names.indexOf(gpu)] || gpu, ["e", "gpus", gpu, f.name], { ...f, value: first, blank: first === null, source: gpus.sources[gpus.names.indexOf(gpu)] }, f.name, f.unit);
      }
    $("assumptions").replaceChildren(...groups.values());
  }

  // -- figures and charts ----------------------------------------------------------------------------------
  function cards() {
    const rows = view.visible();
    const best = (name, most) => rows.reduce((a, i) => (Engine.isBlank(column(name)[i]) || (a !== null && (most ? column(name)[a] >= column(name)[i] : column(name)[a] <= column(name)[i])) ? a : i), null);
    const asked = [["Cheapest", "usd_per_million_tokens", false, "$ per 1M tokens"], ["Fastest for one user", "tpot_ms", false, "ms per token"], ["Most per GPU", "tokens_per_s_per_gpu", true, "tokens/s"], ["Largest speedup", "speedup", true, "x"]];
    $("cards").replaceChildren(...asked.filter(([, name]) => has(name)).map(([title, name, most, unit]) => {
      const i = best(name, most);
      return el("div", { class: "card" }, el("h3", {}, title), el("p", { class: "figure" }, i === null ? "none" : show(column(name)[i], model.fields.get(name), data), el("small", {}, ` ${unit}`)),
        el("p", {}, i === null ? "no row has it" : `${column("method")[i]}, batch ${show(column("batch")[i])}, ${column("model")[i]} on ${column("gpu")[i]}`));
    }));
  }
  const figures = {};
  function figure(id, title, note, axes) {
    const host = el("figure", { id }, el("h2", {}, title), el("p", { class: "note" }, note), el("div", { class: "plot" }), el("div", { class: "tip", hidden: true, role: "status" }), el("button", { type: "button", class: "png", "aria-label": `download the picture of ${title}`, onclick: () => figures[id].picture(`${stem}-${id}.png`) }, "PNG"), el("figcaption", {}));
    $("charts").append(host);
    figures[id] = new Charts.Chart(host, axes);
  }
  function charts() {
    const chosenSeries = shownSeries();
    const at = batches();
    const smooth = chosenSeries.slice(0, 24).map((s) => ({ s, sheet: book.sweep(s.rows[0], { [batchInput]: at }, at.length) }));
    const of = (sheet, name) => sheet.columns.get(name)?.values;
    const build = (x, y, low, high) => chosenSeries.map((s) => {
      const curve = smooth.find((c) => c.s === s)?.sheet;
      const line = curve && at.length > 1 ? at.map((_, k) => [x(curve, k), y(curve, k)]) : undefined;
      const band = curve && low && of(curve, low) ? at.map((_, k) => [x(curve, k), of(curve, low)[k], of(curve, high)[k]]) : undefined;
      return { label: s.label, k: s.k, line, band, points: s.rows.map((i) => [x(book.rows, i), y(book.rows, i), i, `batch ${show(column("batch")[i])}`]) };
    });
    const pick = (name) => (sheet, k) => of(sheet, name)?.[k] ?? NaN;
    const batch = pick("batch");
    const perUser = (sheet, k) => pick("tokens_per_s")(sheet, k) / batch(sheet, k);
    const pareto = build(perUser, pick("tokens_per_s_per_gpu"));
    const all = pareto.flatMap((s) => [...(s.line || []), ...s.points]).filter((p) => p[0] > 0 && p[1] > 0).sort((a, b) => b[0] - a[0]);
    let top = 0;
    const front = all.filter((p) => p[1] > top && (top = p[1]));
    const leader = front.length ? pareto.find((s) => s.points.some((p) => front.includes(p)) || s.line?.some((p) => p === front.at(-1))) : null;
    figures.pareto.show({ series: pareto, front, text: leader ? `The thick line joins what no other row beats; ${leader.label} is on it.` : "" });
    if (has("usd_per_million_tokens")) {
      const price = build(batch, pick("usd_per_million_tokens"));
      figures.price.show({ series: price, text: price.map((s) => { const p = s.points.filter((q) => Number.isFinite(q[1])).sort((a, b) => a[1] - b[1])[0]; return p ? `${s.label}: from $${show(p[1])} at batch ${show(p[0])}` : `${s.label}: no price`; }).join("; ") });
    }
    const ridges = new Map();
    for (const s of chosenSeries) {
      const v = pick("ridge_rows")(book.rows, s.rows[0]);
      if (Number.isFinite(v)) ridges.set(v.toPrecision(3), v);
    }
    const passes = build(pick("verify_rows"), pick("verify_ms"), "verify_low_ms", "verify_high_ms");
    figures.pass.show({ series: passes, lines: [...ridges.values()].slice(0, 4).map((x) => ({ x, label: `ridge ${show(Math.round(x))}` })), text: ridges.size ? `Arithmetic sets the time from ${[...ridges.values()].map((x) => show(Math.round(x))).join(", ")} rows on.` : "" });
    if (has("speedup")) {
      const speed = build(batch, pick("speedup"), "speedup_low", "speedup_high");
      figures.speedup.show({ series: speed, lines: [{ y: 1 }], floor: 0, text: chosenSeries.map((s) => stops(s)).filter(Boolean).join("; ") });
    }
    memory(chosenSeries);
  }
  /* From which batch on a method costs more than it brings: found between the batches of the table, to the sequence. */
  function stops(s) {
    const high = Math.max(...column("batch"), 1) * 4;
    const probe = [];
    for (let b = 1; b < high; b = Math.max(b + 1, Math.round(b * 1.12))) probe.push(b);
    const speeds = (list) => [...book.sweep(s.rows[0], { [batchInput]: list }, list.length).columns.get("speedup").values];
    const value = speeds(probe);
    if (value.filter(Number.isFinite).every((v) => Math.abs(v - 1) < 1e-9)) return "";
    const k = value.findIndex((v) => v < 1);
    if (k < 0) {
      const most = column("max_batch")?.[s.rows[0]];
      return `${s.label}: pays wherever it fits${most > 0 && most < data.unlimited ? `, up to batch ${show(most)}` : ""}`;
    }
    if (k === 0) return `${s.label}: does not pay at batch 1`;
    const between = [];
    for (let b = probe[k - 1]; b <= probe[k]; b += Math.max(1, Math.floor((probe[k] - probe[k - 1]) / 400))) between.push(b);
    const at = speeds(between).findIndex((v) => v < 1);
    return `${s.label}: stops paying at batch ${show(between[at < 0 ? between.length - 1 : at])}`;
  }
  function memory(chosenSeries) {
    const parts = [["weights", "weight_gb"], ["KV cache", "kv_gb"], ["draft", "draft_gb"], ["lookahead", "lookahead_gb"], ["activations", "activation_gb"]].filter(([, n]) => has(n));
    const bars = chosenSeries.slice(0, 12).map((s) => {
      const i = s.rows.reduce((a, b) => (column("batch")[b] > column("batch")[a] ? b : a));
      const room = column("memory_available_gb")?.[i] ?? NaN;
      const sizes = parts.map(([label, name]) => [label, column(name)[i] || 0]);
      const used = sizes.reduce((a, [, v]) => a + v, 0);
      const whole = Math.max(used, room || 0);
      const bar = el("div", { class: "bar", role: "img", "aria-label": `${s.label}, batch ${show(column("batch")[i])}: ${sizes.map(([l, v]) => `${l} ${show(v)} GB`).join(", ")}; ${used > room ? "does not fit" : `${show(room - used)} GB free`} of ${show(room)} GB` });
      sizes.forEach(([label, v], k) => {
        const piece = el("span", { title: `${label} ${show(v)} GB`, class: `part${k}` });
        piece.style.width = `${(100 * v) / whole}%`;
        bar.append(piece);
      });
      return el("div", { class: "barline" }, el("span", {}, `${s.label}, batch ${show(column("batch")[i])}`), bar, el("span", { class: used > room ? "bad" : "" }, `${show(used)} of ${show(room)} GB`));
    });
    $("memory").replaceChildren(el("div", { class: "keys" }, ...parts.map(([label], k) => el("span", {}, el("i", { class: `part${k}` }), label))), ...bars);
  }
  function legend() {
    const all = series().filter((s) => passes(s.rows[0]));
    $("legend").replaceChildren(...all.slice(0, 60).map((s) => {
      const canvas = el("canvas", { width: 24, height: 24, "aria-hidden": "true" });
      const ctx = canvas.getContext("2d");
      ctx.fillStyle = Charts.color(s.k);
      Charts.marker(ctx, Charts.SHAPES[s.k % Charts.SHAPES.length], 12, 12, 8);
      return el("button", { type: "button", class: "chip", "aria-pressed": String(!hidden.has(s.key)), onclick: (event) => {
        hidden[hidden.has(s.key) ? "delete" : "add"](s.key);
        event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(s.key)));
        charts();
      } }, canvas, s.label);
    }));
  }
  function filters() {
    for (const name of ["model", "gpu"]) {
      const select = $(`only-${name}`);
      const values = [...new Set(column(name))];
      select.replaceChildren(el("option", { value: "" }, "all"), ...values.map((v) => el("option", { value: v }, v)));
      select.value = values.includes(chosen[name]) ? chosen[name] : "";
      chosen[name] = select.value;
    }
  }

  // -- where a number comes from ---------------------------------------------------------------------------
  function explain(name, i) {
    const f = model.fields.get(name) || model.scalars.get(name);
    const scalar = model.scalars.get(name);
    const value = scalar ? book.scalars.get(name).v : column(name)[i];
    const reads = f.tree !== undefined ? [...new Set((f.text.match(/[A-Za-z_]\w*/g) || []).filter((n) => has(n) || model.scalars.has(n)))] : [];
    const of = (n) => show(model.scalars.has(n) ? book.scalars.get(n).v : column(n)[i], model.fields.get(n), data) || "blank";
    const put = f.text ? f.text.replace(/("[^"]*")|[A-Za-z_]\w*/g, (n, quoted) => (!quoted && reads.includes(n) ? of(n) : n)) : "";
    const link = (n) => el("button", { type: "button", class: "link", onclick: () => explain(n, i) }, `${words(n)} = ${of(n)} ${(model.fields.get(n) || model.scalars.get(n)).unit || ""}`);
    $("explain-body").replaceChildren(
      el("h2", {}, `${words(name)} = ${show(value, f, data) || "blank"} ${f.unit || ""}`), el("p", { class: "note" }, scalar ? "an assumption of the whole table" : model.ids[i]), el("p", {}, f.doc || ""),
      ...(f.text ? [el("pre", {}, `${name} = ${f.text}`), el("pre", {}, `  = ${put}`)] : f.table ? [el("p", {}, `read from ${f.table}: ${f.field} of ${column(f.key)[i] ?? "nothing"}`)] : []),
      f.source ? el("p", { class: "note" }, `source: ${f.source}`) : null, ...(reads.length ? [el("h3", {}, "it follows from"), el("ul", {}, ...reads.map((n) => el("li", {}, link(n))))] : []),
    );
    if (!$("explain").open) $("explain").showModal();
  }

  // -- the status ------------------------------------------------------------------------------------------
  function say(text) {
    $("message").textContent = text;
  }
  /* How many of the engine's own values the page computes alike, to 1e-9, before any edit. */
  function check() {
    let [same, all] = [0, 0];
    data.check.id.forEach((id, k) => {
      const i = model.place.get(id);
      for (const [name, values] of Object.entries(data.check)) {
        if (name === "id") continue;
        const [mine, theirs] = [column(name)[i], values[k]];
        all++;
        if (theirs === null ? Engine.isBlank(mine) : Math.abs(mine - theirs) <= 1e-9 * Math.max(Math.abs(theirs), 1e-300)) same++;
      }
    });
    $("check").textContent = same === all ? `✓ ${all.toLocaleString("en-US")} cells as the engine computed them` : `✗ ${all - same} of ${all} cells differ from the engine's`;
    $("check").className = same === all ? "good" : "bad";
  }
  function status() {
    $("edits").textContent = model.edits.size ? `${model.edits.size} change${model.edits.size > 1 ? "s" : ""}; ${model.cells.toLocaleString("en-US")} cells anew in ${model.took.toFixed(1)} ms` : "no changes";
    $("undo").disabled = !model.past.length;
    $("reset").disabled = !model.edits.size;
    const link = model.link();
    try {
      history.replaceState(null, "", link ? `#${link}` : location.pathname + location.search);
    } catch {
      // inside a notebook's frame the address is not ours to change
    }
  }
  function basis() {
    const used = has("time_model") ? [...new Set(column("time_model"))] : data.models;
    const say = { bound: "Lower bound: no server passes the weights faster; real ones are slower.", estimate: "Estimate: bands and low/high columns give its range.", measured: "Measured points, read linearly between." };
    $("basis").textContent = used.map((m) => say[m] || `Time model: ${m}.`).join(" ");
  }

  const app = { input, sync, explain, passes };
  const view = new Rows.View(model, app);
  function everything() {
    filters();
    cards();
    view.refresh();
    status();
    basis();
    for (const node of document.querySelectorAll("#assumptions input, #assumptions select")) if (node.type === "range") { if (document.activeElement !== node) node.value = String(model.value(node.path)); } else sync(node);
    clearTimeout(timer);
    timer = setTimeout(() => { legend(); charts(); }, model.ids.length > 2000 ? 250 : 16);
  }

  document.title = data.title || stem;
  $("title").textContent = data.title || stem;
  $("made").textContent = `${data.file || "a table"}, ${model.ids.length.toLocaleString("en-US")} rows; written by scenario ${data.version}. Change any yellow field: everything that depends on it follows.`;
  check();
  figure("pareto", "Throughput per GPU against speed per user", "Up and to the right is better. The thick line joins what no other row beats.", { x: "tokens/s per user", y: "tokens/s per GPU", logY: true });
  if (has("usd_per_million_tokens")) figure("price", "Price against batch", "Dollars per million output tokens; lower is better.", { x: "batch", y: "$ per 1M tokens", logY: true });
  figure("pass", "Time of a pass against token rows", "Flat where memory bounds it, rising where arithmetic does; the dashed line is the ridge between them.", { x: "token rows per pass", y: "ms", logY: true });
  if (has("speedup")) figure("speedup", "Speedup against batch", "Against vanilla decoding of the same model; below 1 the method costs more than it brings.", { x: "batch", y: "speedup" });
  const lost = location.hash.length > 1 ? model.follow(location.hash.slice(1)) : 0;
  side();
  view.draw();
  everything();
  if (lost) say(lost < 0 ? "the link could not be read" : `${lost} change${lost > 1 ? "s" : ""} of the link did not fit this table and were left out`);
  model.listeners.push(everything);
  for (const name of ["model", "gpu"]) $(`only-${name}`).addEventListener("change", (event) => { chosen[name] = event.target.value; everything(); view.draw(); });
  $("undo").addEventListener("click", () => model.undo());
  $("reset").addEventListener("click", () => model.reset());
  $("copy").addEventListener("click", () => navigator.clipboard?.writeText(location.href).then(() => say("link copied"), () => say("the address holds the link")) ?? say("the address holds the link"));
  $("csv").addEventListener("click", () => Files.save(`${stem}.csv`, "text/csv", Files.csv(model, view.visible())));
  $("yaml").addEventListener("click", () => Files.save(`${stem}.yaml`, "application/yaml", Files.table(model)));
  $("more").addEventListener("click", () => { view.most += 5 * Rows.CHUNK; view.draw(); });
  $("close").addEventListener("click", () => $("explain").close());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const chart of Object.values(figures)) chart.build(); legend(); charts(); });
  globalThis.scenarioPage = { model, book, data, yaml: () => Files.table(model), csv: () => Files.csv(model, view.visible()) };
})();
