import type { CallContext } from '@svc/core'
import type { Store, StoreOp } from '@svc/core/contracts'
import { type Catalog, checkOps, checkRange, checkRead, checkSize, storeInvalid } from '@svc/storage-kit'
import type { Link } from './link.ts'
import type { Reader } from './reader.ts'
import { rowsOf } from './rows.ts'
import type { Tails } from './tails.ts'
import { type Answer, UNASKED, type WireOp } from './wire.ts'

/** The reads and writes of the store. */
export type Data = Pick<Store, 'get' | 'range' | 'read' | 'batch'>

/** Shared parts of a store. */
export interface DataParts {
  readonly catalog: Catalog
  readonly reader: Reader
  readonly link: Link
  readonly tails: Tails
  /** Rejects calls after an abort or the close. */
  readonly enter: (ctx: CallContext) => void
}

/** Reads through the reader, writes through the writer's thread. */
export function createData({ catalog, reader, link, tails, enter }: DataParts): Data {
  return {
    async get(collection, key, ctx) {
      enter(ctx)
      catalog.collection(collection)
      return reader.reading(reads => reads.get(collection, key), ctx.signal)
    },
    async range(collection, query, ctx) {
      enter(ctx)
      const { paths, span } = checkRange(collection, query, catalog)
      return reader.reading(reads => reads.range(collection, paths, span, query.reverse ?? false, query.limit), ctx.signal)
    },
    async read(log, id, query, ctx) {
      enter(ctx)
      checkRead(log, id, query, catalog)
      return reader.reading(reads => reads.read(log, id, query), ctx.signal)
    },
    async batch(ops, { fence }, ctx) {
      enter(ctx)
      checkOps(ops, catalog)
      const wire = toWire(ops)
      const answer = await link.send(['batch', wire, fence?.lease ?? '', fence?.fence ?? 0], ctx.signal)
      remember(tails, wire, answer)
      return { results: answer.slice(0, ops.length) }
    },
  }
}

/** The operations with their values as JSON text. */
function toWire(ops: readonly StoreOp[]): WireOp[] {
  let sum = 0
  const text = (value: unknown) => {
    const json = stringify(value)
    checkSize(json.length, (sum += json.length))
    return json
  }
  return ops.map((op): WireOp => {
    if (op.op === 'put') return ['put', op.collection, op.key, text(op.value), op.ifVersion ?? UNASKED]
    if (op.op === 'append') return ['append', op.log, op.id, op.ifLength ?? UNASKED, rowsOf(op.values.map(text))]
    if (op.op === 'delete') return ['delete', op.collection, op.key, op.ifVersion ?? UNASKED]
    return op.op === 'drop' ? ['drop', op.log, op.id] : ['migrated', op.space, op.version]
  })
}

/** After the results of the operations, the writer returns the stream of each append. */
function remember(tails: Tails, ops: readonly WireOp[], answer: Answer): void {
  let next = ops.length
  ops.forEach((op, at) => {
    if (op[0] === 'append' && op[4].length > 0) tails.wrote(answer[next++]!, answer[at]!, op[4])
  })
}

function stringify(value: unknown): string {
  try {
    const json = JSON.stringify(value) as string | undefined
    if (json !== undefined) return json
  } catch (error) {
    throw storeInvalid(
      `a value must be JSON: ${error instanceof RangeError ? 'it is nested too deeply' : 'it contains values that JSON cannot express'}`
    )
  }
  throw storeInvalid(`a value must be JSON, was of type ${typeof value}`)
}
