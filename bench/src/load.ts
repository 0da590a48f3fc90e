import { type Answered, type Connection, connect } from './client.ts'

/** A load: a number of connections, each of which sends the next request as soon as it has the response. */
export interface Load {
  readonly port: number
  readonly connections: number
  readonly ms: number
  /** The request of each connection, or of this one. */
  readonly request: Buffer | ((connection: number) => Buffer)
  /** A text of each response whose arrival is timed. */
  readonly mark?: string
  /** Returns what is wrong with a response, if anything. Checks the first of each connection and then one in a hundred. */
  problemOf(answer: Answered): string | undefined
}

/** The result of a load. */
export interface Loaded {
  readonly answers: number
  readonly perSecond: number
  readonly bytes: number
  /** Median latency in milliseconds. */
  readonly p50: number
  /** 99th percentile of the latency in milliseconds. */
  readonly p99: number
  /** Median milliseconds until the mark; NaN without a mark. */
  readonly marked: number
}

interface Times {
  readonly whole: number[]
  readonly marked: number[]
}

const SAMPLE = 100

/** Runs a load. Throws for a wrong response, because its measurement would be useless. */
export async function run(load: Load): Promise<Loaded> {
  const connections = await Promise.all(Array.from({ length: load.connections }, () => connect(load.port)))
  const began = performance.now()
  const times: Times = { whole: [], marked: [] }
  const sizes = await Promise.all(
    connections.map((connection, at) => askUntil(connection, requestOf(load, at), began + load.ms, load, times))
  )
  const seconds = (performance.now() - began) / 1000
  for (const connection of connections) connection.close()
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

/** The request of one connection. */
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
    check(answer, looksAt ? load.problemOf(answer) : undefined)
  }
  return bytes
}

function check({ status, body }: Answered, problem: string | undefined) {
  if (status !== 200 || problem !== undefined)
    throw new Error(`a wrong answer: ${problem ?? 'not 200'} (${status}) ${body.slice(0, 500)}`)
}

/** The median. */
export function middle(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}
