// The model in the browser: loaded, fed with a text, run with some heads disabled. No server, no other host.
import * as ort from "./vendor/ort.mjs"
import { Tokenizer } from "./vendor/tokenizers.mjs"

export let about // of the model: playground.json
let session, tokenizer

export async function load(progress) {
  if (typeof WebAssembly !== "object") throw new Error("this browser has no WebAssembly, which runs it")
  about = await fetched("playground.json").then((answer) => answer.json())
  ort.env.wasm.wasmPaths = new URL("vendor/", import.meta.url).href
  ort.env.wasm.numThreads = 1 // more need headers that static hosts do not send, and gain nothing on short texts
  ort.env.wasm.proxy = true // in a worker, so that the page answers while the model computes
  const rules = fetched("tokenizer.json").then((answer) => answer.json())
  const bytes = await download(progress)
  tokenizer = new Tokenizer(await rules, { tokenizer_class: "BertTokenizer" })
  session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] })
}

async function fetched(address) {
  const answer = await fetch(address)
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`)
  return answer
}

async function download(progress) {
  const reader = (await fetched(`model.onnx?${about.bytes}`)).body.getReader(), bytes = new Uint8Array(about.bytes)
  for (let at = 0, part; !(part = await reader.read()).done; progress(at, about.bytes)) {
    bytes.set(part.value, at)
    at += part.value.length
  }
  return bytes
}

// Tokens of a sentence or a pair: special ones with them, cut where it is too long, as Python's tokenizer does.
export function tokensOf(text, pair) {
  const found = tokenizer.encode(text, { text_pair: pair || null, return_token_type_ids: true })
  const { ids, tokens, token_type_ids: types } = found
  const first = pair ? types.indexOf(1) : ids.length // tokens of the first sentence, [CLS] and [SEP] among them
  const sizes = pair ? [first - 2, ids.length - first - 1] : [ids.length - 2]
  const kept = shortened(sizes, about.longest - (pair ? 3 : 2))
  const stays = ids.map((_, at) => at === 0 || at === first - 1 || at === ids.length - 1
    || (at < first ? at <= kept[0] : at - first < kept[1]))
  const [those, words, segments] = [ids, tokens, types].map((list) => list.filter((_, at) => stays[at]))
  return { ids: those, tokens: words, types: segments, length: ids.length }
}

// The longer sentence loses first.
function shortened(sizes, room) {
  if (sizes.reduce((a, b) => a + b) <= room) return sizes
  if (sizes.length < 2) return [room]
  const short = Math.min(...sizes), half = Math.floor(room / 2)
  const [less, more] = 2 * short <= room ? [short, room - short] : [half, room - half]
  return sizes[0] > sizes[1] ? [more, less] : [less, more]
}

// Outputs for several sets of disabled heads, in one run; of no more kinds than are wanted.
export async function run({ ids, types }, sets, ablation, wanted) {
  const integers = (list) => new ort.Tensor("int64", BigInt64Array.from(list, BigInt), [1, list.length])
  const count = about.layers * about.heads, off = new Float32Array(sets.length * count)
  sets.forEach((set, place) => set.forEach((head) => { off[place * count + head] = 1 }))
  const zero = new ort.Tensor("float32", [Number(ablation === "zero")], [1])
  const given = { input_ids: integers(ids), token_type_ids: integers(types), zero }
  given.off = new ort.Tensor("float32", off, [sets.length, about.layers, about.heads])
  const outputs = await session.run(given, wanted)
  return Object.fromEntries(wanted.map((name) => [name, outputs[name].data]))
}
