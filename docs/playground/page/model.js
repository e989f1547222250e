// The model in the browser: loaded, fed with a text, run with some heads disabled. No other host.
import * as ort from "./vendor/ort.mjs"
import { Tokenizer } from "./vendor/tokenizers.mjs"

const RUNTIME = "vendor/ort-wasm-simd-threaded"
export let about // of the model: playground.json
let session, tokenizer

// What is there at once: what the model is, and what it does with the first example.
export async function open() {
  about = await (await fetched("playground.json")).json()
  return about.first
}

export async function load(progress) {
  let loaded = 0
  const count = (bytes) => progress((loaded += bytes), about.bytes + about.runtime)
  const [rules, model, runtime] = await Promise.all([
    fetched("tokenizer.json").then((answer) => answer.json()),
    download(`model.onnx?${about.bytes}`, count),
    download(`${RUNTIME}.wasm`, count),
  ])
  const wasm = URL.createObjectURL(new Blob([runtime], { type: "application/wasm" }))
  ort.env.wasm.wasmPaths = { wasm, mjs: new URL(`${RUNTIME}.mjs`, import.meta.url).href }
  ort.env.wasm.numThreads = 1 // more need headers that static hosts do not send
  ort.env.wasm.proxy = true // in a worker, so that the page answers while the model computes
  tokenizer = tokenizerOf(rules)
  const extra = { session: { disable_quant_qdq: "1" } } // weights are unpacked once
  session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"], extra })
}

export const isLoaded = () => session !== undefined

const tokenizerOf = (rules) =>
  new Tokenizer(rules, { tokenizer_class: about.texts.length > 1 ? "BertTokenizer" : "" })

async function fetched(address) {
  const answer = await fetch(address)
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`)
  return answer
}

async function download(address, count) {
  const counted = new TransformStream({
    transform(part, out) { count(part.length); out.enqueue(part) },
  })
  const answer = await fetched(address)
  return new Uint8Array(await new Response(answer.body.pipeThrough(counted)).arrayBuffer())
}

// Tokens of a sentence or a pair, special ones with them: cut as Python's tokenizer does.
export function tokensOf(text, pair) {
  const options = { text_pair: pair || null, return_token_type_ids: true }
  const { ids, tokens, token_type_ids: types } = tokenizer.encode(text, options)
  const sizes = [text, pair].map((one) => (one ? tokenizer.encode(one).ids.length - 2 : 0))
  const kept = shortened(sizes, about.longest - ids.length + sizes[0] + sizes[1])
  const second = ids.length - 1 - sizes[1] // where the pair's second sentence begins
  const isKept = (_, at) => at <= kept[0] || (at > sizes[0] && at < second + kept[1])
    || at >= second + sizes[1]
  return {
    ids: ids.filter(isKept), tokens: tokens.filter(isKept), types: types.filter(isKept),
    length: ids.length,
  }
}

// The longer sentence loses first.
function shortened([first, second], room) {
  if (first + second <= room) return [first, second]
  const short = Math.min(first, second, Math.floor(room / 2))
  return first > second ? [room - short, short] : [short, room - short]
}

// Outputs for several sets of disabled heads, in one run; of no more kinds than are wanted.
export async function run({ ids, types }, sets, ablation, wanted) {
  const { layers, heads } = about, off = new Float32Array(sets.length * layers * heads)
  sets.forEach((set, at) => set.forEach((head) => { off[at * layers * heads + head] = 1 }))
  const given = {
    zero: new ort.Tensor("float32", [Number(ablation === "zero")], [1]),
    off: new ort.Tensor("float32", off, [sets.length, layers, heads]),
  }
  for (const name of about.texts) {
    const list = BigInt64Array.from(name === "input_ids" ? ids : types, BigInt)
    given[name] = new ort.Tensor("int64", list, [1, list.length])
  }
  const outputs = await session.run(given, wanted)
  return Object.fromEntries(wanted.map((name) => [name, outputs[name].data]))
}
