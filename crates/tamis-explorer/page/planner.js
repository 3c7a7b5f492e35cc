"use strict";
const KINDS = [
  ["blocked", "#0072b2"], ["split", "#d55e00"], ["bloom", "#888888"],
  ["tinyset", "#009e73"], ["tinyset, removable", "#8fbf3f"],
  ["tinyset, 2 levels", "#cc79a7"], ["balanced", "#e69f00"],
];
const LIMITS = [["any", "any filter"], ["growing", "growing filter"], ["line", "one block, coded"]];
// Rates of the curves, 10^-x.
const RATES = Array.from({ length: 27 }, (_, i) => 0.7 + i * 0.25);
const CHART = { left: 56, top: 10, right: 474, bottom: 320 };
const planner = document.getElementById("planner");
const byId = id => document.getElementById("plan-" + id);

function engine(exports) {
  const answer = length => JSON.parse(new TextDecoder().decode(
    new Uint8Array(exports.memory.buffer, exports.output(), length)));
  return {
    plan: (...task) => answer(exports.plan(...task)),
    point: (...place) => answer(exports.point(...place)),
    limits: (...place) => answer(exports.limits(...place)),
  };
}

// Without an exponent, from 1e-6 on.
const digits = (x, n) => {
  const rounded = Number(x.toPrecision(n));
  return rounded >= 1e-6 ? rounded.toFixed(12).replace(/\.?0+$/, "") : String(rounded);
};
function rateText(x) {
  const percent = 100 * x;
  return (percent >= 1e-6 ? digits(percent, 3) : percent.toExponential(1)) + " %";
}
function bytesText(x) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (Math.round(x) >= 1024 && i < units.length - 1) { x /= 1024; i += 1; }
  return digits(x, 4) + " " + units[i];
}
function countText(x) {
  for (const [size, unit] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]]) {
    if (x >= size) return digits(x / size, 3) + " " + unit;
  }
  return String(x);
}

function task() {
  // Three digits, so that the command is short and its result the same.
  const items = Number((10 ** Number(byId("items").value)).toPrecision(3));
  const rate = Number((10 ** -Number(byId("rate").value)).toPrecision(3));
  const bits = Number(byId("bits").value);
  const byRate = byId("by-rate").checked;
  return {
    items, rate, bits, byRate, size: byRate ? rate : bits,
    misses: Number(byId("misses").value) / 100,
    block: byId("block-64").checked ? 512 : 256,
    speed: byId("speed").checked,
  };
}

let theory;
// Points of all curves for a size of blocks; they depend on nothing else.
const curves = {};
let filling = 0;

function fill(block) {
  const mine = ++filling;
  const work = curves[block] ??= { kinds: KINDS.map(() => []), limits: [], next: 0 };
  const step = () => {
    if (mine !== filling) return;
    const until = performance.now() + 30;
    while (work.next < RATES.length && performance.now() < until) {
      const x = RATES[work.next];
      KINDS.forEach((_, kind) => {
        const point = theory.point(kind, block, 10 ** -x);
        if (!point.error) work.kinds[kind].push({ x, ...point });
      });
      const limits = theory.limits(block, 10 ** -x);
      if (!limits.error) work.limits.push({ x, ...limits });
      work.next += 1;
    }
    draw();
    if (work.next < RATES.length) setTimeout(step, 0);
    else planner.dataset.ready = block;
  };
  delete planner.dataset.ready;
  step();
}

const mapX = x => CHART.left + (x - RATES[0]) / (RATES.at(-1) - RATES[0]) * (CHART.right - CHART.left);
const mapY = (y, [low, high]) => CHART.bottom - (y - low) / (high - low) * (CHART.bottom - CHART.top);
const path = points => points.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");

function chart(id, range, ticks, label, series, limits, dots, here) {
  let svg = "";
  for (let x = 1; x <= 7; x += 1) {
    svg += `<path class="grid" d="M${mapX(x)} ${CHART.top}V${CHART.bottom}"/>` +
      `<text x="${mapX(x)}" y="${CHART.bottom + 16}" text-anchor="middle">${digits(100 * 10 ** -x, 1)}</text>`;
  }
  for (const y of ticks) {
    const at = mapY(y, range);
    svg += `<path class="grid" d="M${CHART.left} ${at}H${CHART.right}"/>` +
      `<text x="${CHART.left - 5}" y="${at + 4}" text-anchor="end">${label(y)}</text>`;
  }
  svg += `<text class="soft" x="${(CHART.left + CHART.right) / 2}" y="${CHART.bottom + 34}" text-anchor="middle">false-positive rate in %</text>`;
  svg += `<clipPath id="plan-clip-${id}"><rect x="${CHART.left}" y="${CHART.top}" width="${CHART.right - CHART.left}" height="${CHART.bottom - CHART.top}"/></clipPath><g clip-path="url(#plan-clip-${id})">`;
  for (const points of limits) svg += `<path class="limit" d="${path(points.map(([x, y]) => [mapX(x), mapY(y, range)]))}"/>`;
  series.forEach((points, i) => {
    svg += `<path class="curve" fill="none" stroke="${KINDS[i][1]}" stroke-width="2" d="${path(points.map(([x, y]) => [mapX(x), mapY(y, range)]))}"/>`;
  });
  if (here !== null) svg += `<path class="here" d="M${mapX(here)} ${CHART.top}V${CHART.bottom}"/>`;
  for (const [x, y, colour, best] of dots) {
    svg += `<circle cx="${mapX(x).toFixed(1)}" cy="${mapY(y, range).toFixed(1)}" r="${best ? 7 : 4}" fill="${colour}" stroke="var(--page)"/>`;
  }
  byId(id).innerHTML = svg + "</g>";
}

let current;
function draw() {
  const { wanted, plan } = current;
  const { kinds, limits } = curves[wanted.block] ?? { kinds: [], limits: [] };
  const designs = plan.designs ?? [];
  const colour = title => (KINDS.find(kind => kind[0] === title) ?? ["", "gray"])[1];
  const dots = value => designs.map(one => [-Math.log10(one.fpr), value(one), colour(one.title), one.title === plan.title]);
  const here = wanted.byRate ? -Math.log10(wanted.rate) : null;
  const bits = 8 / wanted.items;
  const most = 48 / bits;
  // Four to eight ticks: a power of two is short in binary units.
  const step = 2 ** Math.floor(Math.log2(most / 4));
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step * bits);
  chart("memory", [0, 48], ticks, y => bytesText(y / bits),
    kinds.map(points => points.map(p => [p.x, p.bits_per_key])),
    LIMITS.map(([name]) => limits.map(p => [p.x, p[name]])),
    dots(one => one.bits_per_key), here);
  const mean = p => wanted.misses * p.reads_miss + (1 - wanted.misses) * p.reads_hit;
  chart("reads", [0.9, 4], [1, 1.5, 2, 2.5, 3, 3.5, 4], y => y.toFixed(1),
    kinds.map(points => points.map(p => [p.x, mean(p)])), [], dots(one => one.reads), here);
}

function update() {
  const wanted = task();
  const plan = theory.plan(wanted.items, wanted.byRate ? 1 : 0, wanted.size, wanted.misses, wanted.block, wanted.speed ? 1 : 0);
  current = { wanted, plan };
  byId("items-value").textContent = countText(wanted.items);
  byId("rate-value").textContent = rateText(wanted.rate);
  byId("bits-value").textContent = wanted.bits;
  byId("misses-value").textContent = Math.round(100 * wanted.misses) + " %";
  byId("rate").disabled = !wanted.byRate;
  byId("bits").disabled = wanted.byRate;
  const size = wanted.byRate ? `--fpr ${wanted.rate}` : `--bits-per-key ${wanted.bits}`;
  const rows = byId("designs");
  rows.replaceChildren();
  byId("notes").replaceChildren();
  if (plan.error) {
    byId("title").textContent = "No filter";
    byId("summary").textContent = "";
    byId("reason").textContent = plan.error;
    byId("command").textContent = "";
  } else {
    const best = plan.designs.find(one => one.title === plan.title);
    byId("title").textContent = plan.title;
    byId("summary").textContent = `${bytesText(best.bytes)}, ${best.bits_per_key.toFixed(2)} bits per key, ${rateText(best.fpr)} false positives, ${best.reads.toFixed(3)} blocks per lookup`;
    byId("reason").textContent = plan.reason;
    byId("command").textContent = `tamis build keys.txt -o keys.tamis ${size} ${plan.options}`;
    for (const one of plan.designs) {
      const row = rows.insertRow();
      if (one.title === plan.title) row.className = "best";
      for (const text of [one.title, one.bits_per_key.toFixed(3), bytesText(one.bytes), rateText(one.fpr), one.reads_hit.toFixed(2), one.reads_miss.toFixed(4), one.reads.toFixed(4), one.mergeable ? "yes" : "no"]) {
        row.insertCell().textContent = text;
      }
    }
    for (const note of plan.notes) {
      const item = document.createElement("li");
      item.textContent = "not " + note;
      byId("notes").append(item);
    }
  }
  if ((curves[wanted.block]?.next ?? 0) < RATES.length) fill(wanted.block);
  else { planner.dataset.ready = wanted.block; draw(); }
}

byId("key").innerHTML = KINDS.map(([name, colour]) => `<span><i style="background:${colour}"></i>${name}</span>`).join("") +
  `<span><i style="border-top:2px dashed var(--limit);height:0"></i>limits: any filter, growing filter, one block</span>`;
byId("controls").addEventListener("input", update);
byId("copy").addEventListener("click", async () => {
  const command = byId("command");
  try {
    await navigator.clipboard.writeText(command.textContent);
    byId("copy").textContent = "Copied";
  } catch {
    // Without permission the reader copies the selection.
    getSelection().selectAllChildren(command);
    byId("copy").textContent = "Selected";
  }
  setTimeout(() => { byId("copy").textContent = "Copy"; }, 1200);
});

const MODULE = "MODULE_IN_BASE64";
WebAssembly.instantiate(Uint8Array.from(atob(MODULE), c => c.charCodeAt(0)), {})
  .then(({ instance }) => { theory = engine(instance.exports); update(); })
  .catch(error => {
    byId("title").textContent = "No answer";
    byId("reason").textContent = `This browser runs no WebAssembly: ${error.message}`;
  });
