// For plugins that store data.
export { type Migration, type MigrationContext, type Migrations, openSpace } from './open-space.ts'
export { timelyId } from './sort-key.ts'
// For stores: shared checks and errors.
export {
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
} from './check.ts'
export { endOf, type Hit, hit, type StoredWindow } from './count.ts'
export {
  leaseBusy,
  storeClosed,
  storeConflict,
  storeFenced,
  storeInvalid,
  storeNewer,
  storeTooLarge,
  storeUnavailable,
  storeUnknown,
} from './errors.ts'
export { type Attempt, createLeaseQueue, type LeaseBackend, type LeaseQueue } from './lease-queue.ts'
export { byBytes, cursorOf, type Span, sortKey } from './sort-key.ts'
