import { svcError, type SvcError } from '@svc/core'

/** The errors of the store's contract, in one wording for all stores. */

export const storeConflict = (op: number, expected: number, actual: number): SvcError =>
  svcError('STORE_CONFLICT', `operation ${op} expected version ${expected}, there is ${actual}`, {
    details: { op, expected, actual },
    hint: 'read it again, decide anew and write with the version that is there',
  })

export const storeFenced = (lease: string, fence: number): SvcError =>
  svcError('STORE_FENCED', `the lease "${lease}" with fence ${fence} is held no longer`, {
    details: { lease, fence },
    hint: 'stop this work: another holder does it; ask for the lease again before any further write',
  })

export const leaseBusy = (lease: string, waitMs: number): SvcError =>
  svcError('LEASE_BUSY', `the lease "${lease}" is held by another and did not come free within ${waitMs} ms`, {
    details: { lease, waitMs },
    hint: 'try again later, or wait longer',
  })

export const storeNewer = (what: string, stored: number, known: number): SvcError =>
  svcError('STORE_NEWER', `${what} was written by a newer program: version ${stored}, this one knows ${known}`, {
    details: { stored, known },
    hint: 'update svc and its plugins, or set store.path to another file',
  })

export const storeUnknown = (kind: string, name: string): SvcError =>
  svcError('STORE_UNKNOWN', `no space that was opened declares the ${kind} "${name}"`, {
    details: { kind, name },
    hint: `declare it in the plugin's space and open that before using it`,
  })

export const storeInvalid = (message: string): SvcError =>
  svcError('STORE_INVALID', message, { hint: 'fix the call; see the Store contract for what it takes' })

export const storeTooLarge = (message: string, hint: string, details: Record<string, unknown> = {}): SvcError =>
  svcError('STORE_TOO_LARGE', message, { details, hint })

export const storeUnavailable = (reason: string, hint: string, cause?: unknown): SvcError =>
  svcError('STORE_UNAVAILABLE', reason, { details: { retryable: true }, hint, cause })

export const storeClosed = (): SvcError => storeUnavailable('the store is closed', 'start the server again')

export const migrationMissing = (space: string, from: number): SvcError =>
  svcError('MIGRATION_MISSING', `the space "${space}" is stored with version ${from}, and nothing migrates it from there`, {
    details: { space, from },
    hint: 'install a version between the two first: it brings the data to a version that this one can migrate',
  })

export const migrationFailed = (space: string, from: number, cause: Error): SvcError =>
  svcError('MIGRATION_FAILED', `the space "${space}" could not be migrated from version ${from}: ${cause.message}`, {
    details: { space, from },
    hint: 'what it had done is kept and it begins again at the next start; until then the version before still works',
    cause,
  })
