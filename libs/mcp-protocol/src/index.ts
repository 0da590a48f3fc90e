export {
  capabilitiesOf,
  INPUT_CAPABILITIES,
  isInputMethod,
  MAX_DEPTH,
  readLog,
  readOutcome,
  readProgress,
  refused,
  responseTo,
  type RpcError,
  textOfResult,
} from './answers.ts'
export {
  type CallRequest,
  errorClassOf,
  ParkedCalls,
  RunningCall,
  spannedSteps,
  type StepOptions,
  StepQueue,
  type StepsEnd,
  watchedSteps,
} from './call.ts'
export {
  aborted,
  callFailed,
  type FailureFacts,
  failed,
  failureOf,
  needsAuth,
  protocolError,
  questionClosed,
  statusOf,
  toolNotFound,
  tooSlow,
  undelivered,
} from './failures.ts'
export { type ImportedServer, importInvalid, readClientServers } from './client-files.ts'
export { LIMITS, type McpLimits } from './limits.ts'
export { createLineWriter, type LineReader, readLines, readMessage } from './lines.ts'
export { isSafePage } from './oauth/login-checks.ts'
export { deeper, type ListedTool, readTool } from './listed-tool.ts'
export { decodeHeader, encodeHeader, headersOf, headerText, type ParamHeader, paramHeaders } from './param-headers.ts'
export { canonical, differenceOf, hashOf, pinnedOf } from './listed-tool.ts'
export { assessTools, isWanted, listHash, type Pins, pinTools, type ToolRules, withNewPins } from './pins.ts'
export { ClientRequests, type RequestTransport, type RpcAnswer, type RpcMessage } from './requests.ts'
export { readToolList, readToolPage, type ToolList, type ToolPage } from './tool-list.ts'
export { APP_TYPE, MAX_APP, readApp, readToolUi } from './tool-ui.ts'
export { bridgedName, fromMcpSchema, type McpToolSchema, toMcpSchema, toolMatcher, type ToolSchema } from './tool-schema.ts'
export { HIDDEN_KEY, isModern, LEGACY_VERSIONS, META, MODERN_VERSION, PROTOCOL_VERSIONS, RPC } from './answers.ts'
