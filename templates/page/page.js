// SPDX-License-Identifier: Apache-2.0
// Draws a report from its JSON. Text of models gets into the page as text only. A number that is in the JSON has its path in
// data-path, so that a test, or a reader, can look it up.
"use strict";
(() => {
  // Lists of objects come as {columns: their keys' place in `keys`, rows}, longer texts as {t: their place in `texts`}.
  const { keys, texts, report: packed } = JSON.parse(document.getElementById("report").textContent);
  const unpacked = (value) => {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(unpacked);
    if (typeof value.t === "number") return texts[value.t];
    if (value.rows && value.columns !== undefined)
      return value.rows.map((row) => Object.fromEntries(keys[value.columns].map((key, i) => [key, unpacked(row[i])])));
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unpacked(item)]));
  };
  const report = unpacked(packed);
  const page = d3.select("#page");
  const told = document.getElementById("told");
  const figure = d3.format(",");

  const number = (value, digits = 0) =>
    value === null || value === undefined ? "–" : d3.format(`,.${digits}f`)(value).replaceAll(",", "\u202f");

  // ---- pieces ----

  const section = (title, said) => {
    const made = page.append("section");
    made.append("h2").text(title);
    if (said) made.append("p").text(said);
    return made;
  };

  const cards = (where, items) => {
    const list = where.append("dl").attr("class", "cards");
    for (const { label, path, value, unit = "", digits = 0, times = 1 } of items) {
      if (value === null || value === undefined) continue;
      const card = list.append("div");
      card.append("dt").text(label);
      const shown = typeof value === "number" ? number(times * value, digits) + (unit && " " + unit) : String(value);
      const cell = card.append("dd").text(shown);
      if (path && typeof value === "number") cell.attr("data-path", path).attr("data-digits", digits).attr("data-times", times);
    }
  };

  // columns: {name, of: row -> value, path: row -> JSON path, bar, digits, shown: row -> text}; choose: row -> void
  const table = (where, columns, rows, { choose, chosen, sortable = true } = {}) => {
    const made = where.append("div").attr("class", "scroll").append("table");
    const largest = columns.map((c) => (c.bar ? d3.max(rows, (row) => c.of(row) ?? 0) || 1 : 1));
    const isNumber = (c) => c.bar || c.digits !== undefined || c.path !== undefined;
    const head = made.append("thead").append("tr");
    const body = made.append("tbody");
    let order = { column: null, down: true };
    const draw = () => {
      const c = order.column;
      const sorted = c === null ? rows : [...rows].sort((a, b) => {
        const [x, y] = [columns[c].of(a), columns[c].of(b)];
        if (x === y) return 0;
        if (x === null || x === undefined) return 1;
        if (y === null || y === undefined) return -1;
        return (x < y ? -1 : 1) * (order.down ? -1 : 1);
      });
      body.selectAll("tr").data(sorted, (row) => rows.indexOf(row)).join("tr").order();
    };
    columns.forEach((column, i) => {
      const cell = head.append("th").attr("scope", "col").classed("n", isNumber(column));
      if (!sortable) { cell.text(column.name); return; }
      cell.append("button").text(column.name).on("click", () => {
        order = { column: i, down: order.column === i ? !order.down : isNumber(column) };
        head.selectAll("th").attr("aria-sort", (_, j) => (j === i ? (order.down ? "descending" : "ascending") : null));
        draw();
      });
    });
    const lines = body.selectAll("tr").data(rows).join("tr");
    if (chosen) lines.classed("chosen", chosen);
    columns.forEach((column, i) => {
      const cells = lines.append("td").classed("n", isNumber(column));
      cells.text((row) => column.shown ? column.shown(row) : isNumber(column) ? number(column.of(row), column.digits) : column.of(row));
      if (column.path) cells.attr("data-path", (row) => (typeof column.of(row) === "number" ? column.path(row) : null))
        .attr("data-digits", column.digits ?? 0);
      if (column.bar) cells.classed("bar", true).style("--share", (row) => `${(100 * (column.of(row) ?? 0)) / largest[i]}%`);
    });
    if (choose) {
      lines.attr("tabindex", 0)
        .on("click", (_, row) => choose(row))
        .on("keydown", (event, row) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(row); } });
    }
    return lines;
  };

  // ---- the arena ----

  const arena = (analysis, at) => {
    if (!analysis.arena.length) return () => {};
    const where = section("The arena", "Time from left to right, bytes from bottom to top. Each block is a value or memory of one layer, " +
      "from the layer that needs it first to the last. Tab and arrow keys walk through the blocks.");
    const key = where.append("p").attr("class", "key");
    const kinds = { value: "values", scratch: "scratch memory", stacked: "stacked windows of rows", mark: "kept from run to run" };
    for (const kind of d3.union(analysis.arena.map((b) => b.kind)))
      key.append("span").style("--kind", `var(--${kind === "mark" ? "mark-kind" : kind})`).text(kinds[kind]);
    const [width, height, left, bottom, right, top] = [1100, 420, 70, 30, 10, 10];
    const layers = analysis.layers.length;
    const x = d3.scaleLinear([-1, layers + 1], [left, width - right]);
    const y = d3.scaleLinear([0, analysis.arena_bytes], [height - bottom, top]);
    const svg = where.append("div").attr("class", "scroll").append("svg").attr("class", "wide")
      .attr("viewBox", `0 0 ${width} ${height}`).attr("role", "group").attr("aria-label", `the arena, ${analysis.arena_bytes} bytes`);
    svg.append("g").attr("transform", `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(Math.min(layers + 2, 16)).tickFormat(
      (v) => (v === -1 ? "in" : v === layers ? "out" : Number.isInteger(v) && v < layers ? v : "")))
      .selectAll(".tick text").attr("dx", (x(1) - x(0)) / 2); // a layer takes the room from its tick to the next
    svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(8));
    const bound = y(analysis.arena_lower_bound);
    svg.append("line").attr("class", "bound").attr("x1", left).attr("x2", width - right).attr("y1", bound).attr("y2", bound)
      .append("title").text(`${analysis.arena_lower_bound} bytes are alive at once`);
    const name = (i) => (i < 0 ? "before the first layer" : i >= layers ? "after the last layer" : `layer ${i}, ${analysis.layers[i].name}`);
    const overlapping = (block) => analysis.arena.filter((other) => other !== block && other.first <= block.last && block.first <= other.last &&
      other.offset < block.offset + block.bytes && block.offset < other.offset + other.bytes);
    const said = (block) => {
      const shared = overlapping(block).map((other) => other.name || kinds[other.kind]);
      return [block.name || kinds[block.kind], block.kind === "scratch" ? "scratch memory" : block.type, block.form,
        `${figure(block.bytes)} bytes at ${figure(block.offset)}`,
        block.first === block.last ? name(block.first) : `from ${name(block.first)} to ${name(block.last)}`,
        block.line, shared.length ? `shares bytes with ${shared.join(", ")}` : ""].filter(Boolean).join(" · ");
    };
    const blocks = svg.append("g").selectAll("rect").data(analysis.arena).join("rect")
      .attr("class", (b) => `block ${b.kind}`)
      .attr("x", (b) => x(b.first)).attr("width", (b) => Math.max(x(b.last + 1) - x(b.first), 1))
      .attr("y", (b) => y(b.offset + b.bytes)).attr("height", (b) => Math.max(y(b.offset) - y(b.offset + b.bytes), 1))
      .attr("tabindex", (_, i) => (i ? -1 : 0)).attr("role", "img").attr("aria-label", said)
      .attr("data-path", (_, i) => `${at}.arena.${i}.bytes`).attr("data-value", (b) => b.bytes);
    const holds = (b, end) => x(end) - x(b.first) > 7 * b.name.length + 8;
    // A later block may be drawn over the end of an earlier one.
    const seen = (b) => d3.min(overlapping(b).filter((other) => other.first > b.first), (other) => other.first) ?? b.last + 1;
    const fits = (b) => y(b.offset) - y(b.offset + b.bytes) > 14 && holds(b, b.last + 1) && holds(b, seen(b));
    svg.append("g").attr("class", "names").attr("aria-hidden", "true").selectAll("text").data(analysis.arena.filter(fits)).join("text")
      .attr("x", (b) => x(b.first) + 4).attr("y", (b) => y(b.offset + b.bytes) + 12).text((b) => b.name);
    const tell = (_, block) => { told.textContent = said(block); };
    blocks.on("mouseenter", tell).on("focus", tell).on("keydown", (event, block) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const next = step && blocks.nodes()[analysis.arena.indexOf(block) + step];
      if (next) { event.preventDefault(); next.focus(); }
    });
    return (index) => blocks.classed("faded", (b) => index !== null && (b.first > index || b.last < index));
  };

  // ---- layers ----

  const detail = d3.select(document.body).append("dialog").attr("aria-label", "a layer");

  // What was measured of a layer, as [its record, the path there].
  const measured = (name) => {
    const i = report.validation ? report.validation.layers.findIndex((layer) => layer.name === name) : -1;
    return i < 0 ? [null, ""] : [report.validation.layers[i], `validation.layers.${i}`];
  };

  const histogram = (where, layer, at, found, there) => {
    if (layer.low === null) return;
    where.append("h3").text("Its values");
    const [left, right, total] = [layer.low, layer.high, found && d3.sum(found.histogram)];
    const said = where.append("p");
    const digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(right - left))));
    const end = (key) => said.append("span").attr("data-path", `${at}.${key}`).attr("data-digits", digits).text(number(layer[key], digits));
    said.append("span").text("can be from "); end("low"); said.append("span").text(" to "); end("high");
    if (!total) { said.append("span").text("; validate with data shows how they spread."); return; }
    said.append("span").text("; at these ends, where what is beyond was clipped to: ");
    said.append("span").attr("data-path", `${there}.at_ends`).text(number(found.at_ends));
    said.append("span").text(` of ${number(total)}.`);
    const [width, height, bottom] = [640, 150, 22];
    const x = d3.scaleLinear([left, right], [10, width - 10]);
    const y = d3.scaleSqrt([0, d3.max(found.histogram)], [height - bottom, 5]);
    const step = (width - 20) / found.histogram.length;
    const svg = where.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img")
      .attr("aria-label", `how often the values are where, by square roots: ${found.histogram.join(", ")}`);
    svg.append("g").selectAll("rect").data(found.histogram).join("rect").attr("class", "value").attr("x", (_, i) => 10 + i * step)
      .attr("width", step - 1).attr("y", (n) => y(n)).attr("height", (n) => height - bottom - y(n))
      .attr("data-path", (_, i) => `${there}.histogram.${i}`).attr("data-value", (n) => n).append("title").text((n) => figure(n));
    svg.append("g").attr("transform", `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(8));
  };

  const open = (analysis, at, layer) => {
    const [found, there] = measured(layer.name);
    detail.html("");
    detail.append("h2").text(`${layer.index}  ${layer.name}`);
    detail.append("p").text(layer.source || layer.line);
    detail.append("p").text(`${layer.op} ${layer.shape.join("×")} (${layer.dtype}), ${layer.kernel}` +
      (layer.over.length ? `, over ${layer.over.join(" and ")} row by row` : "") +
      (layer.runs > 1 ? `; called ${layer.runs} times, by rows` : ""));
    detail.append("pre").text(layer.call);
    histogram(detail, layer, `${at}.layers.${layer.index}`, found, there);
    const path = (key) => (row) => `${at}.layers.${layer.index}.candidates.${layer.candidates.indexOf(row)}.${key}`;
    table(detail, [
      { name: "kernel", of: (c) => c.kernel },
      { name: "from", of: (c) => c.delegate },
      ...["instructions", "cycles", "constant_bytes", "code_bytes", "shared_bytes", "scratch_bytes"].map((key) => (
        { name: key.replace("_bytes", ""), of: (c) => c[key], path: path(key), bar: true })),
    ], layer.candidates, { chosen: (c) => c.kernel === layer.kernel });
    for (const reason of layer.refusals) detail.append("p").text(reason);
    detail.append("form").attr("method", "dialog").append("button").text("close");
    detail.node().showModal();
  };

  // ---- the graph ----

  // Layers from top to bottom in the order of their calls; a value that waits while others are computed keeps a lane beside them.
  const lanes = (layers) => {
    const last = new Map();
    layers.forEach((layer) => layer.reads.forEach((from) => last.set(from, layer.index)));
    const free = [], lane = new Map(), ends = [];
    let width = 1;
    const take = (index) => {
      const found = free.length ? free.splice(d3.minIndex(free), 1)[0] : width++;
      lane.set(index, found);
      if (last.has(index)) ends.push([last.get(index), found]); else free.push(found);
    };
    free.push(0);
    if (last.has(-1)) take(-1);
    for (const layer of layers) {
      // A lane is free for the layer that reads its value last.
      for (let i = ends.length - 1; i >= 0; i--) if (ends[i][0] <= layer.index) { free.push(ends[i][1]); ends.splice(i, 1); }
      take(layer.index);
    }
    return [lane, width];
  };

  const graph = (analysis, at, show) => {
    const layers = analysis.layers, time = analysis.time;
    const where = section("The graph", "Layers in the order of their calls, kernels as colours; the bar is a layer's share of the time. " +
      "Arrow keys walk, Enter opens a layer: its source line, its C, its values.");
    const kernels = d3.groups(layers, (layer) => layer.kernel).map(([name]) => name);
    const colour = (name) => `oklch(68% 0.13 ${Math.round((360 * kernels.indexOf(name) * 0.382) % 360)})`;
    const key = where.append("p").attr("class", "key");
    for (const name of kernels) key.append("span").style("--kind", colour(name)).text(name.replace("tinyet_", ""));
    const [lane, count] = lanes(layers);
    const [row, gap, top] = [24, Math.min(18, 260 / count), 30];
    const first = 24 + gap * count, width = 1100, height = top + row * layers.length + 6;
    const x = (index) => 14 + gap * (lane.get(index) ?? 0);
    const y = (index) => top + row * index + row / 2;
    const bar = d3.scaleLinear([0, d3.max(layers, (layer) => layer[time] ?? 0) || 1], [0, 260]);
    const svg = where.append("div").attr("class", "tall").append("svg").attr("class", "wide").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "group")
      .attr("aria-label", `the graph, ${layers.length} layers`);
    const edges = layers.flatMap((layer) => layer.reads.map((from) => [from, layer.index]));
    svg.append("path").attr("class", "edges").attr("d", edges.map(([from, to]) => {
      const [a, b, c, d] = [x(from), from < 0 ? 10 : y(from), x(to), y(to)];
      return `M${a},${b}V${d - row}C${a},${d - row / 3} ${c},${d - row * 0.7} ${c},${d}`;
    }).join(""));
    svg.append("text").attr("x", first).attr("y", 14).text(analysis.inputs.join(", "));
    const nodes = svg.append("g").selectAll("g").data(layers).join("g").attr("class", "node").attr("role", "button")
      .attr("tabindex", (_, i) => (i ? -1 : 0))
      .attr("aria-label", (l) => `layer ${l.index}, ${l.name}, ${l.op}, ${l.kernel}${l.line ? `, ${l.line}` : ""}`)
      .on("click", (_, layer) => open(analysis, at, layer))
      .on("mouseenter focus", (_, layer) => show(layer.index)).on("mouseleave blur", () => show(null))
      .on("keydown", (event, layer) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(analysis, at, layer); return; }
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const next = step && nodes.nodes()[layer.index + step];
        if (next) { event.preventDefault(); next.focus(); }
      });
    nodes.append("rect").attr("class", "hit").attr("x", 0).attr("width", width).attr("y", (l) => y(l.index) - row / 2).attr("height", row);
    nodes.append("circle").attr("cx", (l) => x(l.index)).attr("cy", (l) => y(l.index)).attr("r", 6).style("fill", (l) => colour(l.kernel));
    const told = (l) => `${l.index}  ${l.name}`;
    nodes.append("text").attr("class", "name").attr("x", first).attr("y", (l) => y(l.index) + 4).text((l) => {
      const text = told(l);
      return text.length > 52 ? `${text.slice(0, 51)}…` : text;
    });
    nodes.append("text").attr("x", first + 360).attr("y", (l) => y(l.index) + 4).text((l) => `${l.op} ${l.shape.join("×")}`);
    nodes.append("rect").attr("class", "share").attr("x", first + 560).attr("width", (l) => bar(l[time] ?? 0)).attr("y", (l) => y(l.index) - 7)
      .attr("height", 14).style("fill", (l) => colour(l.kernel))
      .attr("data-path", (l) => (l[time] === null ? null : `${at}.layers.${l.index}.${time}`)).attr("data-value", (l) => l[time]);
    const noise = layers.map((layer) => measured(layer.name));
    nodes.filter((_, i) => noise[i][0] && noise[i][0].sqnr_db !== null).append("text").attr("class", "number").attr("x", width - 70)
      .attr("y", (l) => y(l.index) + 4).attr("data-path", (l) => `${noise[l.index][1]}.sqnr_db`).attr("data-digits", 1)
      .text((l) => `${number(noise[l.index][0].sqnr_db, 1)} dB`);
  };

  // ---- the board's memories ----

  const memories = (analysis, at) => {
    if (!analysis.memories.length) return;
    const where = section(`The memories of ${analysis.board}`, "What lies in them as far as it is known before a build.");
    analysis.memories.forEach((memory, i) => {
      const taken = d3.sum(memory.taken, (part) => part.bytes);
      where.append("h3").text(memory.name).append("span").attr("class", "size").attr("data-path", `${at}.memories.${i}.bytes`)
        .text(`${number(memory.bytes)} bytes`);
      const bar = where.append("div").attr("class", "memory").attr("role", "img")
        .attr("aria-label", `${number(taken)} of ${number(memory.bytes)} bytes are taken`);
      const whole = Math.max(memory.bytes, taken);
      memory.taken.forEach((part, j) => bar.append("i").style("--share", `${(100 * part.bytes) / whole}%`)
        .style("--kind", `oklch(68% 0.13 ${(250 + 137 * j) % 360})`));
      const list = where.append("p").attr("class", "key");
      memory.taken.forEach((part, j) => {
        const one = list.append("span").style("--kind", `oklch(68% 0.13 ${(250 + 137 * j) % 360})`).text(`${part.text} `);
        one.append("span").attr("class", "size").attr("data-path", `${at}.memories.${i}.taken.${j}.bytes`).text(number(part.bytes));
      });
      if (!memory.taken.length) list.text("nothing is put there");
      else if (taken > memory.bytes) list.append("strong").attr("class", "worse").text(" It does not fit.");
    });
  };

  const layersOf = (analysis, at, show) => {
    const where = section("Layers", "What the kernels state before anything is built. A heading sorts; a row opens the layer, with all kernels that could compute it.");
    const path = (key) => (row) => `${at}.layers.${row.index}.${key}`;
    const column = (name, key) => ({ name, of: (row) => row[key], path: path(key), bar: true });
    table(where, [
      { name: "#", of: (row) => row.index, path: path("index") },
      { name: "layer", of: (row) => row.name },
      { name: "op", of: (row) => row.op },
      column("MACs", "macs"), column("instructions", "instructions"), column("est. cycles", "cycles"),
      column("constants", "constant_bytes"), column("code", "code_bytes"), column("output", "output_bytes"), column("scratch", "scratch_bytes"),
      { name: "kernel", of: (row) => row.kernel.replace("tinyet_", "") },
      { name: "line", of: (row) => row.line },
    ], analysis.layers, { choose: (row) => open(analysis, at, row) })
      .on("mouseenter focus", (_, row) => show(row.index)).on("mouseleave blur", () => show(null));
  };

  // ---- what could have been chosen ----

  const front = (analysis, at) => {
    if (analysis.plans.length < 2) return;
    const time = analysis.time;
    const where = section("Time, flash and RAM", `Plans that no other beats in all three; the one that was taken for "${analysis.optimize}" is marked. Larger circles take more RAM.`);
    const [width, height, left, bottom, right, top] = [1100, 340, 80, 45, 30, 15];
    const x = d3.scaleLinear(d3.extent(analysis.plans, (p) => p.flash_bytes), [left + 20, width - right]).nice();
    const y = d3.scaleLinear(d3.extent(analysis.plans, (p) => p[time]), [height - bottom - 10, top + 10]).nice();
    const r = d3.scaleSqrt([0, d3.max(analysis.plans, (p) => p.ram_bytes)], [0, 12]);
    const svg = where.append("div").attr("class", "scroll").append("svg").attr("class", "wide")
      .attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", "the table below as points");
    svg.append("g").attr("transform", `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(8));
    svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(6));
    svg.append("text").attr("x", width - right).attr("y", height - 8).attr("text-anchor", "end").text("bytes of flash");
    svg.append("text").attr("x", left + 6).attr("y", top + 4).text(time === "cycles" ? "estimated cycles" : "instructions");
    svg.append("g").selectAll("circle").data(analysis.plans).join("circle").attr("class", (p) => (p.chosen ? "point chosen" : "point"))
      .attr("cx", (p) => x(p.flash_bytes)).attr("cy", (p) => y(p[time])).attr("r", (p) => 2 + r(p.ram_bytes))
      .append("title").text((p) => `${figure(p.flash_bytes)} bytes of flash, ${figure(p.ram_bytes)} of RAM, ${figure(p[time])} ${time}`);
    const path = (key) => (row) => `${at}.plans.${analysis.plans.indexOf(row)}.${key}`;
    table(where, [
      { name: "", of: (p) => (p.chosen ? "taken" : "") },
      { name: "for", of: (p) => p.optimize.join(", ") },
      { name: "RAM", of: (p) => p.ram_bytes, path: path("ram_bytes"), bar: true },
      { name: "flash", of: (p) => p.flash_bytes, path: path("flash_bytes"), bar: true },
      { name: "instructions", of: (p) => p.instructions, path: path("instructions"), bar: true },
      ...(time === "cycles" ? [{ name: "est. cycles", of: (p) => p.cycles, path: path("cycles"), bar: true }] : []),
    ], analysis.plans, { chosen: (p) => p.chosen });
  };

  const advice = (analysis, at) => {
    if (!analysis.advice) return;
    const where = section("What would help", "Each was planned before it is said here; flash as stated before a build.");
    const path = (key) => (one) => `${at}.advice.${analysis.advice.indexOf(one)}.${key}`;
    const column = (name, key) => ({ name, of: (one) => (one.refused ? null : one[key]), path: path(key), digits: 0 });
    table(where, [
      { name: "", of: (one) => (one.helps ? "helps" : one.refused ? "impossible" : "no gain") },
      { name: "what", of: (one) => one.what },
      column("arena", "arena_bytes"), column("flash", "flash_bytes"), column("instructions", "instructions"),
      ...(analysis.time === "cycles" ? [column("est. cycles", "cycles")] : []),
      { name: "by", of: (one) => one.refused ?? one.do },
    ], analysis.advice).classed("better", (one) => one.helps);
  };

  const contributors = (analysis, at) => {
    const where = section("What takes the room");
    for (const [title, key] of [["largest in flash", "largest_constants"], ["alive at the peak of the arena", "peak"]]) {
      where.append("h3").text(title);
      table(where, [
        { name: "bytes", of: (c) => c.bytes, path: (c) => `${at}.${key}.${analysis[key].indexOf(c)}.bytes`, bar: true },
        { name: "", of: (c) => c.text },
      ], analysis[key], { sortable: false });
    }
  };

  // ---- the reports ----

  const analysisPage = (analysis, at) => {
    if (report.validation) section("The plan");
    cards(page, [
      { label: "time, estimated", path: `${at}.milliseconds`, value: analysis.milliseconds, unit: "ms", digits: 2 },
      { label: "estimated cycles", path: `${at}.cycles`, value: analysis.cycles },
      { label: "MACs", path: `${at}.macs`, value: analysis.macs },
      { label: "arena", path: `${at}.arena_bytes`, value: analysis.arena_bytes, unit: "bytes" },
      { label: "weights and tables", path: `${at}.constant_bytes`, value: analysis.constant_bytes, unit: "bytes" },
      { label: "code of kernels", path: `${at}.code_bytes`, value: analysis.code_bytes, unit: "bytes" },
      { label: "flash, at most", path: `${at}.flash.at_most_bytes`, value: analysis.flash.at_most_bytes, unit: "bytes" },
      { label: "flash, linked", path: `${at}.linked_bytes`, value: analysis.linked_bytes, unit: "bytes" },
      { label: "RAM with stack", path: `${at}.ram_with_stack_bytes`, value: analysis.ram_with_stack_bytes, unit: "bytes" },
    ]);
    memories(analysis, at);
    const show = arena(analysis, at);
    graph(analysis, at, show);
    layersOf(analysis, at, show);
    front(analysis, at);
    advice(analysis, at);
    contributors(analysis, at);
    if (analysis.notes.length) {
      const list = section("Notes").append("ul");
      for (const note of analysis.notes) list.append("li").text(note);
    }
  };

  // ---- which classes are taken for which ----

  const MOST_CLASSES = 24;

  const confusion = (found, at) => {
    if (!found) return;
    const where = section("Which classes are taken for which", "Rows: what a sample is; columns: what it was named. Right answers are on the diagonal.");
    const called = (i) => found.classes[i] ?? String(i);
    const kinds = [["device", "the device"], ["host", "the int8 model on the host"], ["float", "the float model"]].filter(([kind]) => found[kind]);
    const count = 1 + d3.max(kinds, ([kind]) => d3.max(found[kind], ([label, named]) => Math.max(label, named)));
    if (Math.max(count, found.classes.length) > MOST_CLASSES) {
      for (const [kind, title] of kinds) {
        const wrong = found[kind].map((cell, i) => ({ cell, i })).filter(({ cell }) => cell[0] !== cell[1])
          .sort((a, b) => b.cell[2] - a.cell[2]).slice(0, MOST_CLASSES);
        where.append("h3").text(`${title}: what is taken for another most often`);
        table(where, [{ name: "is", of: (c) => called(c.cell[0]) }, { name: "was named", of: (c) => called(c.cell[1]) },
          { name: "samples", of: (c) => c.cell[2], path: (c) => `${at}.${kind}.${c.i}.2`, bar: true }], wrong);
      }
      return;
    }
    const classes = d3.range(Math.max(count, found.classes.length));
    const side = where.append("div").attr("class", "beside");
    for (const [kind, title] of kinds) {
      const cells = new Map(found[kind].map(([label, named, n], i) => [`${label},${named}`, [n, i]]));
      const most = d3.max(found[kind], (cell) => cell[2]);
      const made = side.append("div").attr("class", "scroll").append("table").attr("class", "matrix");
      made.append("caption").text(title);
      const head = made.append("thead").append("tr");
      head.append("td");
      for (const j of classes) head.append("th").attr("scope", "col").text(called(j));
      for (const i of classes) {
        const line = made.append("tr");
        line.append("th").attr("scope", "row").text(called(i));
        for (const j of classes) {
          const [n, k] = cells.get(`${i},${j}`) ?? [0, -1];
          const cell = line.append("td").classed(i === j ? "right" : "wrong", n > 0).style("--share", `${(100 * n) / most}%`).text(n ? number(n) : "·");
          if (n) cell.attr("data-path", `${at}.${kind}.${k}.2`);
        }
      }
    }
  };

  // ---- the report of quantize ----

  const quantizationPage = (found, at) => {
    const health = found.health;
    if (health) cards(page, [
      { label: "the integers' answers", value: health.healthy ? "are the model's" : "are NOT the model's" },
      { label: "SQNR of the worst output", path: `${at}.health.sqnr_db`, value: health.sqnr_db, unit: "dB", digits: 1 },
      { label: "of what moves", path: `${at}.health.moving_db`, value: health.moving_db, unit: "dB", digits: 1 },
      { label: "accuracy, int8", path: `${at}.health.accuracy`, value: health.accuracy, times: 100, digits: 2, unit: "%" },
      { label: "accuracy, float", path: `${at}.health.float_accuracy`, value: health.float_accuracy, times: 100, digits: 2, unit: "%" },
      { label: "samples", path: `${at}.health.samples`, value: health.samples },
      { label: "weights and tables", path: `${at}.flash_bytes`, value: found.flash_bytes, unit: "bytes" },
      { label: "arena", path: `${at}.arena_bytes`, value: found.arena_bytes, unit: "bytes" },
    ]);
    if (health?.advice.length) section("To do", `tinyet quantize … ${health.advice.join(" ")}`);
    if (health) confusion(health.confusion, `${at}.health.confusion`);
    const list = (title, said, key, rows, columns) => {
      if (!rows.length) return;
      const path = (name) => (row) => `${at}.${key}.${rows.indexOf(row)}.${name}`;
      table(section(title, said), columns.map(([name, field, digits]) => (digits === undefined ? { name, of: (row) => row[field] ?? "" }
        : { name, of: (row) => row[field], path: path(field), digits })), rows);
    };
    list("Layers", "SQNR of each in the quantized model, and of the model's output when it alone is quantized.", "layers", found.layers,
      [["module", "module"], ["op", "op"], ["SQNR dB", "sqnr_db", 1], ["alone, at the output", "alone_sqnr_db", 1], ["source", "source"]]);
    list("Operators", "", "operators", found.operators,
      [["kind", "kind"], ["name", "name"], ["SQNR dB", "sqnr_db", 1], ["alone, at the output", "alone_sqnr_db", 1], ["source", "source"]]);
    list("What is seen there", "", "patterns", found.patterns, [["what", "text"], ["gain dB", "gain_db", 1], ["source", "source"]]);
    list("Free changes that were tried", "", "health.free", health ? health.free.map((one) => one) : [],
      [["equalize", "equalize"], ["bias", "correct_bias"], ["observer", "observer"], ["output dB", "output_sqnr_db", 1], ["gain dB", "gain_db", 1]]);
    list("Exceptions that were tried", "", "exceptions", found.exceptions,
      [["layer", "module"], ["operators", "operators"], ["as", "config"], ["output dB", "output_sqnr_db", 1], ["gain dB", "gain_db", 1],
        ["flash", "flash_bytes", 0], ["arena", "arena_bytes", 0], ["refused", "refused"]]);
  };

  const validationPage = (found, at) => {
    cards(page, [
      { label: "device = host reference", value: found.bit_exact ? "bit-exact" : "NO" },
      { label: found.synthetic ? "synthetic sample" : "samples", path: `${at}.samples`, value: found.samples },
      { label: "samples that differ", path: `${at}.mismatches`, value: found.mismatches },
      ...[["accuracy on the device", "accuracy"], ["of the host's int8", "host_accuracy"], ["of the float model", "float_accuracy"]].map(
        ([label, key]) => ({ label, path: `${at}.${key}`, value: found[key], times: 100, digits: 2, unit: "%" })),
      { label: "instructions", path: `${at}.instructions`, value: found.instructions },
      { label: "cycles", path: `${at}.cycles`, value: found.cycles },
      { label: "estimated", path: `${at}.estimate.milliseconds`, value: found.estimate?.milliseconds, unit: "ms", digits: 2 },
      { label: "arena", path: `${at}.arena_bytes`, value: found.arena_bytes, unit: "bytes" },
      { label: "flash", path: `${at}.flash_bytes`, value: found.flash_bytes, unit: "bytes" },
      { label: "RAM without stack", path: `${at}.ram_bytes`, value: found.ram_bytes, unit: "bytes" },
      { label: "stack, highest use", path: `${at}.stack_bytes`, value: found.stack_bytes, unit: "bytes" },
    ]);
    const where = section("Layers, measured", `Run on ${found.on}, ${found.board}: means over the samples. SQNR is against the float model.`);
    const path = (key) => (row) => `${at}.layers.${found.layers.indexOf(row)}.${key}`;
    const column = (name, key, digits) => ({ name, of: (row) => row[key], path: path(key), bar: digits === undefined, digits });
    const shown = (key) => found.layers.some((layer) => layer[key] !== null);
    table(where, [
      { name: "layer", of: (row) => row.name },
      { name: "op", of: (row) => row.op },
      column("MACs", "macs"),
      ...(shown("instructions") ? [column("instructions", "instructions")] : []),
      ...(shown("cycles") ? [column("cycles", "cycles")] : []),
      ...(found.estimate ? [{ name: "est. cycles", of: (row) => row.estimate?.cycles, path: path("estimate.cycles"), bar: true }] : []),
      ...(shown("sqnr_db") ? [column("SQNR dB", "sqnr_db", 1)] : []),
      { name: "kernel", of: (row) => row.kernel.replace("tinyet_", "") },
      { name: "line", of: (row) => row.line },
    ], found.layers);
    confusion(found.confusion, `${at}.confusion`);
  };

  const comparisonPage = (found, at) => {
    const change = (c) => c.after - c.before;
    const said = (c) => (change(c) === 0 ? "" : `${change(c) > 0 ? "+" : "−"}${number(Math.abs(change(c)), Number.isInteger(change(c)) ? 0 : 3)}` +
      (c.before ? ` (${d3.format("+.1%")(change(c) / Math.abs(c.before))})` : ""));
    const digits = (c) => (Number.isInteger(c.before) && Number.isInteger(c.after) ? 0 : 3);
    const columns = (path) => [
      { name: "A", of: (c) => c.before, path: path("before"), shown: (c) => number(c.before, digits(c)) },
      { name: "B", of: (c) => c.after, path: path("after"), shown: (c) => number(c.after, digits(c)) },
      { name: "change", of: change, digits: 0, shown: said },
      { name: "", of: (c) => (c.verdict === "same" ? "" : c.verdict) },
    ];
    section("Figures", `A: ${found.before.name}, ${found.before.what}. B: ${found.after.name}, ${found.after.what}.`).call((where) =>
      table(where, [{ name: "figure", of: (c) => c.figure }, ...columns((key) => (c) => `${at}.figures.${found.figures.indexOf(c)}.${key}`)],
        found.figures).classed("worse", (c) => c.verdict === "worse").classed("better", (c) => c.verdict === "better"));
    const rows = found.layers.flatMap((layer, i) => layer.figures.map((c, j) => ({ ...c, layer: layer.name, i, j }))).filter((c) => change(c) !== 0);
    const alone = found.layers.filter((layer) => layer.before_kernel === null || layer.after_kernel === null);
    if (rows.length) section("Layers that differ").call((where) =>
      table(where, [{ name: "layer", of: (c) => c.layer }, { name: "figure", of: (c) => c.figure },
        ...columns((key) => (c) => `${at}.layers.${c.i}.figures.${c.j}.${key}`)], rows)
        .classed("worse", (c) => c.verdict === "worse").classed("better", (c) => c.verdict === "better"));
    if (alone.length) section("Layers of one side").call((where) =>
      table(where, [{ name: "layer", of: (l) => l.name }, { name: "in", of: (l) => (l.before_kernel === null ? "B only" : "A only") },
        { name: "kernel", of: (l) => l.before_kernel ?? l.after_kernel }], alone));
  };

  page.html("");
  page.append("h1").text(report.title);
  for (const note of report.remarks) page.append("p").text(note);
  if (report.comparison) comparisonPage(report.comparison, "comparison");
  if (report.quantization) quantizationPage(report.quantization, "quantization");
  if (report.validation) validationPage(report.validation, "validation");
  if (report.analysis) analysisPage(report.analysis, "analysis");
})();
