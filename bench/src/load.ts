import { type Answered, type Connection, connect } from './client.ts'

/** A load: so many connections, each asking again as soon as it has its answer. */
export interface Load {
  readonly port: number
  readonly connections: number
  readonly ms: number
  /** What each connection asks, or what this one does. */
  readonly request: Buffer | ((connection: number) => Buffer)
  /** A text of each answer whose arrival is timed. */
  readonly mark?: string
  /** What is wrong with an answer, if anything. Asked for the first of each connection and for one in a hundred after. */
  faultOf(answer: Answered): string | undefined
}

/** What came of it. */
export interface Loaded {
  readonly answers: number
  readonly perSecond: number
  readonly bytes: number
  /** Milliseconds of the middle answer. */
  readonly p50: number
  /** Milliseconds that one in a hundred answers exceeds. */
  readonly p99: number
  /** Milliseconds until the mark came, of the middle answer; NaN without a mark. */
  readonly marked: number
}

interface Times {
  readonly whole: number[]
  readonly marked: number[]
}

const SAMPLE = 100

/** Runs a load. Throws when an answer is not what it should be: a figure over wrong answers is none. */
export async function run(load: Load): Promise<Loaded> {
  const connections = await Promise.all(Array.from({ length: load.connections }, () => connect(load.port)))
  const began = performance.now()
  const times: Times = { whole: [], marked: [] }
  const sizes = await Promise.all(connections.map((one, at) => askUntil(one, requestOf(load, at), began + load.ms, load, times)))
  const seconds = (performance.now() - began) / 1000
  for (const one of connections) one.close()
  const bytes = sizes.reduce((a, b) => a + b, 0)
  const { whole, marked } = times
  return {
    answers: whole.length,
    perSecond: whole.length / seconds,
    bytes,
    p50: middle(whole),
    p99: whole.toSorted((a, b) => a - b)[Math.floor(whole.length * 0.99)]!,
    marked: marked.length === 0 ? Number.NaN : middle(marked),
  }
}

/** What one of the connections asks. */
export const requestOf = ({ request }: Pick<Load, 'request'>, connection: number): Buffer =>
  typeof request === 'function' ? request(connection) : request

async function askUntil(connection: Connection, request: Buffer, until: number, load: Load, times: Times): Promise<number> {
  let bytes = 0
  let began = performance.now()
  for (let count = 0; began < until; count++) {
    const looksAt = count % SAMPLE === 0
    const answer = await connection.ask(request, looksAt, load.mark)
    const now = performance.now()
    times.whole.push(now - began)
    if (load.mark !== undefined) times.marked.push(answer.markedAt - began)
    began = now
    bytes += answer.bytes
    check(answer, looksAt ? load.faultOf(answer) : undefined)
  }
  return bytes
}

function check({ status, body }: Answered, fault: string | undefined) {
  if (status !== 200 || fault !== undefined)
    throw new Error(`a wrong answer: ${fault ?? 'not 200'} (${status}) ${body.slice(0, 500)}`)
}

/** The middle of some numbers. */
export function middle(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}
