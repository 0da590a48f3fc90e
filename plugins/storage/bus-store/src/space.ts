import type { Json, Space } from '@svc/core/contracts'
import type { CallPart } from '@svc/storage-kit/bus'

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
