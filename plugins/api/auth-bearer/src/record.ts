import type { Json, Space, StoreRecord } from '@svc/core/contracts'
import { idOf } from './token.ts'

/** What the store keeps of a token, under its digest. Times are ISO 8601. */
export interface TokenRecord {
  readonly name: string
  readonly scopes: readonly string[]
  readonly created: string
  readonly expires: string
  /** To the minute, about. */
  readonly used?: string
  /** When it was taken back: it is good for nothing since. */
  readonly revoked?: string
}

/** A token as people see it. */
export interface TokenShown extends TokenRecord {
  readonly id: string
}

export const COLLECTION = 'auth_tokens'

export const SPACE: Space = {
  name: 'auth_tokens',
  version: 1,
  // A revoked token stays as a record that says so: restoring a backup of before must not make it good again.
  collections: { [COLLECTION]: { indexes: { by_name: ['name'], by_expires: ['expires'] }, watched: true, lasting: true } },
}

export const asJson = (record: TokenRecord): Json => ({ ...record })
export const recordOf = ({ value }: Pick<StoreRecord, 'value'>): TokenRecord => value as unknown as TokenRecord
export const shown = (one: StoreRecord): TokenShown => ({ id: idOf(one.key), ...recordOf(one) })
