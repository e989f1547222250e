// Run by Bokeh when its figures are drawn, with: source (a row per head), cells (of the map), colours, scatter,
// palettes (without and with a sign), catalogue (JSON; see page.py). Text reaches the page as text, never as HTML.
const atlas = JSON.parse(catalogue)
const byId = (name) => document.getElementById(`atlas-${name}`)
const count = atlas.layers * atlas.heads
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
    : size >= 0.001 ? value.toFixed(3) : value.toExponential(0)
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
const titled = (measure) => measure.data ? `${measure.name} (${measure.data})` : measure.name
const chosenMeasure = (axis) => atlas.measures.find((one) => one.name === byId(axis).value && one.data === byId(`${axis}-data`).value)

function listData(axis) {
  const select = byId(`${axis}-data`)
  const entries = atlas.measures.filter((one) => one.name === byId(axis).value)
    .map((one) => ({ value: one.data, text: one.data || "as given", heading: one.data.split(" · ")[0] }))
  fill(select, entries, select.value)
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
  byId("x-title").textContent = `Colour: ${titled(x)}. ${x.signed ? "Red is above 0, blue below." : "Dark is more."}`
  byId("y-title").textContent = `Up: ${titled(y)}. Across: the colour. A dot is a head, n = ${count}.`
  card()
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
  const whole = `${x.data.split(" · ")[0]} · all tasks`
  const rows = atlas.measures.filter((one) => one.data === x.data || one.data === whole || one.name === byId("y").value && one.data === byId("y-data").value)
  element("p", `${x.data ? `Numbers on ${x.data}; “measured on” chooses others. ` : ""}Rank 1 is the largest of ${count} heads.`, place, "atlas-note")
  for (const topic of new Set(rows.map((one) => one.topic))) {
    const folded = element("details", "", place)
    folded.open = topic === x.topic
    const inside = rows.filter((one) => one.topic === topic)
    element("summary", `${topic}: ${inside.length} number${inside.length === 1 ? "" : "s"}`, folded)
    const table = element("table", "", folded)
    const head = element("tr", "", element("thead", "", table))
    for (const title of ["measure", "value", "rank"]) element("th", title, head)
    const body = element("tbody", "", table)
    for (const one of inside) {
      const row = element("tr", "", body, one === x ? "atlas-chosen" : "")
      element("td", (one.data === x.data ? one.name : titled(one)) + (one.n ? `, n = ${one.n}` : ""), row)
      element("td", withInterval(one, index), row)
      element("td", rank(one, index), row)
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

for (const [axis, place] of [["x", 0], ["y", 1]]) {
  fill(byId(axis), names, names[Math.min(place, names.length - 1)].value)
  if (names.some((one) => one.value === atlas.first[place])) byId(axis).value = atlas.first[place]
  listData(axis)
  byId(axis).onchange = () => { listData(axis); redraw() }
  byId(`${axis}-data`).onchange = redraw
}
fill(byId("head"), Array.from({ length: count }, (_, index) => ({ value: String(index), text: headName(index), heading: `layer ${Math.floor(index / atlas.heads) + 1}` })), "0")
byId("head").onchange = () => { source.selected.indices = [Number(byId("head").value)] }
source.selected.properties.indices.change.connect(card)
source.selected.indices = [0]
redraw()
byId("card").dataset.ready = "true"
