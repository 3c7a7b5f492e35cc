// Opens the pages in headless Chromium, checks them and takes screenshots:
// node drive.mjs CHROMIUM DIRECTORY EXPLORER.html REPORT.html
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
  // A screenshot of the whole report takes half a minute on a busy machine.
  page.setDefaultTimeout(300_000);
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

// State of the planner that its controls must change.
const state = page => page.evaluate(() => Object.fromEntries(
  ["memory", "reads", "designs", "command", "title"].map(name =>
    [name, document.getElementById("plan-" + name).innerHTML])));

// The curves are complete for blocks of `bits`.
const ready = (page, bits) => page.waitForFunction(
  bits => document.getElementById("planner").dataset.ready === bits, String(bits));

async function slide(page, id, value) {
  await page.evaluate(([id, value]) => {
    const slider = document.getElementById("plan-" + id);
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }, [id, value]);
}

// Each layout of a page, with at least `least` figures.
async function layouts(name, path, least) {
  let count;
  for (const [layout, viewport, scheme] of LAYOUTS) {
    const { page, errors } = await open(path, viewport, scheme);
    await ready(page, 512);
    count = await figures(page, least);
    await page.screenshot({ path: `${directory}/${name}-${layout}.png`, fullPage: true });
    assert.deepEqual(errors, []);
    await page.close();
  }
  console.log(`${name}: ${LAYOUTS.length} layouts, ${count} figures`);
}

// Each control of the planner changes the parts that depend on it.
async function controls(name, path) {
  const { page, errors } = await open(path, LAYOUTS[0][1], "light");
  await ready(page, 512);
  assert.equal(await page.locator("#plan-memory path.curve").count(), 7);
  assert.equal(await page.locator("#plan-designs tr").count(), 7);
  let before = await state(page);
  assert.equal(before.title, "tinyset");
  assert.equal(before.command, "tamis build keys.txt -o keys.tamis --fpr 0.001 --kind tinyset");
  const changes = [
    [() => slide(page, "items", 6), ["memory", "designs"]],
    [() => slide(page, "rate", 5), ["memory", "reads", "designs", "command"]],
    [() => slide(page, "misses", 10), ["reads", "designs"]],
    [() => page.check("#plan-by-bits"), ["memory", "designs", "command"]],
    [() => slide(page, "bits", 24), ["memory", "designs", "command"]],
    [async () => { await page.check("#plan-block-32"); await ready(page, 256); }, ["memory", "reads", "designs", "command"]],
    [() => page.check("#plan-speed"), ["title"]],
  ];
  for (const [change, parts] of changes) {
    await change();
    const after = await state(page);
    for (const part of parts) assert.notEqual(after[part], before[part], `${part}: ${change}`);
    before = after;
  }
  await page.click("#plan-copy");
  await page.waitForFunction(() => document.getElementById("plan-copy").textContent !== "Copy");
  await page.screenshot({ path: `${directory}/${name}-changed.png`, fullPage: name === "explorer" });
  await page.check("#plan-by-rate");
  const times = [];
  for (let i = 0; i < 20; i += 1) {
    times.push(await page.evaluate(value => {
      const slider = document.getElementById("plan-rate");
      slider.value = value;
      const start = performance.now();
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      return performance.now() - start;
    }, 1 + i / 4));
  }
  times.sort((a, b) => a - b);
  console.log(`${name}: ${changes.length} controls; a slider answers in ${times[10].toFixed(0)} ms (median), ${times[19].toFixed(0)} ms (longest)`);
  assert.deepEqual(errors, []);
  await page.close();
}

// Printed on A4: a file to look at.
async function print(name, path) {
  const { page, errors } = await open(path, LAYOUTS[0][1], "dark");
  await ready(page, 512);
  await page.pdf({ path: `${directory}/${name}.pdf`, format: "A4" });
  assert.deepEqual(errors, []);
  await page.close();
}

for (const [name, path, least] of [["explorer", explorer, 2], ["report", report, 30]]) {
  await layouts(name, path, least);
  await controls(name, path);
  await print(name, path);
}
await browser.close();
