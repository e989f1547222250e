// The page: its state stands in the address, update() computes what the state asks for, and draw() shows it.
import { about, load, run, tokensOf } from "./model.js"
import { drawCard, evidence, fillLists, openEvidence } from "./evidence.js"

const EXPLAINED = {
  weights: "Weights: how much each token (row) attends to each token (column). A vertical line is a token to which all others attend; a diagonal line, attention to a token itself or to a neighbour.",
  norms: "Norms: each weight times the length of the vector that it carries, as a share of the row. Much attention to a short vector contributes little.",
  effects: "Effects: how the answer changes if one head is disabled.",
  evidence: "Measured with MiniLM on real data, not on your sentence and not with the model above. Click a head to see all its numbers.",
}
const DISABLED = { uniform: "it attends to all tokens equally", zero: "it outputs nothing" }
const CHOICES = { view: Object.keys(EXPLAINED), click: ["enlarges", "disables"], ablation: ["uniform", "zero"] }
const RAMPS = { // in the light and in the dark
  shares: ["#f1f7f4 #aedcc4 #40a7ac #345f9a #3c3368 #0b0405", "#20262d #3c3368 #345f9a #40a7ac #aedcc4 #f6fff9"],
  signed: ["#1f4e8c #8fb0d8 #f4f5f6 #dc9c94 #a8322a", "#7db1f2 #2f5587 #262c34 #8a3f38 #f08b7e"],
}
const CHANGED = 0.05 // a map that differs by more anywhere is marked
const TOKENS_AT_ONCE = 400 // in a run of a sweep, so that another change need not wait long
const $ = (id) => document.getElementById(id)
const make = (tag, parts = {}, ...inside) => { const one = Object.assign(document.createElement(tag), parts); one.append(...inside); return one }
const state = { text: "", pair: "", off: new Set(), head: null, view: "weights", click: "enlarges", ablation: "uniform", measure: "" }
const cursor = { row: 0, column: 0 }, colours = {}
let input, whole, now, effects = [] // tokens; outputs with all heads, and as the state says; change of the answer by head
let busy = false, again = false, ignored = [], waiting, frame

const count = () => about.layers * about.heads
const place = (head) => [Math.floor(head / about.heads) + 1, (head % about.heads) + 1] // layer and head, from 1
const title = (head) => `(${place(head).join(", ")})`
const largest = (list) => list.reduce((best, one, at) => (Math.abs(one) > Math.abs(list[best]) ? at : best), 0)
const answered = () => largest(whole.answer) // the label, with all heads
const isChance = () => about.labels.length > 1 // a single output is no probability
const mapWay = () => (state.view === "norms" ? "norms" : "weights")
const valuesOf = (head, way, from = now) => from[way].subarray(head * input.ids.length ** 2, (head + 1) * input.ids.length ** 2)

// What the state asks for. -------------------------------------------------

function judged(logits) { // probabilities, of several labels
  if (logits.length < 2) return logits
  const powers = logits.map((one) => Math.exp(one - Math.max(...logits))), sum = powers.reduce((a, b) => a + b)
  return powers.map((one) => one / sum)
}

async function outputs(read, off) {
  const { answer, ...maps } = await run(read, [off], state.ablation, ["weights", "norms", "answer"])
  return { ...maps, answer: about.labels.length ? judged(Array.from(answer)) : [] }
}

// Everything anew after a change; what changes meanwhile is taken up when the present turn is over.
async function update() {
  again = true
  if (busy) return
  busy = true
  while (again) {
    again = false
    try {
      const start = performance.now(), [text, pair] = [state.text.trim(), state.pair.trim()], key = JSON.stringify([text, pair]), fresh = key !== input?.key
      document.documentElement.dataset.view = state.view // an empty text is still to be filled in
      if (!text) throw new Error(pair ? "The first sentence is empty; write it there." : "Write a sentence to begin with.")
      if (state.view === "evidence") ignored.push(...await openEvidence(state))
      const next = { key, ...tokensOf(text, pair) }, base = fresh ? await outputs(next, new Set()) : whole
      const found = state.off.size ? await outputs(next, state.off) : base
      if (fresh) effects = []
      ;[input, whole, now] = [next, base, found] // together: the page may be drawn at any time
      state.head ??= telling()
      const unknown = ignored.length ? `Ignored in the address: ${ignored.join(", ")}. ` : ""
      const cut = next.length > next.ids.length ? `Of ${next.length} tokens ${next.ids.length} are read: the longer sentence is cut at its end. ` : ""
      const read = `${cut}${next.ids.length} tokens${fresh || state.off.size ? `, read in ${Math.round(performance.now() - start)} ms` : ""}`
      say(unknown + (state.view === "evidence" ? "" : read))
      draw()
      if (state.view === "effects" && !effects.length) await sweep()
    } catch (error) { say(error.message, true) }
    write()
  }
  busy = false
}

// What disabling each head does to the answer, with those of the state disabled as well.
async function sweep() {
  const start = performance.now(), changes = [], most = Math.max(1, Math.min(about.heads, Math.floor(TOKENS_AT_ONCE / input.ids.length)))
  while (changes.length < count()) {
    const sets = Array.from({ length: Math.min(most, count() - changes.length) }, (_, at) => toggled([changes.length + at]))
    const answer = Array.from((await run(input, sets, state.ablation, ["answer"])).answer), size = about.labels.length
    if (again) return
    for (const at of sets.keys()) changes.push(judged(answer.slice(at * size, (at + 1) * size))[answered()] - now.answer[answered()])
    $("verdict").textContent = `${changes.length} of ${count()} heads tried`
  }
  effects = Object.assign(changes, { seconds: (performance.now() - start) / 1000 })
  draw()
}

function telling() { // of all heads that with most weight between different words: a first one to look at
  const size = input.ids.length, between = (_, at) => at % size && (at + 1) % size && at % size !== Math.floor(at / size)
  return largest(Array.from({ length: count() }, (_, head) => valuesOf(head, "norms").filter(between).reduce((sum, one) => sum + one * one, 0)))
}

function toggled(heads) {
  const off = new Set(state.off), all = heads.every((head) => off.has(head))
  heads.forEach((head) => (all ? off.delete(head) : off.add(head)))
  return off
}

// The state in the address, of which what is not understood is left out, and said.
function write() {
  const name = (one) => place(one).join("."), kept = { ...state, head: state.head === null ? "" : name(state.head), off: [...state.off].map(name).join(" ") }
  if (state.view !== "evidence") kept.measure = ""
  history.replaceState(null, "", `#${new URLSearchParams(Object.entries(kept).filter(([, value]) => value))}`)
}

function fromAddress() {
  const found = { off: new Set(), pair: "" }, number = (one) => { // of a head, from 0
    const [layer, head, ...more] = one.split(".").map(Number)
    return !more.length && layer >= 1 && layer <= about.layers && head >= 1 && head <= about.heads ? (layer - 1) * about.heads + head - 1 : NaN
  }
  const possible = { effects: about.labels.length > 0, evidence: about.evidence }
  ignored = []
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const heads = ["off", "head"].includes(name) ? value.split(" ").map(number) : []
    if (heads.length && heads.every(Number.isInteger)) found[name] = name === "off" ? new Set(heads) : heads[0]
    else if (["text", "pair", "measure"].includes(name) || (CHOICES[name]?.includes(value) && (possible[value] ?? true))) found[name] = value
    else ignored.push(`${name}=${value}`.slice(0, 40))
  }
  return found
}

// Pictures. ----------------------------------------------------------------

const round = (value, digits) => ((text) => (Number(text) ? text.replace("-", "−") : "0"))(value.toFixed(digits))
const amount = (value) => (isChance() ? `${(value * 100).toFixed(1)} %` : round(value, 2))
const points = (value) => (isChance() ? round(value * 100, 1) : round(value, 2))
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

// What colours the heads instead of their maps: values, their texts, and a scale that has zero in the middle if they are signed.
function numbers() {
  const isEffect = state.view === "effects" && effects.length > 0
  if (!isEffect && state.view !== "evidence") return undefined
  const { values, texts, name, factor } = isEffect ? { values: effects, texts: effects.map(points) } : evidence()
  const there = values.filter((one) => one !== null), signed = isEffect || (Math.min(...there) < 0 && Math.max(...there) > 0)
  const reach = Math.max(1e-9, ...there.map(Math.abs)), [low, high] = signed ? [-reach, reach] : [Math.min(...there), Math.max(...there)]
  const at = (one) => (one - low) / (high - low || 1), mark = (one) => (isEffect ? points(one) : String(Number((one * factor).toPrecision(2))))
  const unit = isEffect ? `change of “${about.labels[answered()]}” ${state.off.size ? "if the head is switched" : "without the head"}${isChance() ? ", in points" : ""}` : name
  return { values, texts: texts.map((one) => one.split(/[ []/)[0]), unit, at, name: signed ? "signed" : "shares", ticks: (signed ? [low, 0, high] : [low, high]).map((one) => [at(one), mark(one)]) }
}

function draw() {
  const theme = Number(isDark()), root = document.documentElement, shown = numbers()
  $("play").hidden = false
  root.style.colorScheme = theme ? "dark" : "light"
  root.dataset.answers = about.labels.length ? "yes" : "no"
  for (const name of Object.keys(RAMPS)) colours[name] = ramp(RAMPS[name][theme].split(" "))
  for (const field of Object.keys(CHOICES)) document.querySelector(`[name=${field}][value="${state[field]}"]`).checked = true
  const measure = state.view === "evidence" ? `${evidence().says} ` : ""
  const hatched = state.view === "effects" && state.off.size ? " Of a hatched head: how it changes if the head is enabled. All others stay as they are." : ""
  $("explained").textContent = measure + EXPLAINED[state.view] + hatched
  $("restore").disabled = !state.off.size
  const buttons = document.querySelectorAll("#grid .head"), room = Math.max(8, buttons[0].clientWidth)
  for (const button of buttons) drawHead(button, Number(button.dataset.head), shown, Math.ceil(input.ids.length / room))
  legend("legend", shown)
  legend("map-legend")
  drawAnswer()
  if (state.view === "evidence") drawCard($("card"), state.head, make)
  else drawMap()
  const off = state.off.has(state.head), way = off ? `, disabled: ${DISABLED[state.ablation]}; its ${mapWay()}` : `: its ${mapWay()}`
  $("head-title").textContent = `Head ${title(state.head)}${state.view === "evidence" ? "" : way}`
  $("switch").textContent = off ? "Enable it" : "Disable it"
}

// A pixel of a small map shows the largest of a block of so many tokens by so many: shrunk by the browser, single cells would vanish.
function drawHead(button, head, shown, block) {
  const [canvas, text] = button.children, off = state.view !== "evidence" && state.off.has(head), size = input.ids.length
  const colour = shown && shown.values[head] !== null && colours[shown.name][Math.round(shown.at(shown.values[head]) * 255)]
  button.style.background = colour ? `rgb(${colour})` : ""
  button.style.color = colour ? (colour[0] * 0.3 + colour[1] * 0.6 + colour[2] * 0.1 > 130 ? "#111" : "#fff") : ""
  text.textContent = shown ? shown.texts[head] : ""
  const side = Math.ceil(size / block)
  Object.assign(canvas, { hidden: Boolean(shown), width: side, height: side })
  if (!shown) {
    const picture = new ImageData(side, side), most = new Float32Array(side * side)
    valuesOf(head, mapWay()).forEach((value, at) => {
      const pixel = Math.floor(at / size / block) * side + Math.floor((at % size) / block)
      most[pixel] = Math.max(most[pixel], value)
    })
    most.forEach((value, pixel) => picture.data.set([...shade(value), 255], pixel * 4))
    canvas.getContext("2d").putImageData(picture, 0, 0)
  }
  const before = valuesOf(head, "weights", whole), changed = !off && !shown && valuesOf(head, "weights").some((value, at) => Math.abs(value - before[at]) > CHANGED)
  for (const [name, is] of Object.entries({ off, changed, number: shown })) button.classList.toggle(name, Boolean(is))
  button.title = `head ${title(head)}${off ? ", disabled" : ""}${changed ? ", changed by what is disabled" : ""}${shown ? `: ${shown.texts[head]}, ${shown.unit}` : ""}`
  Object.assign(button, { tabIndex: head === state.head ? 0 : -1, ariaCurrent: String(head === state.head), ariaLabel: button.title })
}

function drawAnswer() {
  const name = about.labels[answered()], before = amount(whole.answer[answered()] ?? 0), best = largest(effects)
  const mark = (at) => (state.off.size ? [make("b", { style: `left:${whole.answer[at] * 100}%` })] : [])
  const bar = (at) => (isChance() ? [make("i", { style: `width:${now.answer[at] * 100}%` }), ...mark(at)] : [])
  const rows = now.answer.map((value, at) => make("div", { className: "bar" }, make("span", { textContent: about.labels[at] }), make("div", {}, ...bar(at)), make("span", { textContent: amount(value) })))
  const said = state.off.size ? `${state.off.size} of ${count()} heads disabled.${name ? ` With all heads${isChance() ? ", where the marks are," : ""} ${name} has ${before}.` : ""}` : "No head is disabled."
  const learned = about.trained ? ` The model learned to answer from ${about.trained}${input.types.at(-1) && about.single ? ", and never saw a pair: this answer means little" : ""}.` : ""
  $("answer").replaceChildren(...rows, make("p", { className: "soft", textContent: said + (name ? learned : " This model has no classifier, so there is no answer to change.") }))
  const [from, to] = effects.length ? [now.answer[answered()], now.answer[answered()] + effects[best]].map(amount) : []
  const named = make("button", { type: "button", className: "link", textContent: `Head ${title(best)}`, onclick: () => change({ head: best }) })
  const tried = `: ${state.off.has(best) ? "enabling" : "disabling"} it takes ${name} from ${from} to ${to}. All ${count()} heads tried in ${effects.seconds?.toFixed(1)} s.`
  $("verdict").replaceChildren(...(from ? [named, tried] : []))
}

function drawMap() {
  const canvas = $("map"), pen = canvas.getContext("2d"), { tokens } = input, size = tokens.length, style = getComputedStyle(document.body)
  const font = (chosen, height) => { pen.font = `${chosen ? "bold " : ""}${height}px ${style.fontFamily}` }
  for (const axis of ["row", "column"]) cursor[axis] = Math.max(0, Math.min(size - 1, Math.floor(cursor[axis])))
  font(true, 13)
  const gutter = Math.min(110, Math.max(...tokens.map((one) => pen.measureText(one).width)) + 10), width = canvas.clientWidth
  const cell = Math.min(40, (width - gutter - 2) / size), line = cell > 6 ? 1 : 0, height = gutter + cell * size + 2
  const step = Math.ceil(9 / cell) // where there is no room for all labels, every so many tokens have one, and the cell under the cursor
  frame = { gutter, cell }
  Object.assign(canvas, { width: width * devicePixelRatio, height: height * devicePixelRatio }).style.height = `${height}px`
  pen.scale(devicePixelRatio, devicePixelRatio)
  valuesOf(state.head, mapWay()).forEach((value, at) => {
    pen.fillStyle = `rgb(${shade(value)})`
    pen.fillRect(gutter + (at % size) * cell, gutter + Math.floor(at / size) * cell, cell - line, cell - line)
  })
  Object.assign(pen, { textBaseline: "middle", fillStyle: style.color, lineWidth: 2, strokeStyle: getComputedStyle($("sweep")).backgroundColor })
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
  const [weight, norm] = ["weights", "norms"].map((way) => valuesOf(state.head, way)[cursor.row * size + cursor.column].toFixed(4))
  $("readout").textContent = `From “${tokens[cursor.row]}” (row) to “${tokens[cursor.column]}” (column): weight ${weight}, norm ${norm}`
  canvas.ariaLabel = `Attention map of head ${title(state.head)}; arrow keys move from cell to cell`
}

// What people do. -----------------------------------------------------------

function say(text, wrong = false) {
  $("message").textContent = text
  for (const one of [$("message"), $("play"), $("answer")]) one.classList.toggle("wrong", wrong)
}

function change(changes, unknown = []) {
  if (["off", "ablation", "text", "pair"].some((name) => name in changes)) effects = []
  ignored = unknown
  Object.assign(state, changes)
  update()
}

function fill(changes, unknown) {
  point(0, 0)
  change(changes, unknown)
  for (const field of ["text", "pair"]) $(field).value = state[field]
}

function point(row, column) {
  Object.assign(cursor, { row, column })
  if (now) drawMap()
}

function build() {
  const { layers, heads } = about, across = Array.from({ length: heads }, (_, head) => head)
  const press = (head, switches) => change(switches && state.view !== "evidence" ? { head, off: toggled([head]) } : { head })
  const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }
  state.text = [about.examples[0]].flat()[0]
  $("about").textContent = `The model: ${about.name}, ${layers} layers of ${heads} heads.`
  $("home").hidden = !about.home
  $("home").firstChild.href = about.home ?? ""
  $("measured").hidden = !about.evidence
  $("grid").style.setProperty("--heads", heads)
  $("grid").append(make("span"), ...across.map((head) => make("span", { textContent: head + 1 })))
  for (let layer = 0; layer < layers; layer++) {
    const own = across.map((head) => layer * heads + head), name = `disable layer ${layer + 1}, or enable it`
    $("grid").append(make("button", { type: "button", className: "layer", textContent: layer + 1, title: name, ariaLabel: name, onclick: () => change({ off: toggled(own) }) }))
    for (const head of own) {
      const onclick = (event) => press(head, event.shiftKey !== (state.click === "disables"))
      const button = make("button", { type: "button", className: "head", onclick }, make("canvas"), make("span"))
      button.dataset.head = head
      $("grid").append(button)
    }
  }
  $("grid").onkeyup = (event) => event.key === " " && event.target.dataset.head && event.preventDefault() // no click besides
  $("grid").onkeydown = (event) => {
    const head = Number(event.target.dataset.head), arrow = arrows[event.key]
    if ((event.key !== " " && !arrow) || !(head >= 0)) return
    if (arrow) document.querySelector(`[data-head="${head + arrow[0] * heads + arrow[1]}"]`)?.focus()
    else press(head, true)
    event.preventDefault()
  }
  $("map").onpointermove = $("map").onpointerdown = (event) => point((event.offsetY - frame.gutter) / frame.cell, (event.offsetX - frame.gutter) / frame.cell)
  $("map").onkeydown = (event) => {
    if (!arrows[event.key]) return
    point(cursor.row + arrows[event.key][0], cursor.column + arrows[event.key][1])
    event.preventDefault()
  }
  for (const [text, pair = ""] of about.examples.map((one) => [one].flat())) {
    $("examples").append(make("button", { type: "button", textContent: pair ? `${text} + ${pair}` : text, onclick: () => fill({ text, pair }) }))
  }
  $("form").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => change({ text: $("text").value, pair: $("pair").value }), 150) }
  for (const choice of document.querySelectorAll("[type=radio]")) choice.onchange = () => change({ [choice.name]: choice.value })
  $("restore").onclick = () => { change({ off: new Set() }); document.querySelector("#grid [tabindex='0']").focus() } // the button goes grey
  $("switch").onclick = () => press(state.head, true)
  $("sweep").onclick = () => change({ view: "effects" })
  fillLists($("what"), $("of"), make, (measure) => change({ measure }))
  matchMedia("(prefers-color-scheme: dark)").onchange = onresize = () => now && draw()
  onhashchange = () => { const found = fromAddress(); fill(found, ignored) }
}

try {
  await load((done, all) => {
    $("progress").value = done / all
    say(`Loading the model: ${Math.round(done / 1e6)} of ${Math.round(all / 1e6)} MB`)
  })
  build()
  onhashchange()
} catch (error) { say(`The model could not be loaded: ${error.message}`, true) }
$("progress").hidden = true
globalThis.playground = { state, run, tokensOf, idle: () => !busy, outputs: () => ({ ...input, ...now, effects: [...effects], seconds: effects.seconds }) } // for tests
