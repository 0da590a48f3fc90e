// For tools
export { answerOf, isForModels, modeAllows, objectOf, toolOf, type TypedTool } from './tools.ts'
export { type Stripped, stripData, stripped, stripResult, stripWords } from './tools.ts'
export { logToolFailure, type ToolFailure, toolFailure } from './tool-failure.ts'

// For content of tool results
export { boundedJson, CONTENT_PARTS, contentNote, contentText, cutContent, isWithin, weightOf } from './content.ts'

// For settings
export { bytesOf, type Typed, typed, type ValueOf } from './settings.ts'

// For authentication
export { credentialIn, credentialsIn } from './credentials.ts'

// For optional properties
export { type Defined, definedOf } from './tools.ts'

// For commands
export {
  DURABLE_OR_SERVER,
  fromRecord,
  lineInvalid,
  managedServer,
  nameHint,
  oneLine,
  sharedStore,
  shortList,
  snakeCase,
  table,
  timeText,
  toRecord,
} from './commands.ts'

// For metrics, and for labels of metrics and counters
export { counter, createDistribution, type Distribution, histogram, metricFamily } from './metrics.ts'
export { createModelNames, type ModelNames, networkOf } from './metrics.ts'

// For streams and running calls
export { type ActiveItems, createActiveItems, lazyStream } from './streams.ts'

// For changes of the server's state
export { type Change, differenceOf, type Publish, publishChange } from './changes.ts'

// For limits of concurrency
export { createSemaphore, type Semaphore, type SemaphoreOptions, workClosed } from './semaphore.ts'
