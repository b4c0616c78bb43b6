"use strict";
/* The page's evaluator: trees of plain data (core/formulas/to_js.py) become closures over columns.
   A blank number is NaN, a blank text or flag is null; what cannot be computed is blank. Nothing here evaluates text. */
const Engine = (() => {
  const finite = (x) => (Number.isFinite(x) ? x : NaN);

  // 0 ** 0 is 1 and a blank stays blank, unlike Math.pow's NaN ** 0.
  const power = (a, b) => {
    if (a !== a || b !== b) return NaN;
    if (a === 0 && b < 0) return NaN;
    return finite(Math.pow(a, b));
  };

  const ARITHMETIC = {
    "+": (a, b) => finite(a + b),
    "-": (a, b) => finite(a - b),
    "*": (a, b) => finite(a * b),
    "/": (a, b) => finite(a / b),
    "//": (a, b) => finite(Math.floor(finite(a / b))),
    "%": (a, b) => finite(a - b * Math.floor(finite(a / b))),
    "**": power,
  };

  const COMPARE = {
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    "==": (a, b) => a === b,
    "!=": (a, b) => a !== b,
  };

  const ONE = {
    abs: Math.abs,
    sqrt: (x) => (x >= 0 ? Math.sqrt(x) : NaN),
    exp: (x) => finite(Math.exp(x)),
    log: (x) => (x > 0 ? Math.log(x) : NaN),
    floor: Math.floor,
    ceil: Math.ceil,
    trunc: Math.trunc,
  };

  const blankOf = (kind) => (kind === "number" ? NaN : null);
  const isBlank = (x) => x === null || x !== x;

  /* Series: 17 values by name, for 0 to 16 positions; curves: points with the slope that starts at each. */
  const entry = (table, name, n) => {
    const found = name === null ? undefined : table.get(name);
    const at = Math.floor(n);
    return found && at >= 0 && at < found.length ? found[at] : NaN;
  };
  const curve = (points, x) => {
    if (!points || x !== x) return NaN;
    let low = 0;
    let high = points.x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points.x[middle] <= x) low = middle + 1;
      else high = middle;
    }
    const at = Math.max(low - 1, 0);
    return finite(points.y[at] + (x - points.x[at]) * points.slope[at]);
  };

  const two = (f, a, b) => (i) => f(a(i), b(i));
  const extreme = (pick) => (parts) => (i) => {
    let value = parts[0](i);
    for (let k = 1; k < parts.length; k++) value = pick(value, parts[k](i));
    return value; // Math.min and Math.max give NaN where one of the two is
  };

  const BUILD = {
    text: (_, value) => () => value,
    flag: (_, value) => () => value,
    blank: (_, kind) => {
      const nothing = blankOf(kind);
      return () => nothing;
    },
    negate: (make, a) => {
      const f = make(a);
      return (i) => -f(i);
    },
    not: (make, a) => {
      const f = make(a);
      return (i) => {
        const v = f(i);
        return v === null ? null : !v;
      };
    },
    and: (make, ...parts) => logic(parts.map(make), true),
    or: (make, ...parts) => logic(parts.map(make), false),
    if: (make, kind, test, then, other) => {
      const [t, a, b] = [test, then, other].map(make);
      const nothing = blankOf(kind);
      return (i) => {
        const v = t(i);
        return v === null ? nothing : v ? a(i) : b(i);
      };
    },
    choose: (make, kind, index, ...arms) => {
      const at = make(index);
      const values = arms.map(make);
      const nothing = blankOf(kind);
      return (i) => {
        const n = Math.trunc(at(i));
        return n >= 1 && n <= values.length ? values[n - 1](i) : nothing;
      };
    },
    coalesce: (make, kind, ...parts) => {
      const values = parts.map(make);
      const nothing = blankOf(kind);
      return (i) => {
        for (const value of values) {
          const v = value(i);
          if (!isBlank(v)) return v;
        }
        return nothing;
      };
    },
    is_blank: (make, a) => {
      const f = make(a);
      return (i) => isBlank(f(i));
    },
    min: (make, ...parts) => extreme(Math.min)(parts.map(make)),
    max: (make, ...parts) => extreme(Math.max)(parts.map(make)),
    at: (make, name, n) => series(make, name, n, make.vectors.at),
    tree_tokens: (make, name, n) => series(make, name, n, make.vectors.tree_tokens),
    tree_rows: (make, name, n) => series(make, name, n, make.vectors.tree_rows),
    curve: (make, name, x) => {
      const points = make.vectors.curve.get(name[1]);
      const f = make(x);
      return (i) => curve(points, f(i));
    },
  };
  for (const [op, f] of Object.entries(ARITHMETIC)) BUILD[op] = (make, a, b) => two(f, make(a), make(b));
  for (const [op, f] of Object.entries(COMPARE))
    BUILD[op] = (make, kind, a, b) => {
      const [left, right] = [make(a), make(b)];
      return (i) => {
        const x = left(i);
        const y = right(i);
        return isBlank(x) || isBlank(y) ? null : f(x, y);
      };
    };
  for (const [name, f] of Object.entries(ONE))
    BUILD[name] = (make, a) => {
      const part = make(a);
      return (i) => f(part(i));
    };

  function logic(parts, and) {
    return (i) => {
      for (const part of parts) {
        const v = part(i);
        if (v === null || v !== and) return v;
      }
      return and;
    };
  }
  function series(make, name, n, table) {
    const [key, at] = [make(name), make(n)];
    return (i) => entry(table, key(i), at(i));
  }

  /* A tree as a closure of the row number; `read(name)` gives the closure of a name. */
  function closure(tree, read, vectors) {
    const make = (part) => {
      if (typeof part === "number") return () => part;
      if (typeof part === "string") return read(part);
      const [op, ...rest] = part;
      if (!Object.hasOwn(BUILD, op)) throw new Error("unknown operation " + op);
      return BUILD[op](make, ...rest);
    };
    make.vectors = vectors;
    return make(tree);
  }

  const vectorsOf = (data) => {
    const out = { curve: new Map() };
    for (const name of ["at", "tree_tokens", "tree_rows"]) out[name] = new Map(data[name]);
    for (const [name, x, y] of data.curve) {
      const slope = x.map((_, k) => {
        const at = Math.min(k, x.length - 2);
        return (y[at + 1] - y[at]) / (x[at + 1] - x[at]);
      });
      out.curve.set(name, { x, y, slope });
    }
    return out;
  };

  const storage = (kind, length) => (kind === "number" ? new Float64Array(length).fill(NaN) : new Array(length).fill(null));
  const fromJson = (kind, values, length) => {
    const out = storage(kind, length);
    if (values) values.forEach((v, i) => (out[i] = v === null ? blankOf(kind) : v));
    return out;
  };

  /* One table of columns. `fields` come in the order of computing: {name, kind, tree?, table?, key?, field?}.
     `scalars` holds {name: {v}}; `tables` the catalog tables that lookups read. */
  class Sheet {
    constructor(fields, length, inputs, scalars, tables, vectors) {
      this.length = length;
      this.scalars = scalars;
      this.tables = tables;
      this.columns = new Map();
      this.steps = [];
      for (const field of fields) {
        const given = Object.hasOwn(inputs, field.name) ? inputs[field.name] : null;
        const ready = given instanceof Float64Array || (given && field.kind !== "number" && given.ready);
        const values = ready ? given : fromJson(field.kind, given, length);
        const column = { values, kind: field.kind };
        this.columns.set(field.name, column);
        if (field.tree !== undefined) this.steps.push({ name: field.name, f: closure(field.tree, (n) => this.reader(n), vectors), column, reads: null });
        else if (field.table) this.steps.push({ name: field.name, f: this.lookup(field), column, reads: null });
      }
    }
    reader(name) {
      const column = this.columns.get(name);
      if (column) return (i) => column.values[i];
      const scalar = this.scalars.get(name);
      if (!scalar) throw new Error("no column " + name);
      return () => scalar.v;
    }
    lookup({ table, key, field, kind }) {
      const nothing = blankOf(kind);
      const found = this.tables.get(table);
      const keys = this.columns.get(key);
      const column = found.sheet.columns.get(field);
      return (i) => {
        const at = found.index.get(keys.values[i]);
        return at === undefined ? nothing : column.values[at];
      };
    }
    compute(only) {
      let cells = 0;
      for (const { name, f, column } of this.steps) {
        if (only && !only.has(name)) continue;
        const values = column.values;
        for (let i = 0; i < this.length; i++) values[i] = f(i);
        cells += this.length;
      }
      return cells;
    }
  }

  /* Who reads whom, over assumptions, catalog tables and columns, so that an edit computes what depends on it. */
  const namesIn = (tree, out) => {
    if (typeof tree === "string") out.add(tree);
    else if (Array.isArray(tree) && tree[0] !== "text" && tree[0] !== "flag" && tree[0] !== "blank") {
      const typed = ["if", "choose", "coalesce", "<", "<=", ">", ">=", "==", "!="].includes(tree[0]);
      for (let k = typed ? 2 : 1; k < tree.length; k++) namesIn(tree[k], out);
    }
    return out;
  };

  class Book {
    constructor(data) {
      this.data = data;
      this.vectors = vectorsOf(data.vectors);
      this.scalars = new Map(data.scalars.map((s) => [s.name, { v: s.value === null ? blankOf(s.kind) : s.value }]));
      this.tables = new Map();
      this.readers = new Map(); // source -> [what reads it]
      const reads = (target, sources) => {
        for (const source of sources) {
          if (!this.readers.has(source)) this.readers.set(source, []);
          this.readers.get(source).push(target);
        }
      };
      for (const table of data.tables) {
        const sheet = new Sheet(table.fields, table.names.length, table.inputs, this.scalars, this.tables, this.vectors);
        this.tables.set(table.name, { sheet, index: new Map(table.names.map((n, i) => [n, i])), names: table.names });
        const own = new Set(table.fields.map((f) => f.name));
        for (const f of table.fields)
          if (f.tree !== undefined) reads(`${table.name}.${f.name}`, [...namesIn(f.tree, new Set())].map((n) => (own.has(n) ? `${table.name}.${n}` : n)));
      }
      for (const f of data.fields) {
        if (f.tree !== undefined) reads(f.name, namesIn(f.tree, new Set()));
        else if (f.table) reads(f.name, [f.key, `${f.table}.${f.field}`]);
      }
      this.rows = this.sheet(data.rows.length, data.rows.inputs);
      for (const { sheet } of this.tables.values()) sheet.compute();
      this.rows.compute();
    }
    sheet(length, inputs) {
      return new Sheet(this.data.fields, length, inputs, this.scalars, this.tables, this.vectors);
    }
    /* All that depends on these sources, themselves left out. */
    dependents(sources) {
      const found = new Set();
      const stack = [...sources];
      while (stack.length) for (const reader of this.readers.get(stack.pop()) || []) if (!found.has(reader)) found.add(reader), stack.push(reader);
      return found;
    }
    refresh(sources) {
      const only = this.dependents(sources);
      let cells = 0;
      for (const [name, { sheet }] of this.tables) {
        const own = new Set([...only].filter((n) => n.startsWith(name + ".")).map((n) => n.slice(name.length + 1)));
        if (own.size) cells += sheet.compute(own);
      }
      return cells + this.rows.compute(only);
    }
    test(tree) {
      return tree === null ? () => true : closure(tree, (n) => this.rows.reader(n), this.vectors);
    }
    /* The same formulas on rows that exist for a chart only: row `i` with other values in some inputs. */
    sweep(i, changes, length) {
      const inputs = {};
      for (const f of this.data.fields)
        if (f.tree === undefined && !f.table) {
          const values = storage(f.kind, length);
          values.fill(this.rows.columns.get(f.name).values[i]);
          values.ready = true;
          inputs[f.name] = values;
        }
      for (const [name, values] of Object.entries(changes)) values.forEach((v, k) => (inputs[name][k] = v));
      const sheet = this.sheet(length, inputs);
      sheet.compute();
      return sheet;
    }
  }
  return { Book, closure, vectorsOf, isBlank, functions: Object.keys(BUILD) };
})();
