// For tools
export { type Stripped, stripData, stripped, stripResult, stripWords } from './tools/hidden.ts'
export { objectOf } from './tools/tool-of.ts'
export { answerOf, toolOf, type TypedTool } from './tools/tool-of.ts'

// For commands
export { lineInvalid } from './commands/text.ts'
export { oneLine, table } from './commands/text.ts'

// For what counts by client or by model
export { networkOf } from './address.ts'
export { createModelNames, type ModelNames } from './model-names.ts'

// For limits of concurrency
export { createSemaphore, type Semaphore, type SemaphoreOptions, workClosed } from './semaphore.ts'
