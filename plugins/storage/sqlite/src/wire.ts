import type { Space } from '@svc/core/contracts'
import type { Row } from './rows.ts'

// What passes between the event loop and the writer's thread. Jobs and answers travel as one flat list of texts and numbers:
// cloning nested lists cost more than the work they asked for.

/** Stands for an `ifVersion` or `ifLength` that was not given. */
export const UNASKED = -1

export type WireOp =
  | readonly ['put', collection: string, key: string, text: string, ifVersion: number]
  | readonly ['delete', collection: string, key: string, ifVersion: number]
  | readonly ['append', log: string, id: string, ifLength: number, rows: readonly Row[]]
  | readonly ['drop', log: string, id: string]
  | readonly ['migrated', space: string, version: number]

/** Work for the writer. Each is done wholly or not at all. */
export type Job =
  | readonly ['batch', ops: readonly WireOp[], lease: string, fence: number]
  | readonly ['acquire', lease: string, holder: string, ttlMs: number]
  | readonly ['renew', lease: string, fence: number, ttlMs: number]
  | readonly ['release', lease: string, fence: number]
  | readonly ['releaseHolder', prefix: string]
  /** The space as JSON. */
  | readonly ['open', space: string]
  | readonly ['probe']

/** What a job answers: results and streams of a batch, a lease's fence and end, a version. */
export type Answer = readonly number[]

/**
 * Answers that travel together at the most: while the loop goes on with some of the answers to a commit, the writer is at work on what followed from the others.
 * With all in one message one of them waited while the other worked: 64 runs of workflows made a third less.
 */
const PART = 32

/** Why a job was not done, as plain data. */
export interface Refused {
  readonly code: 'STORE_CONFLICT' | 'STORE_FENCED' | 'STORE_NEWER' | 'STORE_UNKNOWN' | 'STORE_INVALID' | 'STORE_UNAVAILABLE'
  readonly args: readonly (string | number)[]
}
export type Answered = Answer | Refused

/** A job with its number. */
export type Numbered = readonly [id: number, job: Job]

/** Packed jobs, in the order of asking; or a file of counts whose log is to be brought into it. */
export type ToWriter = readonly Word[] | 'close' | { readonly settle: string }
export type Word = string | number

/** What came of one commit: packed, as jobs are. */
export type FromWriter = readonly Word[]
/** What is told besides the answers. */
export interface Commit {
  /** Whether watched collections may have changed. */
  readonly watched: boolean
  /** Grows each time the writer opens the file: a reader that opened it earlier may have another file. 0 = not known. */
  readonly generation: number
}

export interface WriterData {
  readonly path: string
  readonly busyMs: number
  /** Whether the file may be made when it is missing: it has not been there yet. */
  readonly mayMake: boolean
  /** Spaces that this process has opened before this writer started. */
  readonly spaces: readonly Space[]
}

export const isRefused = (answer: Answered): answer is Refused => 'code' in answer

/** How many words each kind takes; a batch and an append say at their end how many follow. */
const LENGTHS = {
  acquire: 4,
  renew: 4,
  release: 3,
  releaseHolder: 2,
  open: 2,
  probe: 1,
  put: 5,
  delete: 4,
  drop: 3,
  migrated: 3,
} as const

/** Adds a job to a packed list. */
export function pack(words: Word[], id: number, job: Job): void {
  words.push(id)
  if (job[0] !== 'batch') {
    words.push(...job)
    return
  }
  words.push('batch', job[2], job[3], job[1].length)
  for (const op of job[1]) {
    if (op[0] === 'append') words.push(op[0], op[1], op[2], op[3], op[4].length, ...op[4].flat())
    else words.push(...op)
  }
}

/** The jobs of a packed list. */
export function unpack(words: readonly Word[]): Numbered[] {
  const jobs: Numbered[] = []
  let at = 0
  const some = (count: number) => words.slice(at, (at += count))
  const op = (): WireOp => {
    const kind = words[at] as WireOp[0]
    if (kind !== 'append') return some(LENGTHS[kind]) as unknown as WireOp
    const [, log, id, ifLength, count] = some(5) as [string, string, string, number, number]
    return [kind, log, id, ifLength, Array.from({ length: count }, () => some(2) as unknown as Row)]
  }
  while (at < words.length) {
    const id = words[at++] as number
    const kind = words[at] as Job[0]
    if (kind !== 'batch') {
      jobs.push([id, some(LENGTHS[kind]) as unknown as Job])
      continue
    }
    const [, lease, fence, count] = some(4) as [string, string, number, number]
    jobs.push([id, ['batch', Array.from({ length: count }, op), lease, fence]])
  }
  return jobs
}

/** Stands for the length of an answer where there is none: the job was refused. */
const REFUSED = -1

/** The answers to a group of jobs as they travel: a message for each part of them. Words rather than a buffer that is handed over: that cost a lone write a quarter of its way there and back. */
export function* packAnswers(
  group: readonly Numbered[],
  answers: readonly Answered[],
  { watched, generation }: Commit
): Generator<FromWriter, void> {
  for (let from = 0; from < group.length; from += PART) {
    const words: Word[] = [generation, watched ? 1 : 0]
    for (let i = from; i < Math.min(group.length, from + PART); i++) packAnswer(words, group[i]![0], answers[i]!)
    yield words
  }
}

function packAnswer(words: Word[], id: number, answer: Answered): void {
  if (isRefused(answer)) words.push(id, REFUSED, answer.code, answer.args.length, ...answer.args)
  else words.push(id, answer.length, ...answer)
}

/** What is told besides the answers. */
export const commitOf = ([generation, watched]: FromWriter): Commit => ({
  generation: Number(generation),
  watched: watched === 1,
})

/** Calls back for each answer. */
export function eachAnswer(words: FromWriter, settle: (id: number, answer: Answered) => void): void {
  for (let at = 2; at < words.length; ) {
    const [id, length] = [words[at] as number, words[at + 1] as number]
    const from = length === REFUSED ? at + 4 : at + 2
    const end = from + (length === REFUSED ? (words[at + 3] as number) : length)
    const found = words.slice(from, end)
    settle(id, length === REFUSED ? { code: words[at + 2] as Refused['code'], args: found } : (found as number[]))
    at = end
  }
}
