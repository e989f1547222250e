// The page: its state stands in the address, update() computes what the state asks for, and draw() shows it.
import { about, isLoaded, load, open, run, tokensOf } from "./model.js"
import { drawCard, measured, openMeasured, round } from "./measured.js"

const EXPLAINED = {
  weights: "Weights: how much each token (row) attends to each token (column). A vertical line is a token to which all others attend; a diagonal, attention to neighbours.",
  norms: "Norms: each weight times the length of the vector that it carries, as a share of the row. Much attention to a short vector contributes little.",
  effects: "Effects: how the answer changes if this head alone is disabled.",
}
const CHOICES = { view: [...Object.keys(EXPLAINED), "measured"], ablation: ["uniform", "zero"] }
const RAMPS = { // in the light and in the dark
  shares: ["#f1f7f4 #aedcc4 #40a7ac #345f9a #3c3368 #0b0405", "#20262d #3c3368 #345f9a #40a7ac #aedcc4 #f6fff9"],
  signed: ["#1f4e8c #8fb0d8 #f4f5f6 #dc9c94 #a8322a", "#7db1f2 #2f5587 #262c34 #8a3f38 #f08b7e"],
}
const MATTERS = 0.01 // a head that changes a probability by less does not matter
const WIDEST = 0.5 // the change of a probability with the darkest colour, on whatever sentence
const TOKENS_AT_ONCE = 200 // in a run of a sweep, so that another change need not wait long
const $ = (id) => document.getElementById(id)
const make = (tag, parts = {}, ...inside) => { const one = Object.assign(document.createElement(tag), parts); one.append(...inside); return one }
const state = { text: "", pair: "", off: new Set(), head: null, view: "weights", ablation: "uniform", measure: "" }
const cursor = { row: 0, column: 0 }, colours = {}
let first // the first example, as it comes with the page
let input, whole, now, effects = [] // tokens; answer with all heads; outputs as the state says; change of the answer by head
let busy = false, again = false, stopped = false, failed = "", ignored = [], isStep = false, suggested = 0, waiting, frame

const count = () => about.layers * about.heads
const place = (head) => [Math.floor(head / about.heads) + 1, (head % about.heads) + 1] // layer and head, from 1
const headsOf = (layer) => Array.from({ length: about.heads }, (_, at) => layer * about.heads + at)
const title = (head) => `(${place(head).join(", ")})`
const largest = (list) => list.reduce((best, one, at) => (Math.abs(one) > Math.abs(list[best]) ? at : best), 0)
const answered = () => largest(whole) // the label, with all heads
const told = () => (ignored.length ? `Ignored in the address: ${ignored.join(", ")}. ` : "")
const shownHead = () => state.head ?? suggested // until one is chosen
const isTried = () => effects.length === count()
const mapWay = () => (state.view === "norms" ? "norms" : "weights")
const valuesOf = (head, way) => now[way].subarray(head * input.ids.length ** 2, (head + 1) * input.ids.length ** 2)

// What the state asks for. -------------------------------------------------

function judged(logits) { // probabilities
  const powers = logits.map((one) => Math.exp(one - Math.max(...logits))), sum = powers.reduce((a, b) => a + b)
  return powers.map((one) => one / sum)
}

async function outputs(read, off, wanted) {
  const { answer, ...maps } = await run(read, [off], state.ablation, wanted)
  return { ...maps, answer: about.labels.length ? judged(Array.from(answer)) : [] }
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
  const [text, pair] = [state.text, state.pair].map((one) => one.trim() && one), key = JSON.stringify([text, pair]), wanted = `${key} ${[...state.off]} ${state.ablation}`
  document.documentElement.dataset.view = state.view // an empty text is still to be filled in
  if (state.view === "measured") {
    ignored.push(...await openMeasured(state, $("what"), make))
    suggested = largest(measured(make).values)
    say(told())
    return draw()
  }
  if (!text) throw new Error(pair ? "The first sentence is empty; write it there." : "Write a sentence to begin with.")
  if (key !== input?.key && text === about.examples[0] && !pair) begin(key, state.off.size ? "" : wanted)
  const isNew = key !== input?.key
  if (isNew && !isLoaded()) throw new Error(failed || "This is read as soon as the model is loaded.")
  if (isLoaded() && now?.wanted !== wanted) {
    const next = isNew ? { key, ...tokensOf(text, pair) } : input, found = await outputs(next, state.off, ["weights", "norms", "answer"])
    const base = !isNew ? whole : state.off.size ? (await outputs(next, new Set(), ["answer"])).answer : found.answer
    ;[input, whole, now] = [next, base, { ...found, wanted }] // together: the page may be drawn at any time
  }
  if (isTried()) suggested = largest(effects)
  const cut = input.length > input.ids.length ? `Of ${input.length} tokens ${input.ids.length} are read: the ${pair ? "longer sentence" : "sentence"} is cut at its end. ` : ""
  say(told() + cut)
  draw()
  if (isLoaded() && about.labels.length && !isTried() && !stopped) await sweep()
}

// The first example, before the model is there: with all heads, and without each of them.
function begin(key, wanted) {
  const answer = about.labels.length ? judged(first.answer) : []
  input = { ...first, key, types: first.ids.map(() => 0) }
  whole = answer
  now = { weights: first.weights, norms: first.norms, answer, wanted }
  if (about.labels.length && !state.off.size && state.ablation === "uniform") effects = first.without.map((one) => judged(one)[answered()] - answer[answered()])
}

// What disabling each head does to the answer, with those of the state disabled as well; goes on where it was.
async function sweep() {
  const own = effects, most = Math.max(1, Math.floor(TOKENS_AT_ONCE / input.ids.length)), size = about.labels.length
  while (!isTried()) {
    const sets = Array.from({ length: Math.min(most, count() - effects.length) }, (_, at) => toggled([effects.length + at]))
    const answer = Array.from((await run(input, sets, state.ablation, ["answer"])).answer)
    if (own !== effects || stopped) return // of another state
    for (const at of sets.keys()) own.push(judged(answer.slice(at * size, (at + 1) * size))[answered()] - now.answer[answered()])
    drawVerdict()
    if (again) return
  }
  suggested = largest(effects)
  draw()
}

// At the cell of the head's map with most weight between different tokens, neither of them the first or last: others say little.
function aim() {
  const size = input.ids.length, best = largest(valuesOf(shownHead(), "weights").map((one, at) => {
    const [row, column] = [Math.floor(at / size), at % size]
    return row && column && row !== column && Math.max(row, column) < size - 1 ? one : 0
  }))
  Object.assign(cursor, { of: `${shownHead()} ${input.key}`, row: Math.floor(best / size), column: best % size })
}

function toggled(heads) {
  const off = new Set(state.off), all = heads.every((head) => off.has(head))
  heads.forEach((head) => (all ? off.delete(head) : off.add(head)))
  return off
}

// The state in the address, of which what is not understood is left out, and said.
function write() {
  const name = (one) => place(one).join("."), kept = { ...state, head: state.head === null ? "" : name(state.head), off: [...state.off].map(name).join(" ") }
  if (state.view !== "measured") kept.measure = ""
  const hash = `#${new URLSearchParams(Object.entries(kept).filter(([, value]) => value))}`
  history[isStep && hash !== location.hash ? "pushState" : "replaceState"](null, "", hash)
  isStep = false
}

function fromAddress() {
  const found = { off: new Set(), head: null, pair: "", view: "weights" }, number = (one) => { // of a head, from 0
    const [layer, head, ...more] = one.split(".").map(Number)
    return !more.length && layer >= 1 && layer <= about.layers && head >= 1 && head <= about.heads ? (layer - 1) * about.heads + head - 1 : NaN
  }
  const possible = { effects: about.labels.length > 0, measured: about.measured, pair: !about.single }
  ignored = []
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const heads = ["off", "head"].includes(name) ? value.split(" ").map(number) : []
    if (heads.length && heads.every(Number.isInteger)) found[name] = name === "off" ? new Set(heads) : heads[0]
    else if ((["text", "pair", "measure"].includes(name) && (possible[name] ?? true)) || (CHOICES[name]?.includes(value) && (possible[value] ?? true))) found[name] = value
    else ignored.push(`${name}=${value}`.slice(0, 40))
  }
  return found
}

// Pictures. ----------------------------------------------------------------

const amount = (value) => `${(value * 100).toFixed(1)} %`
const points = (value, digits = 1) => round(value * 100, digits)
const shade = (value) => colours.shares[Math.round(Math.sqrt(value) * 255)] // by the root, so that small ones are seen, too

function isDark() { // as the site's own switch says
  const chosen = about.home && localStorage.getItem("theme")
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches)
}

function ramp(stops) { // 256 colours
  const ends = stops.map((one) => one.match(/\w\w/g).map((part) => parseInt(part, 16)))
  return Array.from({ length: 256 }, (_, at) => {
    const along = (at / 255) * (ends.length - 1), low = Math.min(Math.floor(along), ends.length - 2)
    return ends[low].map((one, part) => Math.round(one + (ends[low + 1][part] - one) * (along - low)))
  })
}

function legend(id, { unit, name, ticks } = { unit: mapWay().slice(0, -1), name: "shares", ticks: [0, 0.05, 0.25, 0.5, 1].map((one) => [Math.sqrt(one), one]) }) {
  const marks = ticks.map(([at, mark]) => make("span", { textContent: mark, style: `left:${at * 100}%` }))
  const bar = make("i", { style: `background:linear-gradient(to right, ${RAMPS[name][Number(isDark())].split(" ").join(", ")})` })
  $(id).replaceChildren(make("span", { className: "soft", textContent: unit }), bar, make("div", {}, ...marks))
}

// What colours the heads instead of their maps: values, what stands on them and is said of them, and a scale that has zero in
// the middle if they are signed.
function numbers() {
  if (state.view === "measured") {
    const one = measured(make), there = one.values.filter((value) => value !== null), signed = Math.min(...there) < 0 && Math.max(...there) > 0
    const reach = Math.max(1e-9, ...there.map(Math.abs)), [low, high] = signed ? [-reach, reach] : [Math.min(...there), Math.max(...there)]
    const at = (value) => (value - low) / (high - low || 1), ticks = (signed ? [low, 0, high] : [low, high]).map((value) => [at(value), round(value, high < 2 ? 2 : 0)])
    return { ...one, at, name: signed ? "signed" : "shares", ticks }
  }
  if (state.view !== "effects") return undefined
  const values = Array.from({ length: count() }, (_, at) => effects[at] ?? null)
  const texts = values.map((one) => (one === null ? "not tried yet" : points(one))), short = values.map((one) => (one === null ? "" : points(one, 0)))
  const at = (one) => 0.5 + Math.sign(one) * Math.sqrt(Math.min(1, Math.abs(one) / WIDEST)) / 2
  const unit = `change of “${about.labels[answered()]}” ${state.off.size ? "if the head is switched" : "without the head"}, in points`
  return { values, texts, short, unit, at, name: "signed", ticks: [-0.5, -0.1, 0, 0.1, 0.5].map((one) => [at(one), points(one, 0)]) }
}

function draw() {
  const theme = Number(isDark()), root = document.documentElement, shown = numbers()
  $("play").hidden = false
  root.style.colorScheme = theme ? "dark" : "light"
  root.dataset.answers = about.labels.length ? "yes" : "no"
  for (const name of Object.keys(RAMPS)) colours[name] = ramp(RAMPS[name][theme].split(" "))
  document.querySelector(`[name=view][value=${state.view}]`).checked = true
  document.querySelector("[name=ablation]").value = state.ablation
  const hatched = state.view === "effects" && state.off.size ? " Of a hatched head: how it changes if the head is enabled. All others stay as they are." : ""
  $("explained").replaceChildren(...(shown?.said ?? [EXPLAINED[state.view] + hatched]))
  $("restore").disabled = !state.off.size
  const buttons = document.querySelectorAll("#grid .head"), room = Math.max(8, buttons[0].clientWidth)
  for (const button of buttons) drawHead(button, Number(button.dataset.head), shown, Math.ceil((input?.ids.length ?? 1) / room))
  document.querySelectorAll("#grid .layer").forEach((one, layer) => Object.assign(one, { disabled: state.view === "measured", ariaPressed: String(headsOf(layer).every((head) => state.off.has(head))) }))
  legend("legend", shown)
  legend("map-legend")
  if (state.view === "measured") drawCard($("card"), shownHead(), make)
  else {
    drawAnswer()
    drawVerdict()
    drawMap()
  }
  const off = state.off.has(shownHead()), way = off ? ": disabled" : `: its ${mapWay()}`
  $("head-title").textContent = `Head ${title(shownHead())}${state.view === "measured" ? "" : way}`
  $("switch").textContent = off ? "Enable it" : "Disable it"
}

// A pixel of a small map shows the largest of a block of so many tokens by so many: shrunk by the browser, single cells would vanish.
function drawHead(button, head, shown, block) {
  const [canvas, text] = button.children, isMeasured = state.view === "measured", off = !isMeasured && state.off.has(head), size = input?.ids.length
  const colour = shown && shown.values[head] !== null && colours[shown.name][Math.round(shown.at(shown.values[head]) * 255)]
  button.style.background = colour ? `rgb(${colour})` : ""
  button.style.color = colour ? (colour[0] * 0.3 + colour[1] * 0.6 + colour[2] * 0.1 > 130 ? "#111" : "#fff") : ""
  text.textContent = shown ? shown.short[head] : ""
  canvas.hidden = Boolean(shown)
  if (!shown) {
    const side = Math.ceil(size / block)
    Object.assign(canvas, { width: side, height: side })
    const picture = new ImageData(side, side), most = new Float32Array(side * side)
    valuesOf(head, mapWay()).forEach((value, at) => {
      const pixel = Math.floor(at / size / block) * side + Math.floor((at % size) / block)
      most[pixel] = Math.max(most[pixel], value)
    })
    most.forEach((value, pixel) => picture.data.set([...shade(value), 255], pixel * 4))
    canvas.getContext("2d").putImageData(picture, 0, 0)
  }
  button.classList.toggle("off", off)
  button.classList.toggle("number", Boolean(shown))
  button.title = `head ${title(head)}${off ? ", disabled" : ""}${shown ? `: ${shown.texts[head]}, ${shown.unit}` : ""}`
  Object.assign(button, { tabIndex: head === shownHead() ? 0 : -1, ariaCurrent: String(head === shownHead()), ariaLabel: button.title })
}

function drawAnswer() {
  const unknown = input.ids.filter((one) => one === about.unknown).length
  const mark = (at) => (state.off.size ? [make("b", { style: `left:${whole[at] * 100}%` })] : [])
  const bar = (at) => make("div", {}, make("i", { style: `width:${now.answer[at] * 100}%` }), ...mark(at))
  const rows = now.answer.map((value, at) => make("div", { className: "bar" }, make("span", { textContent: about.labels[at] }), bar(at), make("span", { textContent: amount(value) })))
  const none = about.labels.length ? "" : "This model has no labels, so there is no answer to change."
  const odd = unknown ? ` The model does not know ${unknown} of the ${input.tokens.length} tokens (${about.special[2]}), so this answer means little.` : ""
  $("said").replaceChildren(...rows, ...(none || odd ? [make("p", { className: "soft" }, none, make("strong", { textContent: odd }))] : []))
  $("disabled").textContent = state.off.size ? `${state.off.size} of ${count()} heads disabled${isLoaded() ? "; marks: with all" : ", as soon as the model is loaded"}` : ""
}

// Which head matters most: tried in the background, with a button that stops it.
function drawVerdict() {
  const button = (textContent, onclick) => make("button", { type: "button", textContent, onclick }), verdict = $("verdict")
  const tries = `${effects.length} of ${count()} heads tried`, go = () => { stopped = false; update() }
  $("answer").ariaBusy = String(!isTried() && !stopped && isLoaded() && about.labels.length > 0) // a screen reader says the end, not every step
  if (!about.labels.length || (!isTried() && !isLoaded())) return verdict.replaceChildren()
  if (stopped && !isTried()) return verdict.replaceChildren(`${tries}. `, button("Go on", go))
  if (!isTried()) return verdict.replaceChildren(make("progress", { value: effects.length, max: count(), ariaLabel: "Heads tried" }), ` ${tries} `, button("Stop", () => { stopped = true; drawVerdict() }))
  const best = largest(effects), label = about.labels[answered()], is = now.answer[answered()], then = is + effects[best], without = state.off.has(best) ? "With" : "Without"
  const turns = now.answer.length === 2 && is > 0.5 !== then > 0.5
  const many = effects.filter((one) => Math.abs(one) >= MATTERS).length
  if (!many) return verdict.replaceChildren(`No single head matters here: the most that one changes is ${points(Math.abs(effects[best]))} points.`)
  const head = button(`head ${title(best)}`, () => change({ head: best }))
  head.className = "link"
  verdict.replaceChildren(`${without} `, head, `${state.off.size && without === "Without" ? " as well" : ""}, ${label} ${then > is ? "rises" : "falls"} from ${amount(is)} to ${amount(then)}${turns ? ": the answer turns." : "."} ${many} of ${count()} heads change it by a point or more. `, button(state.off.has(best) ? "Enable it" : "Disable it", () => change({ head: best, off: toggled([best]) })))
}

function drawMap() {
  const canvas = $("map"), pen = canvas.getContext("2d"), { tokens } = input, size = tokens.length, style = getComputedStyle(document.body)
  const font = (chosen, height) => { pen.font = `${chosen ? "bold " : ""}${height}px ${style.fontFamily}` }
  if (cursor.of !== `${shownHead()} ${input.key}`) aim()
  for (const axis of ["row", "column"]) cursor[axis] = Math.max(0, Math.min(size - 1, Math.floor(cursor[axis])))
  font(true, 13)
  const gutter = Math.min(110, Math.max(...tokens.map((one) => pen.measureText(one).width)) + 10), width = canvas.clientWidth
  const cell = Math.min(40, (width - gutter - 2) / size), line = cell > 6 ? 1 : 0, height = gutter + cell * size + 2
  const step = Math.ceil(9 / cell) // where there is no room for all labels, every so many tokens have one, and the cell under the cursor
  frame = { gutter, cell }
  Object.assign(canvas, { width: width * devicePixelRatio, height: height * devicePixelRatio }).style.height = `${height}px`
  pen.scale(devicePixelRatio, devicePixelRatio)
  valuesOf(shownHead(), mapWay()).forEach((value, at) => {
    pen.fillStyle = `rgb(${shade(value)})`
    pen.fillRect(gutter + (at % size) * cell, gutter + Math.floor(at / size) * cell, cell - line, cell - line)
  })
  Object.assign(pen, { textBaseline: "middle", fillStyle: style.color, lineWidth: 2, strokeStyle: getComputedStyle($("home").firstChild).color })
  pen.strokeRect(gutter + cursor.column * cell - 1, gutter + cursor.row * cell - 1, cell + 1, cell + 1)
  for (const [axis, side, sign] of [["row", "right", 1], ["column", "left", -1]]) {
    if (sign < 0) pen.rotate(-Math.PI / 2)
    pen.textAlign = side
    tokens.forEach((token, at) => {
      const isChosen = at === cursor[axis], isFree = step === 1 || Math.abs(at - cursor[axis]) * cell > 11
      font(isChosen, isChosen && step > 1 ? 13 : Math.max(9, Math.min(13, cell)))
      if (isChosen || (at % step === 0 && isFree)) pen.fillText(token, sign * (gutter - 6), gutter + (at + 0.5) * cell, gutter - 8)
    })
  }
  const [weight, norm] = ["weights", "norms"].map((way) => valuesOf(shownHead(), way)[cursor.row * size + cursor.column].toFixed(4))
  $("readout").textContent = `From “${tokens[cursor.row]}” (row) to “${tokens[cursor.column]}” (column): weight ${weight}, norm ${norm}`
  canvas.ariaLabel = `Attention map of head ${title(shownHead())}; arrow keys move from cell to cell`
}

// What people do. -----------------------------------------------------------

function say(text, wrong = false) {
  $("message").textContent = text
  for (const one of [$("message"), ...document.querySelectorAll(".play")]) one.classList.toggle("wrong", wrong)
}

function change(changes, unknown = []) {
  if (["off", "ablation", "text", "pair"].some((name) => name in changes)) {
    effects = []
    stopped = false
  }
  isStep ||= "view" in changes
  ignored = unknown
  Object.assign(state, changes)
  update()
}

function fill(changes, unknown) {
  change(changes, unknown)
  for (const field of ["text", "pair"]) $(field).value = state[field]
}

function point(row, column) {
  Object.assign(cursor, { row, column })
  if (now && state.view !== "measured") drawMap()
}

function build() {
  const { layers, heads } = about
  const press = (head) => change(head === shownHead() && state.view !== "measured" ? { head, off: toggled([head]) } : { head })
  const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }
  state.text = [about.examples[0]].flat()[0]
  $("about").textContent = `The model: ${about.name}, ${layers} layers of ${heads} heads.`
  if (about.trained) $("trained").textContent = `It learned from ${about.trained}: of any other text its answer means little, however sure it is.`
  if (about.typical) $("typical").textContent = about.typical
  const [begins, ends, unknown] = about.special
  $("tokens").textContent = `${begins} starts every input (BERT’s [CLS]), and a classifier reads its answer there; ${ends} ends a sentence ([SEP]). “▁” marks the beginning of a word, or “##” the rest of one; ${unknown} is what the model does not know.`
  $("home").hidden = !about.home
  $("home").firstChild.href = about.home ?? ""
  $("measured").hidden = !about.measured
  $("pairs").hidden = Boolean(about.single)
  $("grid").style.setProperty("--heads", heads)
  $("grid").append(make("span"), ...headsOf(0).map((head) => make("span", { textContent: head + 1 })))
  for (let layer = 0; layer < layers; layer++) {
    const own = headsOf(layer), name = `layer ${layer + 1}: disable all its heads`
    $("grid").append(make("button", { type: "button", className: "layer", textContent: layer + 1, title: name, ariaLabel: name, onclick: () => change({ off: toggled(own) }) }))
    for (const head of own) {
      const button = make("button", { type: "button", className: "head", onclick: () => press(head) }, make("canvas", { ariaHidden: "true" }), make("span"))
      button.dataset.head = head
      $("grid").append(button)
    }
  }
  $("grid").onkeydown = (event) => {
    const arrow = arrows[event.key], head = Number(event.target.dataset.head)
    if (!arrow || !(head >= 0)) return
    document.querySelector(`[data-head="${head + arrow[0] * heads + arrow[1]}"]`)?.focus()
    event.preventDefault()
  }
  $("map").onpointermove = $("map").onpointerdown = (event) => point((event.offsetY - frame.gutter) / frame.cell, (event.offsetX - frame.gutter) / frame.cell)
  $("map").onkeydown = (event) => {
    if (!arrows[event.key]) return
    point(cursor.row + arrows[event.key][0], cursor.column + arrows[event.key][1])
    event.preventDefault()
  }
  for (const [text, pair = ""] of about.examples.map((one) => [one].flat())) {
    $("examples").append(make("button", { type: "button", textContent: pair ? `${text} + ${pair}` : text, onclick: () => { isStep = true; fill({ text, pair, off: new Set(), head: null, view: state.view === "measured" ? "weights" : state.view }, []) } }))
  }
  $("form").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => change({ text: $("text").value, pair: $("pair").value }), 150) }
  for (const choice of document.querySelectorAll("[name=view], [name=ablation]")) choice.onchange = () => change({ [choice.name]: choice.value })
  $("restore").onclick = () => { change({ off: new Set() }); document.querySelector("#grid [tabindex='0']").focus() } // the button goes grey
  $("switch").onclick = () => press(shownHead())
  $("what").onchange = () => change({ measure: $("what").value })
  matchMedia("(prefers-color-scheme: dark)").onchange = onresize = () => !$("play").hidden && draw()
  onhashchange = () => { const found = fromAddress(); fill(found, ignored) }
}

try {
  first = await open()
  build()
  onhashchange()
  await load((done, all) => {
    $("progress").value = done / all
    const how = done < all ? `Loading the model: ${Math.round(done / 1e6)} of ${Math.round(all / 1e6)} MB` : "Unpacking the model …"
    $("loading").firstChild.textContent = `${how} `
  })
  update()
} catch (error) {
  failed = `The model could not be loaded: ${error.message}`
  say(failed, true)
}
$("loading").hidden = true
globalThis.playground = { state, run, tokensOf, point, idle: () => !busy, isLoaded, outputs: () => ({ ...input, ...now, effects: [...effects] }) } // for tests
