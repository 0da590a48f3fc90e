// For plugins that store data.
export { type Migration, type MigrationContext, type Migrations, openSpace } from './open-space.ts'
export { storeIdentity } from './store-identity.ts'
export { timelyId, timeOf } from './sort-key.ts'
export { acquireHold, type KeptLease, keepLease, LeaseHold, tryHold } from './lease-hold.ts'
// For stores: shared checks and errors.
export {
  canExist,
  type Catalog,
  type CheckedRange,
  checkCount,
  checkKey,
  checkLease,
  checkOps,
  checkRange,
  checkRead,
  checkSize,
  createCatalog,
  type Declared,
  LIMITS,
  TEXT_LIMITS,
} from './check.ts'
export { endOf, type Hit, hit, type StoredWindow } from './count.ts'
export {
  leaseBusy,
  storeClosed,
  storeConflict,
  storeFenced,
  storeInvalid,
  storeNewer,
  serverUnavailable,
  startError,
  storeReadOnly,
  storeTooLarge,
  storeUnavailable,
  storeUnknown,
  storeUnsure,
} from './errors.ts'
export { type LeaseAttempt, createLeaseQueue, type LeaseBackend, type LeaseQueue } from './lease-queue.ts'
export { clockOffset, steadyNow, storeReport } from './probe.ts'
export { createSnippets, type Snippets } from './snippet.ts'
export { type CheckedSearch, checkSearch, type HitPlace } from './text-search.ts'
export { matchAt, type ParsedQuery, type Term, type TextEntry, textEntry } from './text.ts'
export { byBytes, cursorOf, type Span, sortKey } from './sort-key.ts'
