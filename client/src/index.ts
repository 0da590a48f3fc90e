export {
  type Approval,
  type ChatAnswer,
  type ChatClient,
  type ChatReply,
  type ChatRequest,
  type ChatStreamOptions,
  type ChatStreamRequest,
  type Client,
  type ClientOptions,
  createClient,
  type RequestOptions,
  type ResumeOptions,
  type RunAnswer,
  type RunOptions,
  type RunPage,
  type RunRequest,
  type RunsClient,
  type RunSignal,
  type RunSteps,
  type Schemas,
} from './client.ts'
export {
  ApiError,
  type ApiErrorOptions,
  type ClientErrorCode,
  type ErrorCode,
  type ErrorDetails,
  isApiError,
  type ServerErrorCode,
} from './errors.ts'
export type { EventStream } from './event-stream.ts'
export type { Argument, BodyOf, EventOf, InputOf, Method, PathsOf, QueryOf, ReplyOf, StreamPathsOf } from './paths.ts'
export type { Credential, RetryOptions } from './sender.ts'
export type { components, operations, paths } from './api.ts'
