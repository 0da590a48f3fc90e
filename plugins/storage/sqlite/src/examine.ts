import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { CallContext } from '@svc/core'
import type { CheckReport } from '@svc/core/contracts'
import { inspect } from './inspect.ts'

/** A look through the whole file and at the room on its disk; other processes may have it open. */
export async function examine(path: string, { signal }: CallContext): Promise<CheckReport> {
  const { fault, ...found } = await inspect(path, signal)
  const { bavail, bsize } = await statfs(dirname(path))
  const detail = { path, free_bytes: bavail * bsize, ...found }
  return fault ? { status: 'unhealthy', reason: fault.reason, detail } : { status: 'healthy', detail }
}
