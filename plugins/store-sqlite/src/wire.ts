import type { Space } from '@svc/core/contracts'

// What passes between the event loop and the writer's thread. Jobs travel as one flat list of texts and numbers, answers as one list
// of numbers: cloning nested lists cost more than the work they asked for.

/** Stands for an `ifVersion` or `ifLength` that was not given. */
export const UNASKED = -1

export type WireOp =
  | readonly ['put', collection: string, key: string, text: string, ifVersion: number]
  | readonly ['delete', collection: string, key: string, ifVersion: number]
  | readonly ['append', log: string, id: string, ifLength: number, texts: readonly string[]]
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

/** The answers to the jobs of one commit. */
export interface FromWriter {
  /** For each job that was done: its number, how many numbers it answers, and those. */
  readonly done: Float64Array
  readonly refused: readonly (readonly [id: number, refused: Refused])[]
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

const isRefused = (answer: Answered): answer is Refused => 'code' in answer

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
    if (op[0] === 'append') words.push(op[0], op[1], op[2], op[3], op[4].length, ...op[4])
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
    return [kind, log, id, ifLength, some(count) as string[]]
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

/** The answers to a group of jobs as they travel. */
export function packAnswers(group: readonly Numbered[], answers: readonly Answered[]): Pick<FromWriter, 'done' | 'refused'> {
  const done: number[] = []
  const refused: [number, Refused][] = []
  group.forEach(([id], i) => {
    const answer = answers[i]!
    if (isRefused(answer)) refused.push([id, answer])
    else done.push(id, answer.length, ...answer)
  })
  return { done: Float64Array.from(done), refused }
}

/** Calls back for each job that was done. */
export function eachDone(done: Float64Array, settle: (id: number, answer: Answer) => void): void {
  for (let at = 0; at < done.length; ) {
    const id = done[at++]!
    const end = at + 1 + done[at++]!
    const answer: number[] = []
    while (at < end) answer.push(done[at++]!)
    settle(id, answer)
  }
}
