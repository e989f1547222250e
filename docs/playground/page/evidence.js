// Numbers of every head that were measured on real data: evidence.json, which is fetched when it is first wanted.
const PLAIN = "|share of [CLS] of each head, by weight|" // to begin with
let measures, lists, chosen

const group = (list, name) => Map.groupBy(list, (one) => one[name])

// Before it is drawn: the measures, of which the state names one, "6_disabling_heads|gain without a head|MRPC, run 1", or
// only its beginning. Returns what is not known.
export async function openEvidence(state) {
  measures ??= await (await fetch("evidence.json")).json()
  const like = (fits) => measures.find((one) => fits(key(one)))
  const found = state.measure && (like((name) => name === state.measure) ?? like((name) => name.startsWith(state.measure)))
  const unknown = state.measure && !found ? [`measure=${state.measure}`] : []
  chosen = found || like((name) => name.includes(PLAIN)) || measures[0]
  state.measure = key(chosen)
  const { what, of, make } = lists
  if (!what.length) {
    for (const [title, own] of group(measures, "title")) {
      const options = [...group(own, "what").values()].map(([first]) => make("option", { value: key(first), textContent: first.what }))
      what.append(make("optgroup", { label: title }, ...options))
    }
  }
  const alike = measures.filter((one) => one.page === chosen.page && one.what === chosen.what)
  what.value = key(alike[0])
  of.replaceChildren(...alike.map((one) => make("option", { value: key(one), textContent: one.of || "all" })))
  of.value = key(chosen)
  return unknown
}

const key = ({ page, what, of }) => [page, what, of].join("|")

// The chosen measure, with a name in which its unit stands, as texts have it: "+0.5 points [+0.1, +0.9]".
export function evidence() {
  const unit = (chosen.texts.find((one) => one !== "–") ?? "").replace(/^[^ ]+ ?/, "").replace(/ ?\[.*/, "")
  return { ...chosen, name: [chosen.what, chosen.of, unit && `in ${unit}`].filter(Boolean).join(", ") }
}

export function fillLists(what, of, make, choose) {
  lists = { what, of, make }
  for (const list of [what, of]) list.onchange = () => choose(list.value)
}

// All numbers of one head, page by page.
export function drawCard(card, head, make) {
  const pages = [...group(measures, "title")].map(([title, own]) => {
    const rows = [...group(own, "what")].flatMap(([what, parts]) => [
      make("tr", {}, make("th", { colSpan: 2, textContent: what })),
      ...parts.map((one) => make("tr", { className: one === chosen ? "chosen" : "" },
        make("td", { textContent: [one.of, sizes(one)].filter(Boolean).join("; ") }), make("td", { textContent: one.texts[head] }))),
    ])
    const link = make("a", { href: `../notebooks/${own[0].page}.html`, textContent: `notebook ${title}` })
    const files = [...group(own, "file").keys()].join(", ")
    return make("details", { open: own[0].page === chosen.page }, make("summary", { textContent: title }),
      make("p", { className: "soft" }, "Measured on real data in ", link, ` (${files})`), make("table", {}, ...rows))
  })
  card.replaceChildren(...pages)
  const row = card.querySelector(".chosen")
  if (row) card.scrollTop += row.getBoundingClientRect().top - card.getBoundingClientRect().top - 90
}

function sizes({ n, runs }) {
  return [n && `${n} examples`, runs > 1 && `${runs} runs`].filter(Boolean).join(", ")
}
