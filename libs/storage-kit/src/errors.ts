import { codeOf, svcError, type SvcError } from '@svc/core'

/** The errors of the store's contract, with the same text in all stores. */

export const storeConflict = (op: number, expected: number, actual: number): SvcError =>
  svcError('STORE_CONFLICT', `operation ${op} expected version ${expected}, but the version is ${actual}`, {
    details: { op, expected, actual },
    hint: 'Read the record again, apply your change to it, and write with its current version',
  })

export const storeFenced = (lease: string, fence: number): SvcError =>
  svcError('STORE_FENCED', `the lease "${lease}" with fence ${fence} is not held any more`, {
    details: { lease, fence },
    hint: 'Stop this work: another holder does it. Acquire the lease again before any further write',
  })

export const leaseBusy = (lease: string, waitMs: number): SvcError =>
  svcError('LEASE_BUSY', `another holder has the lease "${lease}" and did not release it within ${waitMs} ms`, {
    details: { lease, waitMs },
    hint: 'Try again later, or set a longer wait',
  })

export const storeNewer = (what: string, stored: number, known: number): SvcError =>
  svcError('STORE_NEWER', `${what} has version ${stored}, but this program supports only version ${known}`, {
    details: { stored, known },
    hint: 'Update svc and its plugins, or set store.path to another file, or store.schema to another schema',
  })

export const storeUnknown = (kind: string, name: string): SvcError =>
  svcError('STORE_UNKNOWN', `no opened space declares the ${kind} "${name}"`, {
    details: { kind, name },
    hint: `Declare it in the plugin's space, and open the space before using it`,
  })

export const storeInvalid = (message: string): SvcError =>
  svcError('STORE_INVALID', message, { hint: 'Fix the call; see the Store contract' })

export const storeTooLarge = (message: string, hint: string, details: Record<string, unknown> = {}): SvcError =>
  svcError('STORE_TOO_LARGE', message, { details, hint })

export const storeUnavailable = (reason: string, hint: string, cause?: unknown): SvcError =>
  svcError('STORE_UNAVAILABLE', reason, { details: { retryable: true }, hint, cause })

/** Nothing was done: a server cannot be used. `server` is its host and port, if known. */
export const serverUnavailable = (reason: string, hint: string, server: string | undefined, cause?: unknown): SvcError =>
  server === undefined
    ? storeUnavailable(reason, hint, cause)
    : svcError('STORE_UNAVAILABLE', `${reason} (${server})`, { details: { retryable: true, server }, hint, cause })

/** An error of `serverUnavailable` as the reason why a start fails: its code names the server. Others stay as they are. */
export function startError(error: unknown, code: string, plugin: string): unknown {
  const { message, hint, details } = Object(error) as Partial<SvcError>
  if (codeOf(error) !== 'STORE_UNAVAILABLE' || details?.server === undefined) return error
  return svcError(code, message ?? '', { plugin, details, ...(hint === undefined ? {} : { hint }), cause: error })
}

/** Nothing was done: the store reads only, for example because another server of it took over. */
export const storeReadOnly = (reason: string, hint: string, cause?: unknown): SvcError =>
  svcError('STORE_UNAVAILABLE', reason, { details: { retryable: true, reason: 'read_only' }, hint, cause })

/** The answer to a write was lost. */
export const storeUnsure = (reason: string, cause?: unknown): SvcError =>
  svcError('STORE_UNSURE', `it is unknown whether the write was done: ${reason}`, {
    details: { retryable: false },
    hint: 'Read the records of the write, and repeat it only if the change is missing',
    cause,
  })

export const storeClosed = (): SvcError => storeUnavailable('the store is closed', 'Restart the server')

export const migrationMissing = (space: string, from: number): SvcError =>
  svcError('MIGRATION_MISSING', `the space "${space}" is stored with version ${from}, and no migration starts from it`, {
    details: { space, from },
    hint: 'Install an intermediate version first: it migrates the data to a version that this one can migrate',
  })

export const migrationFailed = (space: string, from: number, cause: Error): SvcError =>
  svcError('MIGRATION_FAILED', `cannot migrate the space "${space}" from version ${from}: ${cause.message}`, {
    details: { space, from },
    hint: 'Fix the cause and start again. The migration keeps its progress; until then the former version still works',
    cause,
  })
