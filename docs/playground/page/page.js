// The page: its state stands in the address, update() computes what it asks for, draw() shows it.
import { about, isLoaded, load, open, run, tokensOf } from "./model.js"
import { cardOf, make, measured, openMeasured, round } from "./measured.js"

const EXPLAINED = {
  weights: "Weights: how much each token (row) attends to each token (column). A vertical line is a"
    + " token to which all others attend; a diagonal, attention to neighbours.",
  norms: "Norms: each weight times the length of the vector that it carries, as a share of the row."
    + " Much attention to a short vector contributes little.",
  effects: "Effects: how the answer changes if this head alone is disabled.",
}
const MATTERS = 0.01 // a head that changes a probability by less does not matter
const WIDEST = 0.5 // the change of a probability with the darkest colour, on whatever sentence
const TOKENS_AT_ONCE = 200 // in a run of a sweep, so that another change need not wait long
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }
const $ = (id) => document.getElementById(id)
const form = document.forms[0]
const map = $("map").firstChild
const state = { text: "", pair: "", view: "weights", ablation: "uniform", measure: "", head: null }
state.off = new Set() // disabled heads, counted from 0 through all layers
const cursor = { row: 0, column: 0 } // of the large map
let first // the first example, as it comes with the page
let input, whole, now // tokens; answer with all heads; outputs as the state says
let effects = [], tried // change of the answer by head; the text and the disabled heads of this
let busy = false, again = false, stopped = false, failed = "", ignored = "", isStep = false
let suggested = 0 // the head that is shown until one is chosen
let colours, waiting // of maps; for the end of typing

const count = () => about.layers * about.heads
const place = (head) => [Math.floor(head / about.heads) + 1, (head % about.heads) + 1]
const nameOf = (head) => place(head).join(".") // in the address
const title = (head) => `(${place(head).join(", ")})`
const headsOf = (layer) => Array.from({ length: about.heads }, (_, at) => layer * about.heads + at)
const largest = (list) =>
  list.reduce((best, one, at) => (Math.abs(one) > Math.abs(list[best]) ? at : best), 0)
const answered = () => largest(whole) // the label, with all heads
const shownHead = () => state.head ?? suggested // until one is chosen
const isTried = () => effects.length === count()
const mapWay = () => (state.view === "norms" ? "norms" : "weights")

function valuesOf(head, way = mapWay()) {
  const size = input.ids.length ** 2
  return now[way].slice(head * size, (head + 1) * size)
}

// What the state asks for. -------------------------------------------------

function judged(logits) { // probabilities
  if (!about.labels.length) return []
  const powers = Array.from(logits, (one) => Math.exp(one))
  return powers.map((one) => one / powers.reduce((a, b) => a + b))
}

async function outputs(read, off, wanted) {
  const found = await run(read, [off], state.ablation, wanted)
  return { ...found, answer: judged(found.answer) }
}

// Everything anew after a change; what changes meanwhile is taken up when the present turn is over.
async function update() {
  again = true
  if (busy) return
  busy = true
  while (again) {
    again = false
    try { await turn() } catch (error) { say(error.message, true) }
    write()
  }
  busy = false
}

async function turn() {
  document.documentElement.dataset.view = state.view // an empty text is still to be filled in
  if (state.view === "measured") {
    const wanted = state.measure
    if (!await openMeasured(state, form.measure)) ignored += ` measure=${wanted}`
    suggested = largest(measured().values)
    say()
    return draw()
  }
  const [text, pair] = [state.text.trim() && state.text, state.pair.trim() && state.pair]
  if (!text && pair) throw new Error("The first sentence is empty; write it there.")
  if (!text) throw new Error("Write a sentence to begin with.")
  const key = JSON.stringify([text, pair]), wanted = `${key} ${[...state.off]} ${state.ablation}`
  if (wanted !== tried) [tried, effects, stopped] = [wanted, [], false]
  if (key !== input?.key && text === about.examples[0] && !pair) begin(key, wanted)
  const isNew = key !== input?.key
  if (isNew && !isLoaded()) {
    throw new Error(failed || "This is read as soon as the model is loaded.")
  }
  if (isLoaded() && now?.wanted !== wanted) {
    const next = isNew ? { key, ...tokensOf(text, pair) } : input
    const found = await outputs(next, state.off, ["weights", "norms", "answer"])
    let all = isNew ? found.answer : whole
    if (isNew && state.off.size) ({ answer: all } = await outputs(next, new Set(), ["answer"]))
    ;[input, whole, now] = [next, all, { ...found, wanted }] // together, as draw() wants them
  }
  if (isTried()) suggested = largest(effects)
  say(input.length > input.ids.length && `Of ${input.length} tokens ${input.ids.length} are read:`
    + ` the ${pair ? "longer sentence" : "sentence"} is cut at its end.`)
  draw()
  if (isLoaded() && about.labels.length && !isTried() && !stopped) await sweep()
}

// The first example, before the model is there: with all heads, and without each of them.
function begin(key, wanted) {
  whole = judged(first.answer)
  input = { ...first, key, types: first.ids.map(() => 0), length: first.ids.length }
  const isAll = !state.off.size
  now = { ...first, answer: whole, wanted: isAll && wanted }
  if (!isAll || state.ablation !== "uniform") return
  effects = first.without.map((one) => judged(one)[answered()] - whole[answered()])
}

// What disabling each head does to the answer, with those of the state disabled as well.
async function sweep() {
  const own = effects, most = Math.max(1, Math.floor(TOKENS_AT_ONCE / input.ids.length))
  while (!isTried()) {
    const heads = [...Array(count()).keys()].slice(own.length, own.length + most)
    const sets = heads.map((head) => toggled([head])), labels = about.labels.length
    const { answer } = await run(input, sets, state.ablation, ["answer"])
    for (const at of sets.keys()) {
      const one = judged(answer.slice(at * labels, (at + 1) * labels))
      own.push(one[answered()] - now.answer[answered()])
    }
    if (again) return
    drawVerdict()
  }
  suggested = largest(effects)
  draw()
}

// At the cell of the head's map with most weight between different tokens, neither of them the
// first or the last: others say little.
function aim() {
  const size = input.ids.length
  const best = largest(valuesOf(shownHead(), "weights").map((one, at) => {
    const row = Math.floor(at / size), column = at % size
    return row && column && row !== column && Math.max(row, column) < size - 1 ? one : 0
  }))
  const of = `${shownHead()} ${input.key}`
  Object.assign(cursor, { of, row: Math.floor(best / size), column: best % size })
}

function toggled(heads) {
  const all = new Set(heads)
  return all.isSubsetOf(state.off) ? state.off.difference(all) : state.off.union(all)
}

// The state in the address, of which what is not understood is left out, and said.
function write() {
  const { text, pair, view, ablation } = state, off = [...state.off].map(nameOf).join(" ")
  const head = state.head === null ? "" : nameOf(state.head)
  const kept = { text, pair, view, ablation, head, off }
  if (view === "measured") kept.measure = state.measure
  const hash = `#${new URLSearchParams(Object.entries(kept).filter(([, value]) => value))}`
  history[isStep && hash !== location.hash ? "pushState" : "replaceState"](null, "", hash)
  isStep = false
}

function fromAddress() {
  const names = Array.from({ length: count() }, (_, head) => nameOf(head))
  const numbers = (value) => value.split(" ").map((name) => names.indexOf(name))
  const found = { off: new Set(), head: null, pair: "", view: "weights" }
  const isKnown = {
    text: () => true,
    pair: () => !about.single,
    measure: () => about.measured,
    view: (value) => [...form.view].some((one) => one.value === value && !one.disabled),
    ablation: (value) => ["uniform", "zero"].includes(value),
    off: (value) => !numbers(value).includes(-1),
    head: (value) => names.includes(value),
  }
  let unknown = ""
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (Object.hasOwn(isKnown, name) && isKnown[name](value)) found[name] = value
    else unknown += ` ${name}=${value}`.slice(0, 40)
  }
  if (found.head) found.head = names.indexOf(found.head)
  if (found.off.length) found.off = new Set(numbers(found.off))
  return [found, unknown]
}

// Pictures. ----------------------------------------------------------------

const amount = (value) => `${(value * 100).toFixed(1)} %`
const points = (value, digits = 1) => round(value * 100, digits)

// Scales say where from -1 or 0 to 1 a value lies; by the root, so that small ones are seen, too.
const MAPS = { along: Math.sqrt, ticks: [0, 0.05, 0.25, 0.5, 1], tick: String }

// What colours the heads instead of their maps.
function numbers() {
  if (state.view === "measured") return measured()
  if (state.view !== "effects") return undefined
  const condition = state.off.size ? "if the head is switched" : "without the head"
  return {
    values: Array.from({ length: count() }, (_, at) => effects[at] ?? null),
    text: (head) => (head in effects ? points(effects[head]) : "not tried yet"),
    short: (value) => points(value, 0),
    unit: `change of “${about.labels[answered()]}” ${condition}, in points`,
    along: (one) => Math.sign(one) * Math.sqrt(Math.min(1, Math.abs(one) / WIDEST)),
    ticks: [-0.5, -0.1, 0, 0.1, 0.5],
    tick: (value) => points(value, 0),
    said: [EXPLAINED.effects, state.off.size ? " Of a hatched head: how it changes if the head is"
      + " enabled. All others stay as they are." : ""],
  }
}

// Draws a scale; returns a function that gives the colour of a value, as style.css has it.
function legend(id, { unit, along, ticks, tick }) {
  const signed = ticks[0] < 0, at = (value) => (signed ? (along(value) + 1) / 2 : along(value))
  const bar = make("i", { className: signed ? "signed" : "" })
  const marks = ticks.map((one) => make("span", { style: `left:${at(one) * 100}%` }, tick(one)))
  $(id).replaceChildren(make("span", { className: "soft" }, unit), bar, make("div", {}, ...marks))
  const pen = make("canvas", { width: 256, height: 1 }).getContext("2d")
  const stops = getComputedStyle(bar).backgroundImage.match(/rgb\([^)]*\)/g)
  pen.fillStyle = pen.createLinearGradient(0, 0, 256, 0)
  stops.forEach((stop, place) => pen.fillStyle.addColorStop(place / (stops.length - 1), stop))
  pen.fillRect(0, 0, 256, 1)
  const { data } = pen.getImageData(0, 0, 256, 1)
  return (value) => data.subarray(Math.round(at(value) * 255) * 4).subarray(0, 4)
}

function draw() {
  const isMeasured = state.view === "measured", shown = numbers(), way = mapWay()
  $("play").hidden = false
  const scale = { ...MAPS, unit: way.slice(0, -1) }
  colours = legend("map-legend", scale)
  const colourOf = legend("legend", shown ?? scale)
  $("explained").replaceChildren(...(shown?.said ?? [EXPLAINED[state.view]]))
  $("restore").disabled = !state.off.size
  for (const button of $("grid").querySelectorAll(".head")) drawHead(button, shown, colourOf)
  $("grid").querySelectorAll(".layer").forEach((one, layer) => {
    one.disabled = isMeasured
    one.ariaPressed = headsOf(layer).every((head) => state.off.has(head))
  })
  const off = state.off.has(shownHead()), rest = off ? ": disabled" : `: its ${way}`
  $("head-title").textContent = `Head ${title(shownHead())}${isMeasured ? "" : rest}`
  $("switch").textContent = off ? "Enable it" : "Disable it"
  if (isMeasured) return $("card").replaceChildren(...cardOf(shownHead()))
  drawAnswer()
  drawVerdict()
  drawMap()
}

function drawHead(button, shown, colourOf) {
  const [canvas, text] = button.children, head = Number(button.dataset.head)
  const off = state.view !== "measured" && state.off.has(head), value = shown?.values[head] ?? null
  const [red, green, blue] = value === null ? [] : colourOf(value)
  const isLight = red * 0.3 + green * 0.6 + blue * 0.1 > 130
  button.style.background = value === null ? "" : `rgb(${red} ${green} ${blue})`
  button.style.color = isLight ? "#111" : "#fff"
  text.textContent = value === null ? "" : shown.short(value)
  canvas.hidden = Boolean(shown)
  if (!shown) paint(canvas, head, Math.ceil(input.ids.length / Math.max(8, button.clientWidth)))
  button.classList.toggle("off", off)
  button.classList.toggle("number", Boolean(shown))
  button.title = `head ${title(head)}${off ? ", disabled" : ""}`
  if (shown) button.title += `: ${shown.text(head)}, ${shown.unit}`
  button.tabIndex = head === shownHead() ? 0 : -1
  Object.assign(button, { ariaLabel: button.title, ariaCurrent: head === shownHead() })
}

// A pixel shows the largest of a block of so many tokens by so many: where the browser shrinks a
// picture itself, single cells vanish.
function paint(canvas, head, block = 1) {
  const size = input.ids.length, side = Math.ceil(size / block)
  const picture = new ImageData(side, side), most = new Float32Array(side * side)
  valuesOf(head).forEach((value, at) => {
    const pixel = Math.floor(at / size / block) * side + Math.floor((at % size) / block)
    most[pixel] = Math.max(most[pixel], value)
  })
  most.forEach((value, pixel) => picture.data.set(colours(value), pixel * 4))
  Object.assign(canvas, { width: side, height: side }).getContext("2d").putImageData(picture, 0, 0)
}

function drawAnswer() {
  const off = state.off.size, unknown = input.ids.filter((one) => one === about.unknown).length
  const rows = now.answer.map((value, at) => make("label", {}, make("span", {}, about.labels[at]),
    make("progress", { value }), `${off ? `${points(whole[at])} → ` : ""}${amount(value)}`))
  const none = "This model has no labels, so there is no answer to change."
  const odd = `The model does not know ${unknown} of the ${input.tokens.length} tokens`
    + ` (${about.special[2]}), so this answer means little.`
  if (!rows.length) rows.push(make("p", { className: "soft" }, none))
  if (unknown) rows.push(make("strong", {}, odd))
  $("said").replaceChildren(...rows)
  const later = isLoaded() ? "" : ", as soon as the model is loaded"
  $("disabled").textContent = off ? `${off} of ${count()} heads disabled${later}` : ""
}

function drawVerdict() {
  $("answer").ariaBusy = !isTried() && !stopped // a screen reader says the end, not every step
  $("verdict").replaceChildren(...verdict())
}

// Which head matters most: tried in the background, with a button that stops it.
function verdict() {
  if (!about.labels.length || !(isTried() || isLoaded())) return []
  const button = (text, onclick) => make("button", { type: "button", onclick }, text)
  if (!isTried()) {
    const bar = make("progress", { value: effects.length, max: count(), ariaLabel: "Heads tried" })
    const go = button(stopped ? "Go on" : "Stop", () => { stopped = !stopped; update() })
    return [bar, ` ${effects.length} of ${count()} heads tried `, go]
  }
  const best = largest(effects), is = now.answer[answered()], then = is + effects[best]
  const many = effects.filter((one) => Math.abs(one) >= MATTERS).length
  if (!many) {
    const most = points(Math.abs(effects[best]))
    return [`No single head matters here: the most that one changes is ${most} points.`]
  }
  const off = state.off.has(best), turns = now.answer.length === 2 && is > 0.5 !== then > 0.5
  const shown = button(`head ${title(best)}`, () => change({ head: best }))
  shown.className = "link"
  return [
    off ? "With " : "Without ", shown, state.off.size && !off ? " as well, " : ", ",
    `${about.labels[answered()]} ${then > is ? "rises" : "falls"} from ${amount(is)} to `,
    `${amount(then)}${turns ? ": the answer turns" : ""}. `,
    `${many} of ${count()} heads change it by a point or more. `,
    button(off ? "Enable it" : "Disable it", () => change({ head: best, off: toggled([best]) })),
  ]
}

// The map of one head, its tokens on two sides, and a frame around the cell under the cursor.
function drawMap() {
  const { tokens } = input, size = tokens.length, head = shownHead()
  if (cursor.of !== `${head} ${input.key}`) aim()
  for (const axis of ["row", "column"]) {
    cursor[axis] = Math.max(0, Math.min(size - 1, Math.floor(cursor[axis])))
  }
  const widest = Math.min(12, Math.max(...tokens.map((one) => one.length)))
  const { row, column } = cursor
  $("map").style = `--size:${size}; --widest:${widest}; --row:${row}; --column:${column}`
  paint(map, head)
  const step = Math.ceil((12 * size) / map.clientWidth) // tokens for which there is room
  const labels = ["row", "column"].flatMap((axis) => tokens.map((token, at) => {
    const isChosen = at === cursor[axis], className = isChosen ? `${axis} chosen` : axis
    const hidden = !isChosen && at % step > 0
    return make("span", { className, hidden, style: `--at:${at}` }, token)
  }))
  $("map").replaceChildren(map, make("i"), ...labels)
  $("map").ariaLabel = `Attention map of head ${title(head)}; arrow keys move from cell to cell`
  const value = (way) => valuesOf(head, way)[row * size + column].toFixed(4)
  $("readout").textContent = `From “${tokens[row]}” (row) to “${tokens[column]}” (column):`
    + ` weight ${value("weights")}, norm ${value("norms")}`
}

// What people do. -----------------------------------------------------------

function say(text, wrong = false) {
  const unknown = ignored && `Ignored in the address:${ignored}. `
  $("message").textContent = wrong ? text : unknown + (text || "")
  for (const one of [$("message"), ...document.querySelectorAll(".play")]) {
    one.classList.toggle("wrong", wrong)
  }
}

function change(changes, unknown = "") {
  isStep ||= "view" in changes && changes.view !== state.view
  ignored = unknown
  Object.assign(state, changes)
  for (const [name, value] of Object.entries(changes)) {
    if (form.elements[name]) form.elements[name].value = value
  }
  update()
}

function point(row, column) {
  Object.assign(cursor, { row, column })
  if (now && state.view !== "measured") drawMap()
}

function build() {
  const { layers, heads } = about
  form.text.value = state.text = [about.examples[0]].flat()[0]
  const [begins, ends, unknown] = about.special
  $("trained").textContent = about.trained ?? ""
  $("about").textContent = `The model: ${about.name}, ${layers} layers of ${heads} heads. `
    + `${begins} starts every input (BERT’s [CLS]), and a classifier reads its answer there; `
    + `${ends} ends a sentence ([SEP]). “▁” marks the beginning of a word, or “##” the rest of one;`
    + ` ${unknown} is what the model does not know. ${about.typical ?? ""}`
  $("home").hidden = !about.home
  $("pairs").hidden = Boolean(about.single)
  const lacking = { effects: !about.labels.length, measured: !about.measured }
  for (const one of form.view) one.parentElement.hidden = one.disabled = Boolean(lacking[one.value])
  const theme = about.home && localStorage.getItem("theme") // as the site's own switch says
  if (["light", "dark"].includes(theme)) document.documentElement.style.colorScheme = theme

  const press = (head) => {
    const isShown = head === shownHead() && state.view !== "measured"
    change(isShown ? { head, off: toggled([head]) } : { head })
  }
  const button = (parts, ...inside) => make("button", { type: "button", ...parts }, ...inside)
  $("grid").style.setProperty("--heads", heads)
  $("grid").append(make("span"), ...headsOf(0).map((head) => make("span", {}, head + 1)))
  for (let layer = 0; layer < layers; layer += 1) {
    const own = headsOf(layer), title = `layer ${layer + 1}: disable all its heads`
    const onclick = () => change({ off: toggled(own) })
    $("grid").append(button({ className: "layer", title, ariaLabel: title, onclick }, layer + 1))
    for (const head of own) {
      const parts = [make("canvas", { ariaHidden: "true" }), make("span")]
      const one = button({ className: "head", onclick: () => press(head) }, ...parts)
      one.dataset.head = head
      $("grid").append(one)
    }
  }
  $("grid").onkeydown = (event) => {
    const [down, right] = ARROWS[event.key] ?? [], head = Number(event.target.dataset.head)
    if (down === undefined || !(head >= 0)) return
    document.querySelector(`[data-head="${head + down * heads + right}"]`)?.focus()
    event.preventDefault()
  }
  $("map").onkeydown = (event) => {
    const [down, right] = ARROWS[event.key] ?? []
    if (down === undefined) return
    point(cursor.row + down, cursor.column + right)
    event.preventDefault()
  }
  map.onpointermove = map.onpointerdown = ({ offsetX, offsetY }) => {
    const cell = map.clientWidth / input.ids.length
    point(offsetY / cell, offsetX / cell)
  }
  for (const [text, pair = ""] of about.examples.map((one) => [one].flat())) {
    const onclick = () => {
      isStep = true
      change({ text, pair, off: new Set(), head: null })
    }
    $("examples").append(button({ onclick }, pair ? `${text} + ${pair}` : text))
  }
  form.oninput = ({ target }) => {
    clearTimeout(waiting)
    const wait = target.type === "textarea" ? 150 : 0
    waiting = setTimeout(() => change(Object.fromEntries(new FormData(form))), wait)
  }
  $("restore").onclick = () => {
    change({ off: new Set() })
    document.querySelector("#grid [tabindex='0']").focus() // the button goes grey
  }
  $("switch").onclick = () => press(shownHead())
  const redraw = () => $("play").hidden || draw()
  matchMedia("(prefers-color-scheme: dark)").onchange = onresize = redraw
  onhashchange = () => change(...fromAddress())
}

try {
  if (!globalThis.WebAssembly || !Set.prototype.union)
    throw new Error("this browser has no WebAssembly, or is older than 2024; take another one.")
  first = await open()
  build()
  onhashchange()
  await load((loaded, all) => {
    const share = `${Math.round(loaded / 1e6)} of ${Math.round(all / 1e6)} MB`
    const [text, bar] = $("loading").children
    text.textContent = loaded < all ? `Loading the model: ${share}` : "Unpacking the model …"
    bar.value = loaded / all
  })
  update()
} catch (error) {
  failed = `The model could not be loaded: ${error.message}`
  say(failed, true)
}
$("loading").hidden = true
globalThis.playground = { // for tests
  state, run, tokensOf, point, isLoaded, idle: () => !busy,
  outputs: () => ({ ...input, ...now, effects: [...effects] }),
}
