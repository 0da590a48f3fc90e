// A plugin in a process of its own
export { isolate } from './isolate.ts'
export type { IsolatedRef, IsolateOptions } from './isolated-process.ts'
