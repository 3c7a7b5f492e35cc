// Opens the pages in headless Chromium, checks them and takes screenshots:
// node drive.mjs CHROMIUM DIRECTORY EXPLORER.html [REPORT.html]
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [executablePath, directory, explorer, report] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

// Layouts of all screenshots.
const LAYOUTS = [
  ["light", { width: 1100, height: 900 }, "light"],
  ["dark", { width: 1100, height: 900 }, "dark"],
  ["narrow", { width: 380, height: 800 }, "light"],
  ["narrow-dark", { width: 380, height: 800 }, "dark"],
];

// A page at `path`, of which every error of the console ends the run.
async function open(path, viewport, colorScheme) {
  const page = await browser.newPage({ viewport, colorScheme });
  const errors = [];
  page.on("console", message => {
    if (["error", "warning"].includes(message.type())) errors.push(message.text());
  });
  page.on("pageerror", error => errors.push(String(error)));
  page.on("requestfailed", request => errors.push(request.url()));
  await page.goto("file://" + path);
  return { page, errors };
}

// No figure is empty or outside the page, and the page has no sideways scroll.
async function figures(page, least) {
  const found = await page.evaluate(() => {
    const shown = [...document.querySelectorAll("svg, img")];
    return {
      figures: shown.map(figure => {
        const { width, height } = figure.getBoundingClientRect();
        const marks = figure.localName === "img"
          ? figure.naturalWidth
          : figure.querySelectorAll("path,circle,line,polyline,rect").length;
        return { width, height, marks, bad: /NaN|Infinity|undefined/.test(figure.innerHTML) };
      }),
      overflow: document.documentElement.scrollWidth - innerWidth,
    };
  });
  assert.ok(found.figures.length >= least, `${found.figures.length} figures`);
  for (const figure of found.figures) {
    assert.ok(figure.width > 100 && figure.height > 60 && figure.marks > 3, JSON.stringify(figure));
    assert.ok(!figure.bad, "a figure has a coordinate that is not a number");
  }
  assert.ok(found.overflow <= 0, `the page is ${found.overflow} pixels too wide`);
  return found.figures.length;
}

// State of the explorer that its sliders must change.
const state = page => page.evaluate(() => ({
  memory: document.querySelector("#memory").innerHTML,
  reads: document.querySelector("#reads").innerHTML,
  table: document.querySelector("#designs").innerText,
  command: document.querySelector("#command").textContent,
  title: document.querySelector("#title").textContent,
}));

const ready = (page, block) =>
  page.waitForFunction(bits => document.body.dataset.ready === bits, String(block), { timeout: 120_000 });

async function slide(page, id, value) {
  await page.evaluate(([id, value]) => {
    const slider = document.getElementById(id);
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }, [id, value]);
}

for (const [name, viewport, scheme] of LAYOUTS) {
  const { page, errors } = await open(explorer, viewport, scheme);
  await ready(page, 512);
  await figures(page, 2);
  await page.screenshot({ path: `${directory}/explorer-${name}.png`, fullPage: true });
  assert.deepEqual(errors, []);
  await page.close();
}

const { page, errors } = await open(explorer, LAYOUTS[0][1], "light");
await ready(page, 512);
assert.equal(await page.locator("#memory path.curve").count(), 7);
assert.equal(await page.locator("#designs tr").count(), 7);
let before = await state(page);
assert.equal(before.title, "tinyset");
assert.equal(before.command, "tamis build keys.txt -o keys.tamis --fpr 0.001 --kind tinyset");
// Each control, and the parts of the page that depend on it.
for (const [change, parts] of [
  [() => slide(page, "items", 6), ["memory", "table"]],
  [() => slide(page, "rate", 5), ["memory", "reads", "table", "command"]],
  [() => slide(page, "misses", 10), ["reads", "table"]],
  [() => page.check("#by-bits"), ["memory", "table", "command"]],
  [() => slide(page, "bits", 24), ["memory", "table", "command"]],
  [async () => { await page.check("#block-32"); await ready(page, 256); }, ["memory", "reads", "table", "command"]],
  [() => page.check("#speed"), ["title"]],
]) {
  await change();
  const after = await state(page);
  for (const part of parts) assert.notEqual(after[part], before[part], `${part}: ${change}`);
  before = after;
}
await page.screenshot({ path: `${directory}/explorer-changed.png`, fullPage: true });
// A new slider position answers at once: in one frame of 100 ms, median of 20.
await page.check("#by-rate");
const times = [];
for (let i = 0; i < 20; i += 1) {
  times.push(await page.evaluate(value => {
    const slider = document.getElementById("rate");
    slider.value = value;
    const start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    return performance.now() - start;
  }, 1 + i / 4));
}
times.sort((a, b) => a - b);
console.log(`explorer: 4 layouts, 7 controls; a slider answers in ${times[10].toFixed(0)} ms (median), ${times[19].toFixed(0)} ms (longest)`);
assert.deepEqual(errors, []);
await page.close();

if (report) {
  for (const [name, viewport, scheme] of LAYOUTS) {
    const { page, errors } = await open(report, viewport, scheme);
    const count = await figures(page, 1);
    await page.screenshot({ path: `${directory}/report-${name}.png`, fullPage: true });
    assert.deepEqual(errors, []);
    await page.close();
    if (name === "light") console.log(`report: 4 layouts, ${count} figures`);
  }
}
await browser.close();
