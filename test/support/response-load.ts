import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Tree } from '../../plugins/api/openai-api/test/support/api.ts'
import { readEvents, textOf } from '../../plugins/api/openai-api/test/support/responses.ts'
import { createClient } from './client.ts'

const model = 'local/local-1'

/** What clients got acknowledged: stored responses, and responses in the background with their text. */
export interface ResponseLedger {
  readonly stored: Tree[]
  readonly background: { readonly id: string; readonly words: string }[]
}

export const newResponseLedger = (): ResponseLedger => ({ stored: [], background: [] })

/** Clients that ask for stored responses until their server is gone. */
export interface ResponseLoad {
  /** Resolves when so many answers of this load are acknowledged. Rejects on an answer that is no acknowledgement. */
  reached(answers: number): Promise<void>
  /** Resolves when every client has seen its connection break. */
  broken(): Promise<void>
}

/** Starts the clients. A quarter each of the answers are whole, streamed, continue another response, and are in the background. */
export function startResponseLoad(url: string, ledger: ResponseLedger, clients: number): ResponseLoad {
  const begin = ledger.stored.length + ledger.background.length
  const running = Promise.all(Array.from({ length: clients }, (_, number) => runClient(url, ledger, number)))
  running.catch(() => {})
  return {
    async reached(answers) {
      const all = (async () => {
        while (ledger.stored.length + ledger.background.length < begin + answers) await sleep(5)
      })()
      await Promise.race([all, running])
    },
    broken: async () => void (await running),
  }
}

async function runClient(url: string, ledger: ResponseLedger, number: number): Promise<void> {
  for (let turn = number; ; turn++)
    try {
      await ask(url, ledger, turn)
    } catch (error) {
      if (isGone(error)) return
      throw error
    }
}

async function ask(url: string, { stored, background }: ResponseLedger, turn: number): Promise<void> {
  const words = `number ${stored.length} of ${turn}`
  const previous = turn % 4 === 2 ? stored.at(-1 - Math.floor(Math.random() * Math.min(20, stored.length))) : undefined
  const way = previous
    ? { previous_response_id: previous.id as string }
    : [{}, { stream: true }, {}, { background: true }][turn % 4]!
  const response = await fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, store: true, input: 'background' in way ? `${words}\n/pace 100` : words, ...way }),
  })
  if (response.status !== 200) throw new Error(`not acknowledged: ${response.status} ${await response.text()}`)
  if (!('stream' in way)) {
    const made = (await response.json()) as Tree
    if ('background' in way) background.push({ id: made.id, words })
    else stored.push(made)
    return
  }
  const { isDone, response: made } = await readEvents(response)
  if (isDone && made.status !== 'completed') throw new Error(`not acknowledged: ${JSON.stringify(made)}`)
  if (isDone) stored.push(made)
}

const GONE = /ECONNRESET|ECONNREFUSED|EPIPE|UND_ERR_SOCKET/

/** Whether the server has closed the connection: all other errors are problems. */
function isGone(error: unknown): boolean {
  const { message, cause } = error as Error
  return message === 'terminated' || GONE.test((cause as NodeJS.ErrnoException | undefined)?.code ?? '')
}

/** What is wrong after kills: responses that are gone or changed, a turn that cannot be continued, background responses that never end. */
export async function auditResponses(url: string, { stored, background }: ResponseLedger): Promise<string[]> {
  const client = createClient(url)
  const problems: string[] = []
  const read = (id: string) => client.get(`/v1/responses/${id}`)
  try {
    for (const made of stored) {
      const { status, text, body } = await read(made.id)
      if (status !== 200) problems.push(`${made.id} is gone: ${status} ${text}`)
      else if (!isDeepStrictEqual(body, made)) problems.push(`${made.id} has changed: ${text}`)
    }
    for (const { id, words } of background) {
      const made = await ended(id, async () => (await read(id)).body as Tree)
      if (made.status !== 'completed' || textOf(made) !== `You said: ${words}`)
        problems.push(`${id} in the background: ${JSON.stringify(made)}`)
    }
    const last = stored.at(-1)
    const input = 'and now?'
    const next = last && (await client.post('/v1/responses', { model, input, store: true, previous_response_id: last.id }))
    if (next && !textOf(next.body as Tree).startsWith('You said: and now? (turn ')) problems.push(`${last.id}: ${next.text}`)
  } finally {
    client.close()
  }
  return problems
}

/** A job of a dead server waits for the end of its lease, half a minute. */
const LONGEST_MS = 120_000

async function ended(id: string, read: () => Promise<Tree>): Promise<Tree> {
  const until = Date.now() + LONGEST_MS
  for (;;) {
    const made = await read()
    if ((made.status !== 'queued' && made.status !== 'in_progress') || Date.now() > until) return { ...made, id }
    await sleep(50)
  }
}
