// What was measured of every head, in measured.json, which is fetched when it is first wanted.
export const round = (value, digits) => ((text) => (Number(text) ? text.replace("-", "−") : "0"))(value.toFixed(digits))
let all, chosen // each number of a head, such as the loss added on a task, and the one that is shown

// Before it is drawn. The state names it, "6_disabling_heads|loss added|MRPC", or only its beginning; returns what is not known.
export async function openMeasured(state, list, make) {
  if (!all) {
    all = await (await fetch("measured.json")).json()
    for (const one of all) one.key = [one.page, one.what, one.of].join("|")
    for (const [label, own] of Map.groupBy(all, (one) => one.group)) {
      list.append(make("optgroup", { label }, ...own.map(({ key, what, of }) => make("option", { value: key, textContent: `${what}: ${of}` }))))
    }
  }
  const known = all.find((one) => one.key === state.measure) ?? all.find((one) => one.key.startsWith(state.measure))
  const unknown = known ? [] : [`measure=${state.measure}`]
  chosen = known ?? all[0]
  list.value = state.measure = chosen.key
  return unknown
}

const link = ({ page }, make) => make("a", { href: `../notebooks/${page}.html`, textContent: `notebook ${page.split("_")[0]}` })
const textOf = ({ unit, digits, ...lists }, head) => {
  const [one, ...ends] = ["value", "low", "high"].filter((name) => name in lists).map((name) => lists[name][head])
  if (one === null) return "–"
  return [round(one, digits), unit.startsWith("1") ? "" : unit, ends.length ? `[${ends.map((end) => round(end, digits)).join(", ")}]` : ""].filter(Boolean).join(" ")
}

// The chosen one: values of all heads, what stands on them, and what is said of them.
export function measured(make) {
  const { what, of, unit, digits, says, value: values } = chosen
  const short = values.map((one) => (one === null ? "–" : round(one, Math.abs(one) < 10 ? Math.min(1, digits) : 0).replace(/^(−?)0\./, "$1.")))
  const said = [`${says} Measured with multilingual E5-small on many sentences, not on yours; explained in `, link(chosen, make), ". Click a head to see all its numbers."]
  return { values, short, said, texts: values.map((_, head) => textOf(chosen, head)), unit: `${what}, ${of}${unit && `, in ${unit}`}` }
}

// All numbers of one head.
export function drawCard(card, head, make) {
  const row = (one) => make("tr", { className: one === chosen ? "chosen" : "" }, make("td", { textContent: one.of }), make("td", { textContent: textOf(one, head) }))
  const rows = ([what, own]) => [make("tr", {}, make("th", { colSpan: 2 }, `${what} (`, link(own[0], make), ")")), ...own.map(row)]
  card.replaceChildren(...[...Map.groupBy(all, (one) => one.group)].map(([group, own]) =>
    make("details", { open: own.includes(chosen) }, make("summary", { textContent: group }), make("table", {}, ...[...Map.groupBy(own, (one) => one.what)].flatMap(rows)))))
}
