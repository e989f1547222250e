// The model in the browser: loaded, fed with a text, run with some heads disabled. No server, no other host.
import * as ort from "./vendor/ort.mjs"
import { Tokenizer } from "./vendor/tokenizers.mjs"

const RUNTIME = "vendor/ort-wasm-simd-threaded"
export let about // of the model: playground.json
let session, tokenizer

// What is there at once: what the model is, and what it does with the first example: tokens, maps, answer, effects.
export async function open() {
  about = await fetched("playground.json").then((answer) => answer.json())
  const numbers = new Uint16Array(await fetched("first.bin").then((answer) => answer.arrayBuffer()))
  const shares = Float32Array.from(numbers, (one) => one / 65535), half = shares.length / 2
  return { ...about.first, length: about.first.ids.length, weights: shares.subarray(0, half), norms: shares.subarray(half) }
}

export async function load(progress) {
  if (typeof WebAssembly !== "object") throw new Error("this browser has no WebAssembly, which runs it")
  const counts = [0, 0], all = about.bytes + about.runtime
  const counted = (at) => (done) => { counts[at] = done; progress(counts[0] + counts[1], all) }
  const [rules, bytes, runtime] = await Promise.all([
    fetched("tokenizer.json").then((answer) => answer.json()),
    download(`model.onnx?${about.bytes}`, about.bytes, counted(0)),
    download(`${RUNTIME}.wasm`, about.runtime, counted(1)),
  ])
  const wasm = URL.createObjectURL(new Blob([runtime], { type: "application/wasm" }))
  ort.env.wasm.wasmPaths = { wasm, mjs: new URL(`${RUNTIME}.mjs`, import.meta.url).href }
  ort.env.wasm.numThreads = 1 // more need headers that static hosts do not send, and gain nothing on short texts
  ort.env.wasm.proxy = true // in a worker, so that the page answers while the model computes
  tokenizer = tokenizerOf(rules)
  session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"], extra: { session: { disable_quant_qdq: "1" } } }) // weights are unpacked once
}

const tokenizerOf = (rules) => new Tokenizer(rules, { tokenizer_class: about.texts.length > 1 ? "BertTokenizer" : "PreTrainedTokenizerFast" })
export const isLoaded = () => session !== undefined

async function fetched(address) {
  const answer = await fetch(address)
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`)
  return answer
}

async function download(address, size, progress) {
  const reader = (await fetched(address)).body.getReader(), bytes = new Uint8Array(size)
  for (let at = 0, part; !(part = await reader.read()).done; progress(at)) {
    bytes.set(part.value, at)
    at += part.value.length
  }
  return bytes
}

// Tokens of a sentence or a pair: special ones with them, cut where it is too long, as Python's tokenizer does.
export function tokensOf(text, pair) {
  const { ids, tokens, token_type_ids: types } = tokenizer.encode(text, { text_pair: pair || null, return_token_type_ids: true })
  const sizes = [text, pair].filter(Boolean).map((one) => tokenizer.encode(one).ids.length - 2), kept = shortened(sizes, about.longest - ids.length + sizes.reduce((a, b) => a + b))
  const second = ids.length - 1 - sizes.at(-1) // where the last sentence begins
  const cut = (at) => (at > kept[0] && at <= sizes[0]) || (pair && at >= second + kept[1] && at < second + sizes[1])
  const [those, words, segments] = [ids, tokens, types].map((list) => list.filter((_, at) => !cut(at)))
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
  const texts = { input_ids: ids, token_type_ids: types }, given = { zero: new ort.Tensor("float32", [Number(ablation === "zero")], [1]) }
  for (const name of about.texts) given[name] = integers(texts[name])
  given.off = new ort.Tensor("float32", off, [sets.length, about.layers, about.heads])
  const outputs = await session.run(given, wanted)
  return Object.fromEntries(wanted.map((name) => [name, outputs[name].data]))
}
