import type { CallContext, LogLine, LogLines } from '@svc/core'
import type { Json, PeerAnswer, Peers } from '@svc/core/contracts'

/** The topic between the workers. */
export const TOPIC = 'logs'
/** Bytes of a message. The bus of a cluster takes 64 KiB, with what it adds. */
const MOST_BYTES = 48 * 1024
/** Characters of a line. The rest of a longer one, such as a stack, is left out. */
const MOST_CHARACTERS = 8_192

/** Selects lines. */
export interface LogFilter {
  /** The lowest level, as a number of the log. */
  readonly level: number
  readonly requestId?: string
  /** Unix milliseconds. */
  readonly since?: number
  /** A part of the line, in lower case. */
  readonly text?: string
  /** Only lines that name this principal. */
  readonly principal?: string
  /** Maximum number of lines of each worker: the last ones. */
  readonly limit: number
}

/** The number of the last line of each worker that a reader has got. */
export type LogPosition = Readonly<Record<string, number>>

/** A line of a worker. `record` is the JSON of the line. */
export interface WorkerLine {
  readonly worker: string
  readonly seq: number
  readonly record: { readonly [field: string]: Json | undefined }
}

interface Gathered {
  /** Ordered by time. */
  readonly lines: readonly WorkerLine[]
  readonly position: LogPosition
  /** Whether all workers have answered. */
  readonly isComplete: boolean
}

export interface Gathering {
  /** The lines of all workers after a position. */
  read(filter: LogFilter, after: LogPosition, ctx: CallContext): Promise<Gathered>
  /** Handles the question of a worker: sends it the lines of this one. */
  onQuestion(message: Json): Promise<void>
  /** Takes the lines that other workers send. */
  readonly answers: PeerAnswer
}

interface Question {
  readonly id: string
  /** The worker that asks. */
  readonly from: string
  readonly filter: LogFilter
  readonly after: LogPosition
}

/** Lines of one worker. `last` is the number of the last line that it has looked at. */
interface Part {
  readonly id: string
  readonly worker: string
  readonly last: number
  readonly lines: readonly WorkerLine[]
}

interface GatheringOptions {
  readonly lines: LogLines
  readonly peers: Peers | undefined
  /** The name of this worker. */
  readonly worker: string
  readonly lasting: CallContext
}

/** A worker asks all others, and each sends its lines back before it has handled the question. */
export function createGathering({ lines, peers, worker, lasting }: GatheringOptions): Gathering {
  const open = new Map<string, (part: Part) => void>()
  const ownParts = async ({ id, filter, after }: Question): Promise<Part[]> => {
    const read = await lines.read(after[worker] ?? 0, lasting)
    const last = read.at(-1)?.seq ?? after[worker] ?? 0
    const selected = read.flatMap(line => linesIn(line, worker)).filter(({ record }) => isWanted(record, filter))
    return divided(selected.slice(-filter.limit)).map(some => ({ id, worker, last, lines: some }))
  }
  return {
    async read(filter, after, ctx) {
      const question: Question = { id: crypto.randomUUID(), from: worker, filter, after }
      const all: WorkerLine[] = []
      const position = { ...after } as Record<string, number>
      const take = ({ worker: of, last, lines: some }: Part) => {
        position[of] = last
        all.push(...some)
      }
      open.set(question.id, take)
      let isComplete = true
      try {
        if (peers)
          await peers.broadcast(TOPIC, question as unknown as Json, ctx).catch((error: unknown) => {
            ctx.signal.throwIfAborted()
            isComplete = false
            void error
          })
        else (await ownParts(question)).forEach(take)
      } finally {
        open.delete(question.id)
      }
      return { lines: all.toSorted(byTime).slice(-filter.limit), position, isComplete }
    },
    async onQuestion(message) {
      const question = message as unknown as Question
      for (const part of await ownParts(question)) {
        if (question.from === worker) open.get(question.id)?.(part)
        else for await (const _ of peers?.ask(question.from, TOPIC, part as unknown as Json, lasting) ?? []) break
      }
    },
    answers: {
      async *answer(message) {
        const part = message as unknown as Part
        open.get(part.id)?.(part)
        yield null
      },
    },
  }
}

function linesIn({ seq, text }: LogLine, worker: string): WorkerLine[] {
  try {
    const record = JSON.parse(text) as WorkerLine['record']
    return [{ worker, seq, record: text.length <= MOST_CHARACTERS ? record : shortened(record) }]
  } catch {
    return []
  }
}

/** The fields that a filter uses, and the beginning of the message. */
const shortened = ({ level, time, plugin, request_id, principal, msg }: WorkerLine['record']) => ({
  level,
  time,
  plugin,
  request_id,
  principal,
  msg: textOf(msg).slice(0, MOST_CHARACTERS / 2),
  shortened: true,
})

function isWanted(record: WorkerLine['record'], { level, requestId, since, text, principal }: LogFilter): boolean {
  return (
    Number(record.level) >= level &&
    (requestId === undefined || record.request_id === requestId) &&
    (principal === undefined || record.principal === principal) &&
    (since === undefined || Date.parse(textOf(record.time)) >= since) &&
    (text === undefined || JSON.stringify(record).toLowerCase().includes(text))
  )
}

/** At least one list: it tells the last number. */
function divided(lines: readonly WorkerLine[]): WorkerLine[][] {
  const lists: WorkerLine[][] = [[]]
  let bytes = 0
  for (const line of lines) {
    const more = Buffer.byteLength(JSON.stringify(line)) + 1
    if (bytes + more > MOST_BYTES && bytes > 0) {
      lists.push([])
      bytes = 0
    }
    bytes += more
    lists.at(-1)!.push(line)
  }
  return lists
}

/** A field as text; a plugin can log any value. */
export const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''))

const byTime = (a: WorkerLine, b: WorkerLine) => {
  const [one, other] = [textOf(a.record.time), textOf(b.record.time)]
  if (one !== other) return one < other ? -1 : 1
  return a.worker === b.worker ? a.seq - b.seq : a.worker < b.worker ? -1 : 1
}
