// Run by Bokeh when its figures are drawn, with: source (a row per head), focus (the head where the keyboard is), cells (of the map), colours, scatter,
// palettes (without and with a sign), catalogue (JSON; see page.py). Text reaches the page as text, never as HTML.
const atlas = JSON.parse(catalogue)
const byId = (name) => document.getElementById(`atlas-${name}`)
const count = atlas.layers * atlas.heads
const allTasks = "all tasks"
const headName = (index) => `(${Math.floor(index / atlas.heads) + 1}, ${index % atlas.heads + 1})`

// Short enough for an axis; what Bokeh would take for mathematics, and fetch a script for, is kept apart by an invisible sign.
const plain = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text).replace(/\$\$|\\[[\]()]/g, (signs) => `${signs[0]}\u2060${signs[1]}`)

function element(kind, text = "", parent = null, look = "") {
  const one = document.createElement(kind)
  one.textContent = text
  if (look) one.className = look
  if (parent) parent.appendChild(one)
  return one
}

// Options under headings; entries are {value, text, heading}.
function fill(select, entries, wanted) {
  select.replaceChildren()
  const groups = new Map()
  for (const { value, text, heading } of entries) {
    if (heading && !groups.has(heading)) {
      groups.set(heading, select.appendChild(document.createElement("optgroup")))
      groups.get(heading).label = heading
    }
    element("option", text, heading ? groups.get(heading) : select).value = value
  }
  if (entries.some((entry) => entry.value === wanted)) select.value = wanted
}

function number(value, signed = false) {
  if (value == null) return "not measured"
  const size = Math.abs(value)
  const text = size === 0 ? "0" : size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2)
    : size >= 0.001 ? value.toFixed(3) : value.toPrecision(1)
  return (signed && value > 0 ? "+" : "") + text.replace("-", "−")
}

function withInterval(measure, index) {
  const value = number(measure.values[index], measure.signed)
  const ends = measure.low ? [measure.low[index], measure.high[index]] : [null, null]
  return ends[0] == null || ends[1] == null ? value : `${value} [${ends.map((end) => number(end, measure.signed)).join(", ")}]`
}

function rank(measure, index) {
  const here = measure.values[index]
  return here == null ? "–" : String(1 + measure.values.filter((value) => value != null && value > here).length)
}

const names = [...new Map(atlas.measures.map((one) => [one.name, { value: one.name, text: one.name, heading: one.topic }])).values()]
const where = (measure) => [measure.data, measure.task].filter(Boolean).join(" · ")
const titled = (measure) => measure.data ? `${measure.name} (${where(measure)})` : measure.name
const chosenMeasure = (axis) => atlas.measures.find((one) =>
  one.name === byId(axis).value && one.data === byId(`${axis}-data`).value && one.task === byId(`${axis}-task`).value)

// What there is of a measure; what was chosen before stays where it is there, too.
function list(axis) {
  let left = atlas.measures.filter((one) => one.name === byId(axis).value)
  for (const part of ["data", "task"]) {
    const select = byId(`${axis}-${part}`)
    const values = [...new Set(left.map((one) => one[part]))]
    fill(select, values.map((value) => ({ value, text: value || "as given" })), select.value)
    left = left.filter((one) => one[part] === select.value)
  }
}

function redraw() {
  for (const axis of ["x", "y"]) {
    const measure = chosenMeasure(axis)
    source.data[axis] = measure.values.map((value) => value ?? NaN)
    source.data[`${axis}_text`] = measure.values.map((_, index) => withInterval(measure, index))
  }
  const [x, y] = ["x", "y"].map(chosenMeasure)
  const measured = x.values.filter((value) => value != null)
  const reach = Math.max(...measured.map(Math.abs), 1e-9)
  colours.palette = palettes[x.signed ? 1 : 0]
  colours.low = x.signed ? -reach : Math.min(...measured)
  colours.high = x.signed ? reach : Math.max(...measured, colours.low + 1e-9)
  source.change.emit()
  scatter.below[0].axis_label = plain(x.name)
  scatter.left[0].axis_label = plain(y.name)
  byId("x-title").textContent = `Colour: ${titled(x)}. ${x.signed ? "Red is above 0, blue below." : "Dark is more."} Click a head.`
  byId("y-title").textContent = `Up: ${titled(y)}. Across: the colour. A dot is a head, n = ${count}.`
  drawTable(x)
  card()
}

function drawTable(measure) {
  const table = byId("table")
  table.replaceChildren()
  element("caption", `${titled(measure)}. A row is a layer, a column a head.`, table)
  const first = element("tr", "", element("thead", "", table))
  const heads = Array.from({ length: atlas.heads }, (_, head) => head)
  for (const title of ["layer", ...heads.map((head) => String(head + 1))]) element("th", title, first).scope = "col"
  const body = element("tbody", "", table)
  for (let layer = 0; layer < atlas.layers; layer++) {
    const row = element("tr", "", body)
    element("th", String(layer + 1), row).scope = "row"
    for (const head of heads) element("td", number(measure.values[layer * atlas.heads + head], measure.signed), row)
  }
}

// The numbers of a card: those of the data and task shown, and those that there are for all tasks only.
function cardRows(x) {
  const y = chosenMeasure("y")
  const here = atlas.measures.filter((one) => one === y || one.data === x.data && [x.task, allTasks].includes(one.task))
  const topics = new Set(here.map((one) => one.topic))
  return atlas.measures.filter((one) => here.includes(one) || one.task === allTasks && !topics.has(one.topic))
}

function card() {
  const place = byId("card")
  const chosen = source.selected.indices
  const index = chosen.length ? chosen[0] : 0
  byId("head").value = String(index)
  place.replaceChildren()
  element("h2", `Layer ${Math.floor(index / atlas.heads) + 1}, head ${index % atlas.heads + 1}`, place)
  if (chosen.length > 1) element("p", `${chosen.length} heads are chosen: ${chosen.map(headName).join(", ")}. This is the first.`, place, "atlas-note")
  const x = chosenMeasure("x")
  const rows = cardRows(x)
  const on = x.data ? `Numbers on ${where(x)}; “Data” and “Task” choose others. ` : ""
  element("p", `${on}In brackets 95 % intervals. Rank 1 is the largest of ${count} heads.`, place, "atlas-note")
  for (const topic of new Set(rows.map((one) => one.topic))) {
    const folded = element("details", "", place)
    folded.open = topic === x.topic
    const inside = rows.filter((one) => one.topic === topic)
    element("summary", `${topic}: ${inside.length} number${inside.length === 1 ? "" : "s"}`, folded)
    const table = element("table", "", folded)
    const head = element("tr", "", element("thead", "", table))
    for (const title of ["measure", "value", "rank"]) element("th", title, head).scope = "col"
    const body = element("tbody", "", table)
    for (const one of inside) {
      const row = element("tr", "", body, one === x ? "atlas-chosen" : "")
      element("th", (one.data === x.data && one.task === x.task ? one.name : titled(one)) + (one.n ? `, n = ${one.n}` : ""), row).scope = "row"
      element("td", withInterval(one, index), row)
      element("td", rank(one, index), row)
    }
    for (const why of new Set(inside.filter((one) => !one.low).map((one) => one.lacks))) {
      const without = inside.filter((one) => !one.low && one.lacks === why).length
      element("p", `${without === inside.length ? "No interval" : `No interval for ${without} of ${inside.length}`}: ${why}.`, folded, "atlas-note")
    }
  }
  drawMap(index)
}

function drawMap(index) {
  if (!atlas.maps) return
  const { tokens, weights, text, model } = atlas.maps
  const size = tokens.length
  const places = Array.from({ length: size * size }, (_, cell) => [Math.floor(cell / size), cell % size])
  cells.data = {
    row: places.map(([row]) => row + 1),
    column: places.map(([, column]) => column + 1),
    from: places.map(([row]) => tokens[row]),
    to: places.map(([, column]) => tokens[column]),
    weight: weights.slice(index * size * size, (index + 1) * size * size),
  }
  byId("map-title").textContent = `Attention map of head ${headName(index)} of ${model}: “${text}” Dark is a weight near 1.`
}

// With the keyboard: where it is has a broken edge, and is told; Enter chooses.
let at = 0
const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -count], End: [0, count] }
const kept = (value, most) => Math.min(Math.max(value, 0), most - 1)

function look() {
  const [layer, head] = [Math.floor(at / atlas.heads), at % atlas.heads]
  focus.data = { layer: [layer + 1], head: [head + 1] }
  byId("at").textContent = `Layer ${layer + 1}, head ${head + 1}: ${source.data.x_text[at]}. Enter opens its card.`
}

byId("keys").onkeydown = (event) => {
  const step = steps[event.key]
  if (step) at = kept(Math.floor(at / atlas.heads) + step[0], atlas.layers) * atlas.heads + kept(at % atlas.heads + step[1], atlas.heads)
  else if (event.key === "Enter" || event.key === " ") source.selected.indices = [at]
  else return
  event.preventDefault()
  look()
}
byId("keys").onfocus = () => { if (byId("keys").matches(":focus-visible")) look() }
byId("keys").onblur = () => { focus.data = { layer: [], head: [] } }

for (const [axis, place] of [["x", 0], ["y", 1]]) {
  fill(byId(axis), names, names[Math.min(place, names.length - 1)].value)
  if (names.some((one) => one.value === atlas.first[place])) byId(axis).value = atlas.first[place]
  list(axis)
  for (const part of ["", "-data", "-task"]) byId(axis + part).onchange = () => { list(axis); redraw() }
}
fill(byId("head"), Array.from({ length: count }, (_, index) => ({ value: String(index), text: headName(index), heading: `layer ${Math.floor(index / atlas.heads) + 1}` })), "0")
byId("head").onchange = () => { source.selected.indices = [Number(byId("head").value)] }
source.selected.properties.indices.change.connect(() => { at = source.selected.indices[0] ?? at; card() })
source.selected.indices = [0]
redraw()
byId("card").dataset.ready = "true"
