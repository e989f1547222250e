// What was measured of every head: measured.json, fetched when it is first wanted.
let all, chosen // each number of a head, such as the loss added on a task; the one that is shown

export const make = (tag, parts = {}, ...inside) => {
  const one = Object.assign(document.createElement(tag), parts)
  one.append(...inside)
  return one
}
export const round = (value, digits) => {
  const text = value.toFixed(digits)
  return Number(text) ? text.replace("-", "−") : "0"
}

// Before it is drawn. The state names it, "6_disabling_heads|loss added|MRPC", or only the
// beginning of this; returns whether it is known.
export async function openMeasured(state, list) {
  if (!all) {
    all = await (await fetch("measured.json")).json()
    for (const one of all) one.key = [one.page, one.what, one.of].join("|")
    for (const [label, own] of Map.groupBy(all, (one) => one.group)) {
      const options = own.map((one) => make("option", { value: one.key }, `${one.what}: ${one.of}`))
      list.append(make("optgroup", { label }, ...options))
    }
  }
  const known = all.find((one) => one.key.startsWith(state.measure))
  chosen = known ?? all[0]
  list.value = state.measure = chosen.key
  return Boolean(known)
}

// The chosen one: values of all heads, what stands on them, its scale, and what is said of it.
export function measured() {
  const { what, of, unit, digits, says, value: values } = chosen
  const known = values.filter((one) => one !== null), most = Math.max(...known.map(Math.abs))
  const signed = known.some((one) => one < 0)
  return {
    values,
    text: (head) => textOf(chosen, head),
    short: (value) => round(value, Math.abs(value) < 10 ? Math.min(1, digits) : 0)
      .replace(/^(−?)0\./, "$1."),
    unit: `${what}, ${of}${unit && `, in ${unit}`}`,
    along: (value) => value / most, // the scale, from -1 or 0 to 1
    ticks: signed ? [-most, 0, most] : [0, most],
    tick: (value) => round(value, most < 2 ? 2 : 0),
    said: [
      `${says} Measured with multilingual E5-small on many sentences, not on yours; explained in `,
      link(chosen), ". Click a head to see all its numbers.",
    ],
  }
}

// All numbers of one head.
export function cardOf(head) {
  const cells = (one) => [make("td", {}, one.of), make("td", {}, textOf(one, head))]
  const rows = ([what, own]) => [
    make("tr", {}, make("th", { colSpan: 2 }, `${what} (`, link(own[0]), ")")),
    ...own.map((one) => make("tr", { className: one === chosen ? "chosen" : "" }, ...cells(one))),
  ]
  return [...Map.groupBy(all, (one) => one.group)].map(([group, own]) => {
    const table = [...Map.groupBy(own, (one) => one.what)].flatMap(rows)
    const open = own.includes(chosen)
    return make("details", { open }, make("summary", {}, group), make("table", {}, ...table))
  })
}

const link = ({ page }) =>
  make("a", { href: `../notebooks/${page}.html` }, `notebook ${page.split("_")[0]}`)

function textOf({ unit, digits, value, low, high }, head) {
  if (value[head] === null) return "–"
  const text = `${round(value[head], digits)} ${unit.startsWith("1") ? "" : unit}`
  return low ? `${text} [${round(low[head], digits)}, ${round(high[head], digits)}]` : text
}
