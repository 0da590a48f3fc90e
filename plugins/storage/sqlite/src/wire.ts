import type { Space } from '@svc/core/contracts'
import type { StoredRow } from './rows.ts'

// The messages between the event loop and the writer's thread. Jobs and answers are flat lists of texts and numbers: cloning
// nested lists took longer than the work.

/** Stands for a missing `ifVersion` or `ifLength`. */
export const UNASKED = -1

export type WireOp =
  | readonly ['put', collection: string, key: string, text: string, ifVersion: number]
  | readonly ['delete', collection: string, key: string, ifVersion: number]
  | readonly ['append', log: string, id: string, ifLength: number, rows: readonly StoredRow[]]
  | readonly ['drop', log: string, id: string]
  | readonly ['migrated', space: string, version: number]

/** Work for the writer, done completely or not at all. */
export type WriterTask =
  | readonly ['batch', ops: readonly WireOp[], lease: string, fence: number]
  | readonly ['acquire', lease: string, holder: string, ttlMs: number]
  | readonly ['renew', lease: string, fence: number, ttlMs: number]
  | readonly ['release', lease: string, fence: number]
  | readonly ['releaseHolder', prefix: string]
  /** The space as JSON. */
  | readonly ['open', space: string]
  | readonly ['probe']

/** The answer of a job: results and streams of a batch, fence and expiry of a lease, a version. */
export type WriterAnswer = readonly number[]

/**
 * Maximum number of answers in one message. While the event loop handles a message, the writer works on the jobs that followed
 * from the former one. With one message for all, 64 workflow runs were a third slower.
 */
const PART = 32

/** Why a job was not done, as plain data. */
export interface Refused {
  readonly code:
    | 'STORE_CONFLICT'
    | 'STORE_FENCED'
    | 'STORE_NEWER'
    | 'STORE_UNKNOWN'
    | 'STORE_INVALID'
    | 'STORE_UNAVAILABLE'
    | 'STORE_UNSURE'
  readonly args: readonly (string | number)[]
}
export type WriterReply = WriterAnswer | Refused

/** A job with its number. */
export type NumberedTask = readonly [id: number, job: WriterTask]

/** Packed jobs in order, or a file of counts whose log shall be checkpointed. */
export type ToWriter = readonly Word[] | 'close' | { readonly settle: string }
export type Word = string | number

/** The packed result of one commit. */
export type FromWriter = readonly Word[]
/** The facts besides the answers. */
export interface Commit {
  /** Whether watched collections may have changed. */
  readonly watched: boolean
  /** Increases when the writer opens the file: a reader that opened it earlier may have another file. 0 means unknown. */
  readonly generation: number
}

export interface WriterData {
  readonly path: string
  readonly busyMs: number
  /** Whether a missing file may be created: it did not exist before. */
  readonly mayMake: boolean
  /** Spaces that this process opened before this writer started. */
  readonly spaces: readonly Space[]
}

export const isRefused = (answer: WriterReply): answer is Refused => 'code' in answer

/** Number of words of each kind; a batch and an append end with the number of following words. */
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
export function pack(words: Word[], id: number, job: WriterTask): void {
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
export function unpack(words: readonly Word[]): NumberedTask[] {
  const jobs: NumberedTask[] = []
  let at = 0
  const some = (count: number) => words.slice(at, (at += count))
  const op = (): WireOp => {
    const kind = words[at] as WireOp[0]
    if (kind !== 'append') return some(LENGTHS[kind]) as unknown as WireOp
    const [, log, id, ifLength, count] = some(5) as [string, string, string, number, number]
    return [kind, log, id, ifLength, Array.from({ length: count }, () => some(2) as unknown as StoredRow)]
  }
  while (at < words.length) {
    const id = words[at++] as number
    const kind = words[at] as WriterTask[0]
    if (kind !== 'batch') {
      jobs.push([id, some(LENGTHS[kind]) as unknown as WriterTask])
      continue
    }
    const [, lease, fence, count] = some(4) as [string, string, number, number]
    jobs.push([id, ['batch', Array.from({ length: count }, op), lease, fence]])
  }
  return jobs
}

/** Stands for the length of the answer of a refused job. */
const REFUSED = -1

/**
 * Packs the answers to a group of jobs into messages. Words instead of a transferred buffer, which made a single write a
 * quarter slower.
 */
export function* packAnswers(
  group: readonly NumberedTask[],
  answers: readonly WriterReply[],
  { watched, generation }: Commit
): Generator<FromWriter, void> {
  for (let from = 0; from < group.length; from += PART) {
    const words: Word[] = [generation, watched ? 1 : 0]
    for (let i = from; i < Math.min(group.length, from + PART); i++) packAnswer(words, group[i]![0], answers[i]!)
    yield words
  }
}

function packAnswer(words: Word[], id: number, answer: WriterReply): void {
  if (isRefused(answer)) words.push(id, REFUSED, answer.code, answer.args.length, ...answer.args)
  else words.push(id, answer.length, ...answer)
}

/** The facts besides the answers. */
export const commitOf = ([generation, watched]: FromWriter): Commit => ({
  generation: Number(generation),
  watched: watched === 1,
})

/** Calls back for each answer. */
export function eachAnswer(words: FromWriter, settle: (id: number, answer: WriterReply) => void): void {
  for (let at = 2; at < words.length; ) {
    const [id, length] = [words[at] as number, words[at + 1] as number]
    const from = length === REFUSED ? at + 4 : at + 2
    const end = from + (length === REFUSED ? (words[at + 3] as number) : length)
    const found = words.slice(from, end)
    settle(id, length === REFUSED ? { code: words[at + 2] as Refused['code'], args: found } : (found as number[]))
    at = end
  }
}
