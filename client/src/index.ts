export type {
  Approval,
  ChatAnswer,
  ChatClient,
  ChatQuestion,
  ChatReply,
  ChatRequest,
  ChatResumeOptions,
  ChatStream,
  ChatStreamOptions,
  ChatStreamRequest,
} from './chat.ts'
export {
  type Client,
  createClient,
  type DeadLetter,
  type DeadLettersClient,
  type RunAnswer,
  type RunBulkChange,
  type RunOptions,
  type RunPage,
  type RunQueries,
  type RunQueryValue,
  type RunReplay,
  type RunRequest,
  type RunsClient,
  type RunSignal,
  type RunSteps,
  type WorkflowVersions,
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
export type { ClientOptions, RequestOptions, ResumeOptions } from './exchange.ts'
export type { Argument, BodyOf, EventOf, InputOf, Method, PathsOf, QueryOf, ReplyOf, Schemas, StreamPathsOf } from './paths.ts'
export type { Credential, RetryOptions } from './sender.ts'
export type { components, operations, paths } from './api.ts'
