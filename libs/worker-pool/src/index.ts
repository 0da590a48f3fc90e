export { type BoundedWork, createBoundedWork, workFile, type WorkOptions } from './bounded-work.ts'
