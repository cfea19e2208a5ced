// SPDX-License-Identifier: Apache-2.0
// Draws a report from its JSON. Text of models gets into the page as text only. A number that is in the JSON has its path in
// data-path, so that a test, or a reader, can look it up.
"use strict";
(() => {
  // Lists of objects come as {columns, rows}.
  const unpacked = (_, value) => (value && value.columns && value.rows
    ? value.rows.map((row) => Object.fromEntries(value.columns.map((key, i) => [key, row[i]]))) : value);
  const report = JSON.parse(document.getElementById("report").textContent, unpacked);
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
    for (const { label, path, value, unit = "", digits = 0 } of items) {
      if (value === null || value === undefined) continue;
      const card = list.append("div");
      card.append("dt").text(label);
      const shown = typeof value === "number" ? number(value, digits) + (unit && " " + unit) : String(value);
      const cell = card.append("dd").text(shown);
      if (path && typeof value === "number") cell.attr("data-path", path).attr("data-digits", digits);
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
    const svg = where.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "group")
      .attr("aria-label", `the arena, ${analysis.arena_bytes} bytes`);
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
    const fits = (b) => x(b.last + 1) - x(b.first) > 7 * b.name.length + 8 && y(b.offset) - y(b.offset + b.bytes) > 14;
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

  const open = (analysis, at, layer) => {
    detail.html("");
    detail.append("h2").text(`${layer.index}  ${layer.name}`);
    detail.append("p").text(layer.source || layer.line);
    detail.append("p").text(`${layer.op} ${layer.shape.join("×")} (${layer.dtype}), ${layer.kernel}` +
      (layer.over.length ? `, over ${layer.over.join(" and ")} row by row` : ""));
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
    const svg = where.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", "the table below as points");
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
    const show = arena(analysis, at);
    layersOf(analysis, at, show);
    front(analysis, at);
    contributors(analysis, at);
    if (analysis.notes.length) {
      const list = section("Notes").append("ul");
      for (const note of analysis.notes) list.append("li").text(note);
    }
  };

  const percent = (value) => (value === null ? null : 100 * value);

  const validationPage = (found, at) => {
    cards(page, [
      { label: "device = host reference", value: found.bit_exact ? "bit-exact" : "NO" },
      { label: found.synthetic ? "synthetic sample" : "samples", path: `${at}.samples`, value: found.samples },
      { label: "samples that differ", path: `${at}.mismatches`, value: found.mismatches },
      { label: "accuracy on the device", value: found.accuracy === null ? null : `${percent(found.accuracy).toFixed(2)} %` },
      { label: "of the float model", value: found.float_accuracy === null ? null : `${percent(found.float_accuracy).toFixed(2)} %` },
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
  if (report.validation) validationPage(report.validation, "validation");
  if (report.analysis) analysisPage(report.analysis, "analysis");
})();
