export { type BoundedWork, createBoundedWork, workFile, type WorkOptions } from './bounded-work.ts'
export { type Asker, createFairSemaphore, type FairSemaphore, type FairSemaphoreOptions } from './fair-semaphore.ts'
