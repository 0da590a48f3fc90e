import type { Space } from '@svc/core/contracts'

// What passes between the event loop and the writer's thread: lists of texts and numbers, which clone fastest. −1 stands for "not asked".

export const UNASKED = -1

export type WireOp =
  | readonly ['put', collection: string, key: string, text: string, ifVersion: number]
  | readonly ['delete', collection: string, key: string, ifVersion: number]
  | readonly ['append', log: string, id: string, texts: readonly string[], ifLength: number]
  | readonly ['drop', log: string, id: string]
  | readonly ['migrated', space: string, version: number]

/** Work for the writer. Each is done wholly or not at all. */
export type Job =
  | readonly ['batch', ops: readonly WireOp[], lease: string, fence: number]
  | readonly ['acquire', lease: string, holder: string, ttlMs: number]
  | readonly ['renew', lease: string, fence: number, ttlMs: number]
  | readonly ['release', lease: string, fence: number]
  | readonly ['releaseHolder', prefix: string]
  | readonly ['open', space: Space]
  | readonly ['probe']

/** What a job answers: results and streams of a batch, a lease's fence and end, a version. */
export type Answer = readonly number[]

/** Why a job was not done, as plain data. */
export interface Refused {
  readonly code: 'STORE_CONFLICT' | 'STORE_FENCED' | 'STORE_NEWER' | 'STORE_UNKNOWN' | 'STORE_INVALID' | 'STORE_UNAVAILABLE'
  readonly args: readonly (string | number)[]
}

/** Jobs with their numbers, in the order of asking. */
export type ToWriter = readonly (readonly [id: number, job: Job])[] | 'close'

/** Answers of one commit; `watched` tells that watched collections may have changed. */
export interface FromWriter {
  readonly answers: readonly (readonly [id: number, answer: Answer | Refused])[]
  readonly watched: boolean
  /** Grows each time the writer opens the file: a reader that opened it earlier may have another file. 0 = not known. */
  readonly generation: number
}

export interface WriterData {
  readonly path: string
  readonly busyMs: number
  /** Spaces that this process has opened before this writer started. */
  readonly spaces: readonly Space[]
}

export const isRefused = (answer: Answer | Refused): answer is Refused => 'code' in answer
