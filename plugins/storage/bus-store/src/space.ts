import type { Json, Space } from '@svc/core/contracts'

export const MEMBERS = 'bus_members'
export const POSTS = 'bus_posts'
export const PERMITS = 'bus_permits'

export const SPACE: Space = {
  name: 'node_bus',
  version: 1,
  collections: {
    [MEMBERS]: { watched: true },
    [POSTS]: { watched: true, indexes: { by_time: ['at'], by_sender: ['from', 'at'] } },
    [PERMITS]: {},
  },
}

/** A record of `bus_members`, by the name of the worker. */
export interface MemberRecord {
  readonly node: string
  readonly facts: Json
}

/** A record of `bus_posts`: a message to all others, or to one worker as a part of a call. */
export interface Post {
  readonly from: string
  /** Unix milliseconds. */
  readonly at: number
  readonly to?: string
  /** A message to all. */
  readonly topic?: string
  readonly message?: Json
  readonly call?: CallPart
}

/** A part of a call, by its id: the question, a part of the answer by its number, its end, or that the caller reads no further. */
export type CallPart = { readonly id: string } & (
  | { readonly kind: 'ask'; readonly topic: string; readonly message: Json; readonly by: Asker }
  | { readonly kind: 'part'; readonly seq: number; readonly value: Json }
  | { readonly kind: 'end'; readonly seq: number; readonly error?: CallError }
  | { readonly kind: 'stop' }
)

/** Who asks, for the context of the answer. */
interface Asker {
  readonly principal: { readonly id: string; readonly scopes: readonly string[] }
  readonly requestId: string
}

/** An error as data. */
export interface CallError {
  readonly code: string
  readonly message: string
  readonly hint?: string
  readonly details: { readonly [key: string]: Json | undefined }
}
