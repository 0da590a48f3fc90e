import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { start } from './server.ts'
import { scratch, svcServe } from './svc.ts'

const PATH = '/api/v1/conversations'
/** 100,000 messages: a question and an answer a turn. */
const [CONVERSATIONS, TURNS, PART] = [1_000, 50, 100]
const [WORDS, LENGTH] = [20_000, 30]
const [WARM, SEARCHES] = [50, 400]
/** The scheme that names a principal by its scopes. */
const SCHEME = fileURLToPath(new URL('../../test/api/samples/scopes/plugin.ts', import.meta.url))
const [OWNER, ADMIN] = ['chat read', 'admin chat']
const MUST_MS = 50

/** Deterministic numbers from 0 to 1. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

/** Words of a vocabulary, the first ones often, as in a language. */
const random = numbers(7)
const word = () => `w${Math.floor(WORDS ** random())}`
const sentence = () => Array.from({ length: LENGTH }, word).join(' ')

function conversation(number: number): string {
  const lines: object[] = [{ type: 'conversation', version: 1, title: `number n${number}` }]
  for (let turn = 0; turn < TURNS; turn++) {
    const said = (role: string) => ({ role, parts: [{ type: 'text', text: `${sentence()} m${number}x${turn}` }] })
    lines.push({ type: 'turn', messages: [said('user'), said('assistant')] })
  }
  return lines.map(line => JSON.stringify(line)).join('\n')
}

const QUERIES: Readonly<Record<string, () => string>> = {
  'one rare word': () => `m${Math.floor(random() * CONVERSATIONS)}x${Math.floor(random() * TURNS)}`,
  'the most frequent word': () => 'w1',
  'two words': () => `w${1 + Math.floor(random() * 50)} w${50 + Math.floor(random() * 500)}`,
  'a phrase': () => `"w${1 + Math.floor(random() * 5)} w${1 + Math.floor(random() * 5)}"`,
  'the beginning of a word': () => `w${10 + Math.floor(random() * 90)}*`,
}

/** Warm searches over 100,000 messages, as one principal sees them and as an admin does. */
export async function* conversations({ svc }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const port = await freePort()
  const plugins = [SCHEME, { use: '@svc/plugin-auth-api-key', enabled: false }]
  const config = { plugins, server: { auth: { enabled: true } } }
  await using server = await start(svcServe(svc, port, folder.path, config), port)
  const ask = async (path: string, scopes: string, content?: string) => {
    const headers = { 'x-scopes': scopes, 'content-type': 'application/json' }
    const body = content === undefined ? {} : { method: 'POST', body: JSON.stringify({ content }) }
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...body })
    if (!answer.ok) throw new Error(`${answer.status} of ${path}: ${await answer.text()}`)
    return (await answer.json()) as { conversations: readonly unknown[] }
  }
  const search = async (q: string, scopes: string) => {
    const began = performance.now()
    const { conversations: found } = await ask(`${PATH}?limit=20&q=${encodeURIComponent(q)}`, scopes)
    return { ms: performance.now() - began, found: found.length }
  }
  for (let from = 0; from < CONVERSATIONS; from += PART) {
    const content = Array.from({ length: PART }, (_, at) => conversation(from + at)).join('\n')
    await ask(`${PATH}/import`, OWNER, content)
  }
  // the index follows
  for (let number = 0; number < CONVERSATIONS; ) {
    if ((await search(`m${number}x${TURNS - 1}`, OWNER)).found > 0) number += 1
    else await wait(100)
  }
  for (const [who, scopes] of [
    ['of a principal', OWNER],
    ['of an admin', ADMIN],
  ] as const)
    for (const [what, query] of Object.entries(QUERIES)) {
      const times: number[] = []
      for (let at = 0; at < WARM; at++) await search(query(), scopes)
      const cpu = server.cpu()
      for (let at = 0; at < SEARCHES; at++) times.push((await search(query(), scopes)).ms)
      const used = (server.cpu() - cpu) / 1000 / SEARCHES
      const value = times.toSorted((a, b) => a - b)[Math.floor(SEARCHES * 0.95)]!
      yield {
        bench: 'conversations',
        what: `search ${who} in 100,000 messages, ${what}, p95`,
        value,
        unit: 'ms',
        anchor: 'the limit',
        anchorValue: MUST_MS,
        ratio: value / MUST_MS,
        better: 'less',
        must: 1,
        note: `${used.toFixed(1)} ms of processor time each`,
      }
    }
}
