import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Answer, type Client, createClient, type OpenStream, type Request, sendWire } from '../support/client.ts'
import { replyOf, type SentEvent, streamProblems } from '../support/events.ts'
import { compare, shown } from '../support/match.ts'
import { newHome, type Service, startService } from '../support/service.ts'
import type { Exchange, Expectation, Step, Wire } from './exchange.ts'

/** A running service, ready for samples. */
export interface Stage extends AsyncDisposable {
  readonly service: Service
  readonly client: Client
}

/** An answer, and what it was the answer to. */
export interface Heard {
  readonly request: Request
  readonly answer: Answer
}

/** Starts a service as a sample wants it. */
export async function openStage({
  config,
  args = [],
  env = {},
  files = {},
}: Pick<Exchange, 'config' | 'args' | 'env' | 'files'> = {}): Promise<Stage> {
  const [home, cwd] = await Promise.all([newHome(), mkdtemp(join(tmpdir(), 'svc-project-'))])
  const clear = () => Promise.all([home, cwd].map(folder => rm(folder, { recursive: true, force: true })))
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(home, name)), { recursive: true })
      await writeFile(join(home, name), text)
    }
    if (config) await writeFile(join(cwd, 'svc.config.json'), JSON.stringify(config))
    const service = await startService({ args, env, home, cwd })
    const client = createClient(service.url)
    const close = async () => {
      client.close()
      await service.stop()
      await clear()
    }
    return { service, client, [Symbol.asyncDispose]: close }
  } catch (error) {
    await clear()
    throw error
  }
}

/** Plays a sample; throws with the request and the answer where they do not fit. `hear` is told each answer. */
export async function play(sample: Exchange, { service, client }: Stage, hear: (heard: Heard) => void = () => {}): Promise<void> {
  const answers: Answer[] = []
  const held: { stream: OpenStream; request: Request }[] = []
  const ask = async (request: Request | Wire): Promise<Answer> =>
    'wire' in request ? ((await sendWire(service.url, request.wire))[0] ?? SILENCE) : client.send(request)
  const judge = (request: Request | Wire, answer: Answer, expect: FromAnswers<Expectation>) => {
    answers.push(answer)
    const problems = faultsOf(answer, resolved(expect, answers.slice(0, -1)))
    if (problems.length > 0) throw new Error(complaint(sample, request, answer, problems))
    if (!('wire' in request)) hear({ request, answer })
  }
  const run = async (step: Step) => {
    if ('finish' in step) {
      const { stream, request } = held.shift()!
      return judge(request, await stream.rest(), step.expect)
    }
    if (step.hold === undefined) {
      const request = resolved(step.request, answers)
      return judge(request, await ask(request), step.expect)
    }
    const request = resolved(step.request, answers)
    const stream = await client.stream(request)
    held.push({ stream, request })
    const first = await stream.next()
    const events = step.hold === true ? [first].filter(item => item !== undefined) : await stream.until(step.hold)
    answers.push({ status: stream.status, headers: stream.headers, text: '', body: events.at(-1)?.data, events })
    // the head: a stream without end has events of types that plugins add
    hear({ request, answer: { status: stream.status, headers: stream.headers, text: '', body: undefined, events: [] } })
  }
  try {
    for (const step of sample.steps) await run(step)
  } finally {
    for (const { stream } of held) await stream.leave()
  }
}

type FromAnswers<T> = T | ((answers: readonly Answer[]) => T)
const resolved = <T extends object>(value: FromAnswers<T>, answers: readonly Answer[]): T =>
  typeof value === 'function' ? (value as (answers: readonly Answer[]) => T)(answers) : value

const SILENCE: Answer = {
  status: 0,
  headers: {},
  text: '(the connection was closed without an answer)',
  body: undefined,
  events: [],
}

function faultsOf(answer: Answer, { status, headers, body, text, events }: Expectation): readonly string[] {
  return [
    ...compare(status, answer.status, 'status'),
    ...(headers === undefined ? [] : compare(headers, answer.headers, 'headers')),
    ...(body === undefined ? [] : compare(body, answer.body, 'body')),
    ...(text === undefined ? [] : compare(text, answer.text, 'text')),
    ...(events === undefined ? [] : [...compare(events, gathered(answer.events), 'events'), ...streamProblems(answer.events)]),
  ]
}

/** The events with all tokens in a row as one; comments are left out. */
function gathered(events: readonly SentEvent[]): { event: string; data: unknown }[] {
  const rows: SentEvent[][] = []
  for (const event of events.filter(item => !item.comment)) {
    if (event.event === 'token' && rows.at(-1)?.[0]?.event === 'token') rows.at(-1)!.push(event)
    else rows.push([event])
  }
  return rows.map(row =>
    row[0]!.event === 'token' ? { event: 'reply', data: { text: replyOf(row) } } : { event: row[0]!.event, data: row[0]!.data }
  )
}

const MOST = 2000

function complaint({ source }: Exchange, request: Request | Wire, answer: Answer, problems: readonly string[]): string {
  const sent =
    'wire' in request
      ? shown(String(request.wire), MOST)
      : `${request.method} ${request.path}  ${shown(contentOf(request), MOST)}`
  const got = `${answer.status} ${shown(answer.headers, MOST)}\n    ${answer.text.slice(0, MOST).replaceAll('\n', '\n    ')}`
  return [...problems, `  (${source})`, `  request: ${sent}`, `  answer: ${got}`].join('\n')
}

const contentOf = ({ headers, body, raw }: Request) => ({
  ...(headers ? { headers } : {}),
  ...(raw ? { raw: String(raw) } : { body }),
})
