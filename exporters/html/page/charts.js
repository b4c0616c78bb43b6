"use strict";
/* Charts on uPlot's axes and scales; lines and markers are drawn here, hover finds the nearest marker. */
const Charts = (() => {
  const COLORS = ["#0b63ce", "#c2410c", "#0f766e", "#9333ea", "#a16207", "#15803d", "#b91c1c", "#475569", "#be185d", "#0e7490"];
  const DARK = ["#6cb2ff", "#ff9d6b", "#4fd1c5", "#d6a3ff", "#f2c94c", "#7ee08a", "#ff8a8a", "#b6c2d1", "#ff9fcf", "#67d9ef"];
  const SHAPES = ["circle", "square", "up", "diamond", "down"];
  const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const color = (k) => (isDark() ? DARK : COLORS)[k % COLORS.length];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function marker(ctx, shape, x, y, r) {
    ctx.beginPath();
    if (shape === "circle") ctx.arc(x, y, r, 0, 7);
    else if (shape === "square") ctx.rect(x - r, y - r, 2 * r, 2 * r);
    else {
      const points = { up: [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]], down: [[0, 1.2], [1.1, -0.9], [-1.1, -0.9]], diamond: [[0, -1.3], [1.2, 0], [0, 1.3], [-1.2, 0]] }[shape];
      points.forEach(([a, b], k) => ctx[k ? "lineTo" : "moveTo"](x + a * r, y + b * r));
      ctx.closePath();
    }
    ctx.fill();
  }
  const good = (v) => Number.isFinite(v);
  const extent = (values, log) => {
    const fine = values.filter((v) => good(v) && (!log || v > 0));
    if (!fine.length) return log ? [1, 10] : [0, 1];
    let [low, high] = [Math.min(...fine), Math.max(...fine)];
    if (log) return low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
  };
  /* 1, 2, 5, 10, ... on a logarithmic axis; whole decades where there are many. */
  const decades = (low, high) => {
    const steps = high / low > 2000 ? [1] : high / low > 60 ? [1, 3] : [1, 2, 5];
    const out = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++) for (const s of steps) if (s * 10 ** k >= low && s * 10 ** k <= high) out.push(s * 10 ** k);
    return out;
  };
  const short = (v) => (v >= 1e6 ? `${+(v / 1e6).toPrecision(3)}M` : v >= 1e3 ? `${+(v / 1e3).toPrecision(3)}k` : `${+v.toPrecision(3)}`);

  class Chart {
    /* `host` is a figure with a div.plot, a div.tip and a figcaption; axes = {x, y} titles; log = {x, y}. */
    constructor(host, { x, y, logX = true, logY = false }) {
      this.host = host;
      this.plot = host.querySelector(".plot");
      this.tip = host.querySelector(".tip");
      this.logs = [logX, logY];
      this.titles = [x, y];
      this.content = { series: [], lines: [] };
      this.build();
      new ResizeObserver(() => this.resize()).observe(this.plot);
      this.plot.addEventListener("mousemove", (event) => this.hover(event));
      this.plot.addEventListener("mouseleave", () => (this.tip.hidden = true));
    }
    build() {
      if (this.u) this.u.destroy();
      const axis = (label, log) => ({
        label, labelSize: 18, labelFont: "12px system-ui", font: "11px system-ui", stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 },
        ticks: { stroke: css("--line"), width: 1 }, size: 46,
        splits: log ? (u, k, low, high) => decades(low, high) : undefined,
        filter: (u, splits) => splits,
        values: (u, splits) => splits.map((v) => (v === null ? "" : short(v))),
      });
      this.u = new uPlot(
        {
          width: Math.max(this.plot.clientWidth, 200), height: 260, legend: { show: false }, cursor: { points: { show: false }, drag: { setScale: false } },
          scales: {
            x: { time: false, distr: this.logs[0] ? 3 : 1, range: () => this.range(0) },
            y: { distr: this.logs[1] ? 3 : 1, range: () => this.range(1) },
          },
          axes: [{ ...axis(this.titles[0], this.logs[0]), size: 34 }, axis(this.titles[1], this.logs[1])],
          series: [{}, { show: true, points: { show: false }, stroke: "transparent" }],
          hooks: { draw: [(u) => this.draw(u)] },
        },
        [[1, 2], [null, null]],
        this.plot,
      );
      this.u.ctx.canvas.setAttribute("aria-hidden", "true");
    }
    range(k) {
      const values = this.content.series.flatMap((s) => [...s.points.map((p) => p[k]), ...(s.line || []).map((p) => p[k]), ...(k ? (s.band || []).flatMap((p) => [p[1], p[2]]) : [])]);
      if (k === 1 && this.content.floor !== undefined) values.push(this.content.floor);
      return extent(values, this.logs[k]);
    }
    resize() {
      if (this.plot.clientWidth > 0) this.u.setSize({ width: this.plot.clientWidth, height: 260 });
    }
    /* {series: [{label, k, points: [[x, y, row]], line: [[x, y]], band: [[x, low, high]]}], lines: [{x | y, label}], text} */
    show(content) {
      this.content = content;
      this.u.setData([[1, 2], [null, null]]);
      this.host.querySelector("figcaption").textContent = content.text || "";
    }
    draw(u) {
      const { ctx, bbox } = u;
      const at = (p) => [u.valToPos(p[0], "x", true), u.valToPos(p[1], "y", true)];
      const ok = (p) => good(p[0]) && good(p[1]) && (!this.logs[0] || p[0] > 0) && (!this.logs[1] || p[1] > 0);
      const scale = devicePixelRatio || 1;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left - 6, bbox.top - 6, bbox.width + 12, bbox.height + 12);
      ctx.clip();
      const stroke = (points, style, width, dash = []) => {
        ctx.beginPath();
        let open = false;
        for (const p of points) {
          if (!ok(p)) open = false;
          else ctx[open ? "lineTo" : "moveTo"](...at(p)), (open = true);
        }
        ctx.strokeStyle = style;
        ctx.lineWidth = width * scale;
        ctx.setLineDash(dash.map((d) => d * scale));
        ctx.stroke();
        ctx.setLineDash([]);
      };
      if (this.content.front) stroke(this.content.front, css("--front"), 7);
      for (const s of this.content.series) {
        if (!s.band) continue;
        const fine = s.band.filter((p) => ok([p[0], p[1]]) && ok([p[0], p[2]]));
        ctx.globalAlpha = 0.13;
        ctx.fillStyle = color(s.k);
        ctx.beginPath();
        fine.forEach((p, k) => ctx[k ? "lineTo" : "moveTo"](...at([p[0], p[1]])));
        [...fine].reverse().forEach((p) => ctx.lineTo(...at([p[0], p[2]])));
        ctx.fill();
        ctx.globalAlpha = 1;
      }
      for (const line of this.content.lines || []) {
        const ends = line.x !== undefined ? [[line.x, this.range(1)[0]], [line.x, this.range(1)[1]]] : [[this.range(0)[0], line.y], [this.range(0)[1], line.y]];
        stroke(ends, css("--soft"), 1.2, [5, 4]);
        if (line.label && ok(ends[0])) {
          ctx.fillStyle = css("--soft");
          ctx.font = `${11 * scale}px system-ui`;
          ctx.fillText(line.label, at(ends[0])[0] + 4 * scale, line.x !== undefined ? bbox.top + 12 * scale : at(ends[0])[1] - 4 * scale);
        }
      }
      for (const s of this.content.series) if (s.line) stroke(s.line, color(s.k), 1.8);
      for (const s of this.content.series) {
        ctx.fillStyle = color(s.k);
        for (const p of s.points) if (ok(p)) marker(ctx, SHAPES[s.k % SHAPES.length], ...at(p), 4 * scale);
      }
      ctx.restore();
    }
    hover(event) {
      const box = this.u.over.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = null;
      for (const s of this.content.series)
        for (const p of s.points) {
          if (!good(p[0]) || !good(p[1])) continue;
          const d = Math.hypot(this.u.valToPos(p[0], "x") - x, this.u.valToPos(p[1], "y") - y);
          if (d < 18 && (!best || d < best.d)) best = { d, s, p };
        }
      this.tip.hidden = !best;
      if (best) this.tip.textContent = `${best.s.label}${best.p[3] ? ", " + best.p[3] : ""}: ${this.titles[0]} ${short(best.p[0])}, ${this.titles[1]} ${short(best.p[1])}`;
    }
    picture(name) {
      const canvas = document.createElement("canvas");
      const own = this.u.ctx.canvas;
      [canvas.width, canvas.height] = [own.width, own.height];
      const ctx = canvas.getContext("2d");
      ctx.fillStyle = css("--card");
      ctx.fillRect(0, 0, canvas.width, canvas.height);
      ctx.drawImage(own, 0, 0);
      canvas.toBlob((blob) => Files.save(name, "image/png", blob));
    }
  }
  return { Chart, color, SHAPES, marker, short };
})();
