// For providers
export {
  type BaseUrl,
  type CallOptions,
  checkBaseUrl,
  createUpstream,
  type JsonLimits,
  nativeHeaders,
  nativeOf,
  type Upstream,
  type UpstreamLimits,
  type UpstreamOptions,
} from './upstream.ts'
export { type FrameReader, ofChoice, tooFewAnswers } from './answers.ts'
export { cutShort, type FailureDetails, isMistake, malformed, modelFailure, type ReadFailure } from './failure.ts'
export { parseArguments, type ToolCallPiece, ToolCalls } from './tool-calls.ts'
export { estimateTokens } from './tokens.ts'
export { EMBED_LIMITS, embedReply, textsOf } from './embeddings.ts'

// For writing and reading JSON
export { countIn, isTree, perTools, textIn, type Tree, treeIn } from './json.ts'

// For their configuration
export { entryProblems, type KeyEntry, type KeyOptions, readKey } from './key.ts'
export { type ConfiguredModel, embeddingModel, embeds, ENTRY, modelInfo, type UpstreamEntry } from './entry.ts'
export { modelList, type ModelListOptions } from './models.ts'

// For providers that have another's client make their requests
export { usesProxy } from './connection.ts'
export { EventStream } from './event-stream.ts'
export { answerFailure, hasError, redirected, tooLarge } from './failure.ts'
export { createHide, secretsOf, withoutCredentials } from './failure.ts'
export { retryAfterOf } from './answers.ts'
export { socketFailure } from './failure.ts'
