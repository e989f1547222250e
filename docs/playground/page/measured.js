// What was measured of every head, in measured.json, which is fetched when it is first wanted.
export const round = (value, digits) => ((text) => (Number(text) ? text.replace("-", "−") : "0"))(value.toFixed(digits))
let measures, lists, chosen, part

// Before it is drawn: the measures, of which the state names one, "6_disabling_heads|loss added|MRPC", or only its
// beginning. Returns what is not known.
export async function openMeasured(state) {
  measures ??= await (await fetch("measured.json")).json()
  const all = measures.flatMap((one) => one.parts.map((own) => [one, own]))
  const like = (fits) => all.find((pair) => fits(key(...pair)))
  const found = like((name) => name === state.measure) ?? like((name) => name.startsWith(state.measure))
  const unknown = found ? [] : [`measure=${state.measure}`]
  ;[chosen, part] = found ?? all[0]
  state.measure = key(chosen, part)
  const { what, of, make } = lists, option = (value, textContent) => make("option", { value, textContent })
  if (!what.length) {
    for (const [label, own] of Map.groupBy(measures, (one) => one.group)) {
      what.append(make("optgroup", { label }, ...own.map((one) => option(key(one, one.parts[0]), one.what))))
    }
  }
  what.value = key(chosen, chosen.parts[0])
  of.replaceChildren(...chosen.parts.map((one) => option(key(chosen, one), one.of)))
  of.value = state.measure
  return unknown
}

const key = ({ page, what }, { of }) => [page, what, of].join("|")
const textOf = ({ unit, digits }, { value, low, high }, head) => {
  if (value[head] === null) return "–"
  const [one, ...ends] = [value, low, high].filter(Boolean).map((list) => round(list[head], digits))
  return [one, unit === "1 − cosine" ? "" : unit, ends.length ? `[${ends.join(", ")}]` : ""].filter(Boolean).join(" ")
}

// The chosen measure: values of all heads, what stands on them, and what is said of them.
export function measured() {
  const { what, unit, digits, says, page, title } = chosen
  const short = part.value.map((one) => (one === null ? "–" : round(one, Math.abs(one) < 10 ? Math.min(1, digits) : 0).replace(/^(−?)0\./, "$1.")))
  const texts = part.value.map((_, head) => textOf(chosen, part, head))
  return { values: part.value, short: digits ? short : part.value.map((one) => (one === null ? "–" : round(one, 0))), texts, name: `${what}, ${part.of}${unit && `, in ${unit}`}`, says, page, title }
}

export function fillLists(what, of, make, choose) {
  lists = { what, of, make }
  for (const list of [what, of]) list.onchange = () => choose(list.value)
}

// All numbers of one head.
export function drawCard(card, head, make) {
  const groups = [...Map.groupBy(measures, (one) => one.group)].map(([group, own]) => {
    const rows = own.flatMap((one) => [
      make("tr", {}, make("th", { colSpan: 2 }, `${one.what} (`, make("a", { href: `../notebooks/${one.page}.html`, textContent: one.title }), ")")),
      ...one.parts.map((each) => make("tr", { className: each === part ? "chosen" : "" }, make("td", { textContent: each.of }), make("td", { textContent: textOf(one, each, head) }))),
    ])
    return make("details", { open: own.includes(chosen) }, make("summary", { textContent: group }), make("table", {}, ...rows))
  })
  card.replaceChildren(...groups)
  const row = card.querySelector(".chosen")
  if (row) card.scrollTop += row.getBoundingClientRect().top - card.getBoundingClientRect().top - 90
}
