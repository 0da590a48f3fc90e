import { setTimeout as wait } from 'node:timers/promises'
import { leaveEarly, requestFor } from './client.ts'
import { run } from './load.ts'
import { freePort, residentOf } from './processes.ts'
import type { Figure } from './report.ts'
import { start } from './server.ts'
import { IN_MEMORY, scratch, SMALL_HEAP, svcServe } from './svc.ts'

const SETTLE_MS = 4_000
const CHATS = 100_000
/** Until then V8 touches new pages of its young generation. */
const WARM = 100_000
const STREAMS = 1_000
const AT_ONCE = 20

/** Memory growth with an upstream, over requests and then over abandoned streams. */
export async function* flat(svc: readonly string[], up: number): AsyncGenerator<Figure> {
  using folder = scratch()
  const port = await freePort()
  const entry = { type: 'openai', base_url: `http://127.0.0.1:${up}/v1`, models: ['fast-100', 'paced-500'] }
  const config = { ...IN_MEMORY, store: { max_records: 1_000 }, providers: { local: { enabled: false }, up: entry } }
  const program = svcServe(svc, port, folder.path, config)
  await using server = await start({ ...program, env: { ...program.env, NODE_OPTIONS: SMALL_HEAP } }, port)
  const resident = async () => {
    await wait(SETTLE_MS)
    return residentOf(server.pids.at(-1)!)
  }
  const chats = async (total: number) => {
    const request = requestFor('POST', '/api/v1/chat', { message: 'again' })
    for (let answered = 0; answered < total; )
      answered += (await run({ port, connections: 64, ms: 1_000, request, problemOf: () => undefined })).answers
    return resident()
  }
  const left = async () => {
    const request = requestFor('POST', '/api/v1/chat/stream', { message: 'again', model: 'paced-500' })
    for (let count = 0; count < STREAMS; count += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, () => leaveEarly(port, request)))
    return resident()
  }
  const base = { bench: 'providers', unit: 'MiB', better: 'less', must: 1.1 } as const
  const figure = (what: string, anchor: string, anchorValue: number, value: number): Figure => ({
    ...base,
    what,
    anchor,
    anchorValue,
    value,
    ratio: value / anchorValue,
  })
  const warm = await chats(WARM)
  yield figure(
    `memory after ${CHATS.toLocaleString('en')} more chats through an upstream`,
    'before them',
    warm,
    await chats(CHATS)
  )
  const some = await left()
  yield figure(
    `memory after ${STREAMS.toLocaleString('en')} more aborted streams of an upstream`,
    'before them',
    some,
    await left()
  )
}
