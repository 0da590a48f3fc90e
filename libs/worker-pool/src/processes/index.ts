export { type Child, type ChildOptions, type EndOptions, type Exit, startChild } from './child.ts'
export type { Kept } from './gather.ts'
export { runChild, type RunOptions, type RunResult } from './run.ts'
