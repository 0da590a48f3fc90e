import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type CallContext, messageOf } from '@svc/core'
import type { Check, CheckReport, StoreProbe } from '@svc/core/contracts'
import { storeReport } from '@svc/storage-kit'
import { noAnswer } from './errors.ts'
import { inspect } from './inspect.ts'
import type { SqliteStore } from './store.ts'

type Probed = Pick<SqliteStore, 'probe' | 'countsAnewSince'>

const LIMIT_MS = 5000
/** By then, the longest window has begun anew. */
const DAY_MS = 86_400_000

/** Reports damaged counts for a day. */
export const countsReason = (since: number | undefined): string | undefined =>
  since === undefined || Date.now() - since >= DAY_MS
    ? undefined
    : `the file of counts was damaged: limits count anew since ${new Date(since).toISOString()}`

/** Probes the store, with a limit. Throws STORE_UNAVAILABLE. */
async function probeSoon(store: Probed, ctx: CallContext): Promise<StoreProbe> {
  const limit = AbortSignal.timeout(LIMIT_MS)
  try {
    return await store.probe({ ...ctx, signal: AbortSignal.any([ctx.signal, limit]) })
  } catch (error) {
    throw error === limit.reason ? noAnswer(LIMIT_MS / 1000) : error
  }
}

/** Reports in `/health` whether the store reads and writes. Simultaneous callers share one probe. */
export function createCheck(store: Probed): Check {
  let flight: Promise<CheckReport> | undefined
  return {
    probe(ctx) {
      // A caller that leaves must not abort it for the others.
      flight ??= report(store, { ...ctx, signal: new AbortController().signal }).finally(() => (flight = undefined))
      return flight
    },
  }
}

async function report(store: Probed, ctx: CallContext): Promise<CheckReport> {
  try {
    const probed = storeReport(await probeSoon(store, ctx))
    const reason = countsReason(store.countsAnewSince())
    return reason === undefined || probed.status !== 'healthy' ? probed : { ...probed, status: 'degraded', reason }
  } catch (error) {
    return { status: 'unhealthy', reason: messageOf(error) }
  }
}

/** Checks the whole file and the free space of its disk; other processes can have it open. */
export async function examine(path: string, { signal }: CallContext): Promise<CheckReport> {
  const { problem, ...found } = await inspect(path, signal)
  const { bavail, bsize } = await statfs(dirname(path))
  const detail = { path, free_bytes: bavail * bsize, ...found }
  return problem ? { status: 'unhealthy', reason: problem.reason, detail } : { status: 'healthy', detail }
}
