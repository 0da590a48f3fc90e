export { type Child, type ChildOptions, type EndOptions, type Exit, startChild } from './child.ts'
export { type CapturedOutput, drained } from './output.ts'
export { runChild, type RunOptions, type RunResult } from './child.ts'
