import type { JsonSchema } from '@svc/core'
import type { RouteResponse } from '@svc/core/contracts'

// Descriptions for the OpenAPI document. `translate` checks bodies, because it knows which server gets them.

const described = (description: string): JsonSchema => ({ description })
const STRING: JsonSchema = { type: 'string' }
const INTEGER: JsonSchema = { type: 'integer' }
const TREE: JsonSchema = { type: 'object' }

const object = (title: string, properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema => ({
  ...(title === '' ? {} : { title }),
  type: 'object',
  properties,
  required,
})

export const CALL_BODY: JsonSchema = {
  type: 'object',
  properties: {
    contents: described('The conversation: contents of the roles user and model'),
    systemInstruction: described('The system prompt: a content'),
    tools: described('functionDeclarations: functions of the client'),
    toolConfig: described('functionCallingConfig: mode and allowedFunctionNames'),
    generationConfig: described('Settings of the answer'),
    generateContentRequest: described('For countTokens: a request with all its fields'),
    content: described('For embedContent: a content with texts'),
    requests: described('For batchEmbedContents: requests of embedContent'),
  },
}

/** Other parameters, such as those of SDKs, are ignored. */
export const LIST_QUERY: JsonSchema = {
  type: 'object',
  properties: {
    pageSize: { type: 'string', description: 'Models of a page. Default: 50, at most 1000' },
    pageToken: { type: 'string', description: 'nextPageToken of the last page' },
  },
}

const model = object(
  'GeminiModel',
  {
    name: STRING,
    version: STRING,
    displayName: STRING,
    description: STRING,
    inputTokenLimit: INTEGER,
    outputTokenLimit: INTEGER,
    supportedGenerationMethods: { type: 'array', items: STRING },
    thinking: { type: 'boolean' },
  },
  ['name', 'version', 'displayName', 'supportedGenerationMethods']
)

const models = object('GeminiModels', { models: { type: 'array', items: model }, nextPageToken: STRING }, ['models'])

const answer = object(
  'GeminiAnswer',
  {
    candidates: { type: 'array', items: TREE },
    promptFeedback: TREE,
    usageMetadata: TREE,
    modelVersion: STRING,
    responseId: STRING,
    totalTokens: { type: 'integer', description: 'Of countTokens' },
    embedding: { type: 'object', description: 'Of embedContent' },
    embeddings: { type: 'array', items: TREE, description: 'Of batchEmbedContents' },
  },
  []
)

const error = object(
  'GeminiError',
  {
    error: object('', { code: INTEGER, message: STRING, status: STRING, details: { type: 'array', items: TREE } }, [
      'code',
      'message',
      'status',
    ]),
  },
  ['error']
)

/** Below /v1, the error has the form of OpenAI for clients that name no SDK of Google. */
const anyError = object('GeminiOrOpenAiError', { error: TREE }, ['error'])

/** The errors of all routes by their status. */
const errorsOf = (schema: JsonSchema): Readonly<Record<string, RouteResponse>> =>
  Object.fromEntries(Object.entries(STATUSES).map(([status, description]) => [status, { description, schema }]))

const STATUSES = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  413: 'INVALID_ARGUMENT',
  415: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}
const ERRORS = errorsOf(error)

export const CALL_RESPONSES: Readonly<Record<string, RouteResponse>> = {
  '200': {
    description: 'The response. streamGenerateContent: events with alt=sse, otherwise a JSON array of responses.',
    schema: { oneOf: [answer, { type: 'array', items: answer }] },
    events: answer,
  },
  ...ERRORS,
}
/** The same for version 1 of the API. */
export const CALL_RESPONSES_V1: Readonly<Record<string, RouteResponse>> = { ...CALL_RESPONSES, ...errorsOf(anyError) }
export const LIST_RESPONSES: Readonly<Record<string, RouteResponse>> = {
  '200': { description: 'The models, then the agents.', schema: models },
  ...ERRORS,
}
export const MODEL_RESPONSES: Readonly<Record<string, RouteResponse>> = {
  '200': { description: 'The model.', schema: model },
  ...ERRORS,
}
